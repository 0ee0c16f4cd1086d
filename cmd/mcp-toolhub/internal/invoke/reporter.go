package invoke

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// note gives the journal what the executor brings about besides its result.
func (x *reporter) note(records ...tool.Record) {
	if err := x.append(records...); err != nil {
		x.pipeline.opts.Logger.Warn("records of a call are not in the journal", "invocation", x.inv.id, "error", err)
	}
}

// reporter passes on and records what an executor reports while it runs: progress and questions. Once closed it passes on
// nothing: a client must not see progress of a call that it has the result of.
type reporter struct {
	pipeline *Pipeline
	inv      *invocation
	append   func(...tool.Record) error

	// mu also guards the status and transitions of the invocation until close.
	mu       sync.Mutex
	closed   bool
	sequence int
	recorded time.Time
	asking   int // questions that wait for the client
	waits    int // how often the call has begun to wait for it
}

// recordEvery bounds the journal lines of a chatty tool; every report still reaches the client.
const recordEvery = 100 * time.Millisecond

// maxWaits bounds the journal lines of a server that asks without end; every question still reaches the client.
const maxWaits = 100

// asker returns the call's Ask. While that waits, the invocation needs input.
func (x *reporter) asker() tool.Asker {
	ask := x.inv.call.Ask
	if ask == nil {
		return nil
	}
	return func(ctx context.Context, questions []tool.Question) ([]tool.Answer, error) {
		x.waiting(1)
		defer x.waiting(-1)
		return ask(ctx, questions)
	}
}

// waiting notes that a question more, or less, waits for the client.
func (x *reporter) waiting(change int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.asking
	x.asking += change
	if x.closed || before > 0 && x.asking > 0 || x.waits > maxWaits {
		return
	}
	if x.asking == 0 {
		x.inv.moveTo(tool.StatusRunning)
		return
	}
	if x.waits++; x.waits > maxWaits {
		return
	}
	x.inv.moveTo(tool.StatusNeedsInput)
	if err := x.append(x.inv.record()); err != nil {
		x.pipeline.opts.Logger.Warn("a wait for input is not in the journal", "invocation", x.inv.id, "error", err)
	}
}

// report hands one report to the client.
func (x *reporter) report(update tool.Progress) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return
	}
	if now := x.inv.now(); x.recorded.IsZero() || now.Sub(x.recorded) >= recordEvery {
		x.sequence++
		x.recorded = now
		r := x.record(update, now)
		if err := x.append(r, tool.Event{
			Head: tool.HeadOf(tool.ObjectEvent), EventID: tool.NewEventID(), EventType: tool.EventInvocationProgress,
			Source: tool.EventSource, Subject: string(x.inv.id), Time: now, InvocationID: x.inv.id, ToolID: x.inv.toolID(),
			Data: map[string]any{"progress_id": string(r.ProgressID)},
		}); err != nil {
			x.pipeline.opts.Logger.Warn("progress is not in the journal", "invocation", x.inv.id, "error", err)
		}
	}
	if x.inv.call.Progress != nil {
		x.inv.call.Progress(update)
	}
}

func (x *reporter) record(update tool.Progress, now time.Time) tool.ProgressRecord {
	r := tool.ProgressRecord{
		Head: tool.HeadOf(tool.ObjectProgress), ProgressID: tool.NewProgressID(), InvocationID: x.inv.id, Sequence: x.sequence,
		Status: tool.StatusRunning, ElapsedMS: now.Sub(*x.inv.started).Milliseconds(), Timestamp: now, Message: update.Message,
	}
	if m, ok := rawjson.Get(update.Params, "message"); ok && r.Message == "" {
		r.Message, _ = rawjson.String(m)
	}
	done, hasDone := number(update.Params, "progress")
	total, hasTotal := number(update.Params, "total")
	if hasDone && hasTotal && total > 0 && done >= 0 && done <= total {
		percent := 100 * done / total
		r.Percent = &percent
	}
	return r
}

func (x *reporter) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.inv.status == tool.StatusNeedsInput { // the call ended with a question open
		x.inv.moveTo(tool.StatusRunning)
	}
}

func number(object json.RawMessage, name string) (float64, bool) {
	raw, ok := rawjson.Get(object, name)
	if !ok {
		return 0, false
	}
	var f float64
	if json.Unmarshal(raw, &f) != nil {
		return 0, false
	}
	return f, true
}
