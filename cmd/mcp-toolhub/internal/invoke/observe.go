package invoke

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Observer makes telemetry of calls. Its methods are called concurrently, and return quickly.
type Observer interface {
	// Begin is told of a call that begins. It returns the call's trace; nil where nobody traces it.
	Begin(ctx context.Context, c *Call) Trace

	// End is told of a call that has ended, once that is recorded. What e refers to is used again afterwards.
	End(ctx context.Context, e Ended)
}

// Trace is the trace that one call is a part of. It belongs to the call's own goroutine.
type Trace interface {
	// Hop returns the _meta for whoever executes the call: the caller's, with the trace's own
	// context in the place of the caller's. It is called each time that the phase execute runs,
	// with the tool that is called.
	Hop(ctx context.Context, to *tool.Tool, meta json.RawMessage) json.RawMessage
}

// Ended is a call that has ended, as telemetry is told of it.
type Ended struct {
	*Call
	ID     tool.InvocationID
	Listed *tool.Tool // nil where the caller sees no tool of that name
	Member bool       // another call has made it, such as a batch
	Trace  Trace      // from Begin
	Began  time.Time
	Took   time.Duration // from its beginning until it was recorded
	Laps   []Lap
	Status tool.Status
	Class  tool.ErrorClass // "" where the tool answered without isError
	Error  *tool.Error     // nil where it did
	// the phase in which the call failed; "" where it has not, or the tool says that it has
	FailedIn string
	RPC      *tool.RPCError // the JSON-RPC error that the caller got; nil where it got a result
	// native ids of its side; the zero value where it has none, or the call has not come so far
	Executor tool.ExternalMapping

	KeptChars int             // characters of the result that the caller did not get
	Arguments json.RawMessage // masked; nil where they are large
	Result    json.RawMessage // the content, masked; nil where there is none, or it is large
}

// Lap is a phase that a call has been through. It began with the end of the lap before.
type Lap struct {
	Phase string        // or "needs_input" where the call waited for its client's next request
	Until time.Duration // since the call began
}

// observation is what an observer is told of an invocation at its end, and nobody else needs.
type observation struct {
	trace    Trace // nil where nobody traces the call
	laps     []Lap // where somebody observes it
	failedIn int   // the phase in which fail was called
	kept     int   // characters of the result that the caller does not get
}

// noteLap notes that a phase of the invocation has ended, where somebody observes it.
func (p *Pipeline) noteLap(inv *invocation, phase string) {
	if p.opts.Observer != nil && inv.call.Request == nil {
		inv.laps = append(inv.laps, Lap{phase, time.Since(inv.record.Created).Truncate(time.Microsecond)})
	}
}

// observe tells of the end of the invocation, where somebody observes it.
func (p *Pipeline) observe(ctx context.Context, inv *invocation) {
	if p.opts.Observer == nil || inv.call.Request != nil {
		return
	}
	e := Ended{Call: inv.call, ID: inv.id, Member: inv.record.Parent != "", Trace: inv.trace, Began: inv.record.Created,
		Took: inv.laps[len(inv.laps)-1].Until, Laps: inv.laps, Status: inv.outcome.Status, Class: inv.outcome.Class,
		Error: inv.end.Error, RPC: inv.outcome.Err, Executor: inv.reply.Mapping, KeptChars: inv.kept}
	if !inv.outcome.JournalFailed { // otherwise nobody has masked them
		e.Arguments, e.Result = inv.record.Input.Model, inv.end.Content
	}
	if inv.failure != nil {
		e.FailedIn = p.phases[inv.failedIn].name
	}
	if inv.listed != nil {
		e.Listed = inv.listed.Tool
	}
	p.opts.Observer.End(ctx, e)
}
