package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// Asks gathers the questions about the calls of one batch, so that a person gets one list in the
// place of many questions that differ in their arguments only. It is safe for concurrent use. The
// zero value is ready.
type Asks struct {
	mu        sync.Mutex
	undecided int           // calls of which it is not known whether they are going to be asked about
	all       chan struct{} // closed when there are none
	open      map[string]*list
}

// list is one question about several calls.
type list struct {
	calls  []*listedCall
	cancel context.CancelFunc
}

// listedCall is a call that waits for the answer.
type listedCall struct {
	index  int
	about  func() gate.Asked
	sent   func()
	answer chan listAnswer
	left   chan struct{} // closed when its own question has left, or it has none
	leave  func()        // closes left
}

// listAnswer is the answer for one call.
type listAnswer struct {
	answer tool.Answer
	err    error
	each   bool   // each call is asked about: the person wants that, or the answer to the list cannot be read
	left   func() // with each: to be called when the question about this one has left, or will not
}

// isRead reports whether the result of an elicitation is an answer to a list.
func isRead(result json.RawMessage) bool {
	answer, problem, invalid := answerOf(result, 0)
	return !invalid && (problem != "" || answer.Choice == policy.AllowOnce || answer.Choice == policy.DenyOnce)
}

// gatherFor bounds the time for which a question waits for more of its kind.
const gatherFor = 250 * time.Millisecond

// Begin notes a call that may be asked about. It is called before the call begins.
func (a *Asks) Begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.undecided++; a.undecided == 1 {
		a.all = make(chan struct{})
	}
}

// Ended notes that the call of m has ended.
func (a *Asks) Ended(m *Member) { m.decided() }

func (a *Asks) decide() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.undecided--; a.undecided == 0 {
		close(a.all)
	}
}

// ask puts the question about c to the client, with others that come within a moment and ask the
// same about other arguments.
func (a *Asks) ask(ctx context.Context, c *Call, about func() gate.Asked, sent func()) listAnswer {
	mine := &listedCall{index: c.Member.Index, about: about, sent: sent, answer: make(chan listAnswer, 1),
		left: make(chan struct{})}
	mine.leave = sync.OnceFunc(func() { close(mine.left) })
	key := about().Alike()
	a.mu.Lock()
	l := a.open[key]
	if l == nil {
		var listing context.Context
		l = &list{}
		listing, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
		if a.open == nil {
			a.open = make(map[string]*list)
		}
		a.open[key] = l
		go a.put(listing, c, key, l, a.all)
	}
	l.calls = append(l.calls, mine)
	a.mu.Unlock()
	c.Member.decided()
	select {
	case got := <-mine.answer:
		got.left = mine.leave
		return got
	case <-ctx.Done():
	}
	mine.leave()
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.calls = slices.DeleteFunc(l.calls, func(c *listedCall) bool { return c == mine }); len(l.calls) == 0 {
		l.cancel() // nobody waits for it
	}
	return listAnswer{err: ctx.Err()}
}

// put asks about the calls of l, once no other one can come to them. It ends when they have their
// answer, or none of them waits.
func (a *Asks) put(ctx context.Context, c *Call, key string, l *list, all <-chan struct{}) {
	defer l.cancel()
	more := time.NewTimer(gatherFor)
	defer more.Stop()
	select {
	case <-all:
	case <-more.C:
	case <-ctx.Done():
	}
	a.mu.Lock()
	delete(a.open, key)
	calls := slices.Clone(l.calls)
	slices.SortFunc(calls, func(a, b *listedCall) int { return a.index - b.index })
	a.mu.Unlock()
	if len(calls) == 0 { // all of them were canceled
		return
	}
	if len(calls) == 1 {
		calls[0].answer <- listAnswer{each: true}
		return
	}
	got := askAbout(ctx, c, calls)
	for _, call := range calls {
		if call.answer <- got; got.each {
			<-call.left // the questions about single calls come in the order of the calls
		}
	}
}

// askAbout puts one question about calls, by way of the client of c.
func askAbout(ctx context.Context, c *Call, calls []*listedCall) listAnswer {
	about := make([]gate.Asked, len(calls))
	for i, call := range calls {
		about[i] = call.about()
	}
	answers, err := c.elicit(ctx, gate.ListMessage(about), gate.ListForm(c.Actor.Client.ProtocolVersion), func() {
		for _, call := range calls {
			call.sent()
		}
	})
	if err != nil || len(answers) != 1 {
		return listAnswer{err: errors.Join(errors.New("ask about a batch: no answer"), err)}
	}
	content := rawjson.GetObject(answers[0].Result, "content")
	return listAnswer{answer: answers[0],
		each: rawjson.Text(content, "answer") == gate.AskEach || !isRead(answers[0].Result)}
}
