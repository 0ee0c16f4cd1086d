package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/slice"
)

// batch is a batch that runs.
type batch struct {
	Options
	*request
	execution *tool.Execution
	hop       tool.Hop // of all calls
	members   []*member
	asks      invoke.Asks
	places    chan struct{}   // holds one token for each call that runs
	canceled  <-chan struct{} // closed when the batch is
	reporting reporting

	mu        sync.Mutex
	failed    *tool.Failure // ends all other calls; nil unless a call has failed and the policy says so
	arguments int           // bytes of the arguments of all calls, those filled in among them
}

// member is one call of a batch.
type member struct {
	*call
	index   int
	reads   bool         // it is known to read only
	arrival tool.Arrival // its place among the calls that the client has written
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when outcome is set
	invoke.Outcome
	whole rawjson.Object    // the tool's result where the outcome has a part of it
	taken map[string]*taken // by the argument; complete when those have ended that m depends on

	size    int // bytes of the result or error that is kept; guarded by batch.mu
	omitted int // bytes of the one that is left out; guarded by batch.mu
}

// taken is the value that an argument takes from the result of an earlier call, or why there is none.
type taken struct {
	value   json.RawMessage
	missing string
}

// Whole keeps the result of the tool, from which arguments of later calls come.
func (m *member) Whole(result rawjson.Object) { m.whole = result }

// failed reports whether the call has not succeeded. It is called after done.
func (m *member) failed() bool { return m.Status != tool.StatusSucceeded }

// mayHaveWritten reports whether the call may have had an effect. It is called after done.
func (m *member) mayHaveWritten() bool {
	if m.Canceled != "" {
		return !m.reads && m.Canceled != tool.OutcomeNotBegun
	}
	return !m.reads && (!m.failed() || m.Class == tool.ClassExecutionFailed || m.Error != nil && m.Error.OutcomeUnknown)
}

func newBatch(o Options, e *tool.Execution, r *request) *batch {
	b := &batch{Options: o, request: r, execution: e, hop: withoutTasks(e.Hop),
		places: make(chan struct{}, r.MaxParallel)}
	b.reporting = reporting{total: len(r.Calls), send: e.Progress}
	for i := range r.Calls {
		m := &member{call: &r.Calls[i], index: i, done: make(chan struct{}), taken: make(map[string]*taken)}
		if l, ok := e.Surface.Resolve(m.Name); ok {
			m.reads = o.Reads(l.Tool)
		}
		b.arguments += len(m.Arguments)
		b.members = append(b.members, m)
	}
	return b
}

// withoutTasks returns h of a client that follows no tasks: the result of a call is a part of that
// of the batch, so its client never gets a task to ask about.
func withoutTasks(h tool.Hop) tool.Hop {
	extensions, _ := rawjson.Get(h.ClientCapabilities, "extensions")
	rest, follows, err := rawjson.Delete(extensions, tool.TaskExtension)
	if !follows || err != nil {
		return h
	}
	if able, err := rawjson.Set(h.ClientCapabilities, "extensions", rest); err == nil {
		h.ClientCapabilities = able
	}
	return h
}

// run runs the calls, and returns when all have ended.
func (b *batch) run(ctx context.Context) {
	var all sync.WaitGroup
	b.canceled = ctx.Done()
	contexts, last := make([]context.Context, len(b.members)), b.execution.Arrival
	var own tool.Line // of a batch that has no place in another one, over HTTP for example
	for i, m := range b.members {
		contexts[i], m.cancel = context.WithCancelCause(ctx)
		if b.beginsAtOnce(m) {
			b.asks.Begin()
			if !m.arrival.Follow(last) {
				own.Join(&m.arrival)
			}
			last = &m.arrival
		}
	}
	b.execution.Arrival.Leave()
	for i, m := range b.members {
		all.Go(func() {
			defer m.cancel(nil)
			b.runMember(contexts[i], m)
		})
	}
	all.Wait()
}

// beginsAtOnce reports whether a call waits for no other one before it is checked and permitted.
func (b *batch) beginsAtOnce(m *member) bool {
	return len(m.DependsOn) == 0 && (b.Ordering != serial || m.index == 0)
}

// runMember runs one call through the pipeline, once it may begin.
func (b *batch) runMember(ctx context.Context, m *member) {
	if b.Ordering == serial && m.index > 0 {
		<-b.members[m.index-1].done
	}
	aborted := b.awaitDependencies(ctx, m)
	if !b.beginsAtOnce(m) {
		b.asks.Begin()
	}
	arguments := m.Arguments
	if aborted == nil {
		aborted = b.barred(ctx, m)
	}
	if aborted == nil {
		arguments, aborted = b.fill(m)
	}
	e, holds := b.execution, false
	sibling := &invoke.Member{Parent: e.Invocation, Index: m.index, Aborted: aborted, Asks: &b.asks,
		Turn: func(ctx context.Context) error {
			err := b.turn(ctx, m)
			holds = err == nil
			return err
		}}
	if b.Failure == invoke.CancelSiblings {
		sibling.Failed = func(status tool.Status, class tool.ErrorClass) {
			if class != tool.ClassSiblingCanceled && !b.isCanceled(ctx) {
				b.endOthers(m, status)
			}
		}
	}
	m.Outcome = b.Invoke(ctx, &invoke.Call{Surface: e.Surface, Name: m.Name, Via: string(name),
		Params: params(m.Name, arguments), Arguments: arguments,
		Meta: e.Meta, Hop: b.hop, Method: "tools/call", Actor: e.Actor, Session: e.Session,
		SelectionRef: m.SelectionRef, Loaded: e.Loaded,
		Arrival: &m.arrival, Ask: e.Ask, InputByRetry: e.InputByRetry, Notify: e.Notify, Progress: b.reporting.of(m.ID),
		Hears: e.Hears, Member: sibling, Cut: m})
	m.arrival.Leave()
	b.asks.Ended(sibling)
	if holds {
		<-b.places
	}
	b.passOn(m)
	b.keep(m)
	b.reporting.ended(m.InvocationID)
	close(m.done)
}

// awaitDependencies waits for the calls that m depends on. It returns why m is not to run.
func (b *batch) awaitDependencies(ctx context.Context, m *member) (why *tool.Failure) {
	for _, other := range b.members[:m.index] {
		if !slices.Contains(m.DependsOn, other.ID) {
			continue
		}
		<-other.done
		if other.failed() && b.Failure != invoke.IgnoreSiblings && why == nil && !b.isCanceled(ctx) {
			why = &tool.Failure{Class: tool.ClassSiblingCanceled, AbortReason: invoke.AbortDependencyFailed,
				Message: fmt.Sprintf("did not run, because it depends on the call %q, which ended as %s: make both "+
					"again once that is mended",
					other.ID, other.Status)}
		}
	}
	return why
}

// barred returns why m is not to begin, whatever it depends on.
func (b *batch) barred(ctx context.Context, m *member) *tool.Failure {
	if b.isCanceled(ctx) && b.ending() == nil {
		return notBegun(ctx)
	}
	if failed := b.ending(); failed != nil {
		return failed
	}
	if b.Ordering == serial {
		return b.afterFailedWrite(ctx, m)
	}
	return nil
}

// notBegun is the end of a call that has not begun when its batch, and so ctx, is canceled.
func notBegun(ctx context.Context) *tool.Failure {
	return &tool.Failure{Class: tool.ClassCanceled, AbortReason: invoke.AbortBatchCanceled, Cause: context.Cause(ctx),
		Message: "did not run, because the batch was canceled before"}
}

// turn waits until a permitted call may run: until those have ended that it must not overtake, and there is a place.
func (b *batch) turn(ctx context.Context, m *member) error {
	if b.Ordering == preserveOrder {
		for _, other := range b.members[:m.index] {
			if !m.reads || !other.reads {
				m.arrival.Leave()
				<-other.done // it ends soon where the batch is canceled
			}
		}
		if failed := b.afterFailedWrite(ctx, m); failed != nil {
			return failed
		}
	}
	select {
	case b.places <- struct{}{}:
		return nil
	default:
		m.arrival.Leave()
	}
	select {
	case b.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return notBegun(ctx)
	}
}

// afterFailedWrite returns why m does not run if an earlier call failed that may have been to write something.
func (b *batch) afterFailedWrite(ctx context.Context, m *member) *tool.Failure {
	for _, other := range b.members[:m.index] {
		if other.reads {
			continue // which may still run
		}
		if other.failed() {
			if b.isCanceled(ctx) {
				return notBegun(ctx)
			}
			return &tool.Failure{Class: tool.ClassSiblingCanceled, AbortReason: invoke.AbortEarlierWriteFailed,
				Message: fmt.Sprintf("did not run, because the call %q before it may write and ended as %s: later "+
					"calls of an ordered batch "+
					"do not run then", other.ID, other.Status)}
		}
	}
	return nil
}

// isCanceled reports whether the batch is canceled. Then ctx, of one of its calls, has ended, too:
// so its record says who has canceled it, and not that a sibling has, which has heard of it a
// moment earlier.
func (b *batch) isCanceled(ctx context.Context) bool {
	select {
	case <-b.canceled:
		<-ctx.Done()
		return true
	default:
		return false
	}
}

// endOthers ends all calls that have not ended, because m has failed.
func (b *batch) endOthers(m *member, status tool.Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed != nil {
		return
	}
	b.failed = invoke.SiblingFailed(m.ID, status)
	for _, other := range b.members {
		if other != m {
			other.cancel(b.failed)
		}
	}
}

// ending returns why no call is to begin; nil where they may.
func (b *batch) ending() *tool.Failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed
}

// fill returns the arguments of m, with those from results of calls that have ended.
func (b *batch) fill(m *member) (arguments json.RawMessage, failed *tool.Failure) {
	arguments = m.Arguments
	for _, argument := range slices.Sorted(maps.Keys(m.ArgumentsFrom)) {
		t, err := m.taken[argument], error(nil)
		if t.missing == "" {
			if arguments, err = rawjson.Set(arguments, argument, t.value); err == nil {
				continue
			}
			t.missing = "it cannot be set: " + err.Error()
		}
		return m.Arguments, &tool.Failure{Class: tool.ClassInvalidArguments, Code: "argument_missing",
			Message: fmt.Sprintf("did not run: arguments_from.%s takes a value from the call %q, and %s", argument,
				m.ArgumentsFrom[argument].Call,
				t.missing)}
	}
	return arguments, nil
}

// passOn gives later calls what their arguments take from the result of m, which has ended. So the
// rest of it need not be kept for them.
func (b *batch) passOn(m *member) {
	for _, later := range b.members[m.index+1:] {
		for _, argument := range slices.Sorted(maps.Keys(later.ArgumentsFrom)) {
			if from := later.ArgumentsFrom[argument]; from.Call == m.ID {
				t := b.take(m, from.Pointer)
				b.mu.Lock()
				later.taken[argument] = t
				b.mu.Unlock()
			}
		}
	}
}

// take returns a copy of what is at the pointer in the result of m.
func (b *batch) take(m *member, pointer string) *taken {
	if m.failed() {
		return &taken{missing: "that ended as " + string(m.Status)}
	}
	answer := m.Object
	if m.whole.Text() != nil {
		answer = m.whole
	}
	result, ok := structured(answer)
	if !ok {
		return &taken{missing: "that has no structured result"}
	}
	value, err := slice.At(result, pointer)
	if err != nil {
		return &taken{missing: "its structured result lacks that: " + err.Error()}
	}
	if !b.room(len(value)) {
		return &taken{missing: fmt.Sprintf("the arguments of the batch are larger than %d bytes with it", maxArguments)}
	}
	return &taken{value: slices.Clone(value)}
}

// room takes some of the bytes for arguments, if there are as many.
func (b *batch) room(bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.arguments+bytes > maxArguments {
		return false
	}
	b.arguments += bytes
	return true
}

// params returns the params of a tools/call.
func params(name string, arguments json.RawMessage) json.RawMessage {
	out := rawjson.AppendMember([]byte("{"), "name", rawjson.Quote(name))
	return append(rawjson.AppendMember(out, "arguments", arguments), '}')
}

// reporting passes the progress of the calls on as that of the batch.
type reporting struct {
	total int
	send  func(tool.Progress)

	mu    sync.Mutex
	done  int // calls that have ended
	since int // reports since the last one did
}

// of returns the progress function of the call of that id.
func (r *reporting) of(id string) func(tool.Progress) {
	return func(p tool.Progress) {
		said := rawjson.Text(p.Params, "message")
		r.mu.Lock()
		defer r.mu.Unlock()
		r.since++
		r.report(id+": "+said, "")
	}
}

// ended reports that a call more has ended. Its result is a part of the batch's.
func (r *reporting) ended(call tool.InvocationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done++
	r.since = 0
	if r.done == r.total {
		call = "" // the whole is there
	}
	r.report(fmt.Sprintf("%d of %d calls have ended", r.done, r.total), call)
}

// report sends a report: "The progress value MUST increase with each notification". Between two
// ends of calls it comes ever nearer to the next whole number. partial is the call that has ended,
// if there are others. r.mu is held.
func (r *reporting) report(message string, partial tool.InvocationID) {
	progress := float64(r.done) + 1 - 1/float64(r.since+1)
	r.send(tool.Progress{Message: message, Partial: partial,
		Params: fmt.Appendf(nil, `{"progress":%g,"total":%d,"message":%s}`, progress, r.total,
			rawjson.Quote(message))})
}
