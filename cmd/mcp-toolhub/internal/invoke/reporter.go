package invoke

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// record takes the records that the executor makes besides its result.
func (x *reporter) record(records ...tool.Record) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.catchUp()
		x.inv.record.Add(time.Now(), records...)
	}
}

// reporter passes on and records what an executor reports while it runs: progress and questions.
// Once closed it passes on nothing: a client must not see progress of a call that it has the result
// of.
type reporter struct {
	inv    *invocation
	asker  tool.Asker // nil where the client cannot be asked
	server string     // of the tool: a late question finds the invocation ended
	note   func(failure string)

	// mu also guards the status of the invocation until close.
	mu       sync.Mutex
	closed   bool
	recorded time.Time
	pending  bool // the last report is not recorded: it is last, of lastAt
	last     tool.Progress
	lastAt   time.Time
	asking   int                 // questions that wait for the client
	waits    int                 // how often the call has begun to wait for it
	parts    []tool.InvocationID // whose results came meanwhile
}

// recordEvery bounds the journal lines of a chatty tool. Every report still reaches the client, and
// the last one before anything else happens is always recorded.
const recordEvery = 100 * time.Millisecond

// maxWaits bounds the journal lines of a server that asks without end; every question still reaches the client.
const maxWaits = 100

// ask puts questions to the client. While it waits, the invocation needs input.
func (x *reporter) ask(ctx context.Context, questions []tool.Question) (answers []tool.Answer, err error) {
	defer x.rest(ctx)()
	questions = slices.Clone(questions) // the executor's own stay as they are
	for i := range questions {
		if q := &questions[i]; q.Server == "" {
			q.Server = x.server // a batch passes on questions of several
		}
	}
	answers, err = x.asker(ctx, questions)
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.inv.answeredBy(answers)
	}
	return answers, err
}

// rest says that the call waits for a person. over returns once the call has its locks again.
func (x *reporter) rest(ctx context.Context) (over func()) {
	x.waiting(1)
	return func() {
		if locked := x.waiting(-1); locked != nil {
			select {
			case <-locked:
			case <-ctx.Done():
			}
		}
	}
}

// signIn describes e, which has failed with why.
func (x *reporter) signIn(e *tool.Execution, why *tool.Failure) *tool.SignInNeed {
	m := x.inv.call.Member
	return &tool.SignInNeed{Server: e.Tool.Server, Why: why, Actor: e.Actor, Session: e.Session, Hop: e.Hop, Ask: e.Ask,
		Progress: e.Progress,
		Hidden:   m != nil && m.Parent != "", Aside: func(ctx context.Context, f func()) {
			defer x.rest(ctx)()
			f()
		}}
}

// waiting notes that a question more, or less, waits for the client. Meanwhile the call holds no
// lock. The channel, where there is one, is closed when it has its locks again.
func (x *reporter) waiting(change int) (locked <-chan struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.asking
	x.asking += change
	if x.closed || before > 0 && x.asking > 0 {
		return nil
	}
	x.catchUp()
	if x.asking == 0 {
		return x.inv.place.relock()
	}
	x.inv.place.unlock()
	if x.waits++; x.waits > maxWaits {
		return nil
	}
	x.inv.moveTo(tool.StatusNeedsInput)
	x.note("a wait for input is not in the journal")
	return nil
}

// report hands one report to the client.
func (x *reporter) report(update tool.Progress) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	if update.Partial != "" {
		if x.parts = append(x.parts, update.Partial); x.asking == 0 { // else the status is that it waits
			x.catchUp()
		}
	}
	if now := time.Now(); x.recorded.IsZero() || now.Sub(x.recorded) >= recordEvery {
		x.recorded, x.pending = now, false
		x.progress(update, now)
		x.note("progress is not in the journal")
	} else {
		x.pending, x.lastAt, x.last.Message = true, now, update.Message
		x.last.Params = append(x.last.Params[:0], update.Params...)
	}
	if x.inv.call.Progress != nil {
		x.inv.call.Progress(update)
	}
}

// catchUp records the last report, where it came too soon after the one before. Where no question
// waits, it also records that the call runs again, and which parts of the result have come. x.mu is
// held.
func (x *reporter) catchUp() {
	if x.pending {
		x.pending = false
		x.progress(x.last, x.lastAt)
	}
	if x.asking > 0 {
		return
	}
	if x.inv.status == tool.StatusNeedsInput {
		x.inv.moveTo(tool.StatusRunning)
	}
	for _, part := range x.parts {
		x.inv.status = tool.StatusPartialResult
		x.inv.record.Partial(tool.ResultOf(part), time.Now())
	}
	x.parts = x.parts[:0]
}

func (x *reporter) progress(update tool.Progress, now time.Time) {
	message := update.Message
	if message == "" {
		message, _ = rawjson.GetString(update.Params, "message")
	}
	done, hasDone := number(update.Params, "progress")
	total, hasTotal := number(update.Params, "total")
	var percent *float64
	if hasDone && hasTotal && total > 0 && done >= 0 && done <= total {
		percent = new(100 * done / total)
	}
	x.inv.record.Progress(message, percent, now)
}

func (x *reporter) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed, x.asking = true, 0 // the call may have ended with a question open
	x.catchUp()
}

func number(object json.RawMessage, name string) (float64, bool) {
	raw, ok := rawjson.Get(object, name)
	var f float64
	ok = ok && json.Unmarshal(raw, &f) == nil
	return f, ok
}
