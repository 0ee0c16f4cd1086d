// Package invoke is the one pipeline: it turns every tool call, from every door, into an Agent Tool
// 0.2.0 invocation that ends in exactly one terminal result, and records it before anybody sees
// that result.
//
// The phases are data (see phases): the standard's names, in its order. One loop runs them and one finish ends them. A
// door (package downstream, the command line) makes a Call and writes the Outcome on its wire; an Executor (upstream
// servers, built-in toolsets) does the work in the middle. Neither can leave a phase out.
package invoke

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// Executor runs the tools of one source. Execute is called concurrently. It returns a *tool.RPCError where the tool's
// server answered with a JSON-RPC error, and a *tool.Failure for everything else that kept the tool from answering; an
// answer with isError set is a Reply. It returns soon after ctx is done.
type Executor interface {
	Execute(ctx context.Context, e *tool.Execution) (tool.Reply, error)
}

// Request makes a Call one of a request that is no tools/call, such as resources/read. It takes no
// place at its server, because calls there may wait for it, and Outcome.Err says why it has failed.
type Request struct {
	Method  *tool.Tool // from tool.MethodOf
	Unasked bool       // it is denied where somebody would have to be asked
	Send    func(context.Context, *tool.Execution) (tool.Reply, error)
}

// Execute implements Executor.
func (r *Request) Execute(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
	return r.Send(ctx, e)
}

// Call is one tools/call as a door received it. The pipeline changes none of its fields, and nobody
// else does before it has ended or goes on with another one.
type Call struct {
	Surface      *tool.Surface   // what the caller sees: the name is looked up here and nowhere else
	Name         string          // as the caller wrote it
	Params       json.RawMessage // the whole params object; see tool.Execution
	Arguments    json.RawMessage // params.arguments; nil or null where the caller gave none
	Meta         json.RawMessage // see tool.Execution
	Hop          tool.Hop
	NativeCallID json.RawMessage // the JSON-RPC id, as written
	Method       string          // "tools/call", or what the door calls it
	Actor        tool.Actor
	Session      tool.Session // see tool.Execution

	// Via is the hub tool that the caller named, if that tool forwards this call or makes it in a batch.
	Via string

	// Refused is why the request is no call, where it is malformed: the invocation ends with that. Nil where it is one.
	Refused *tool.RPCError

	// Request is the request where the call is no tools/call; then Name is empty, and Arguments are
	// its params without _meta.
	Request *Request

	SelectionRef string      // see tool.DeferredCall
	Loaded       tool.Loaded // see tool.Execution

	// Invocation is the id, from tool.NewInvocationID, of a call whose door has to name it before
	// it ends. "" leaves the choice to the pipeline.
	Invocation tool.InvocationID

	Ask          tool.Asker              // see tool.Execution
	InputByRetry bool                    // see tool.Execution
	Notify       func(tool.Notification) // see tool.Execution

	// Progress receives the call's progress in order and before Invoke returns. Nil where nobody asked for it.
	Progress func(tool.Progress)

	// Arrival is the call's place among those that its client has written behind each other; nil: it has none.
	Arrival *tool.Arrival

	// Member is what the call has to do with its siblings; nil: it has none.
	Member *Member

	// Cut, where it is not nil, is told the tool's whole result where the outcome has a part of it,
	// before Invoke returns.
	Cut interface{ Whole(result rawjson.Object) }

	// Hears reports whether the client's present request takes progress. Nil: it does where Progress is set.
	Hears func() bool
}

// Outcome is the end of an invocation, or the input that it waits for. Exactly one of Result and Err is set.
type Outcome struct {
	InvocationID tool.InvocationID
	Status       tool.Status
	Class        tool.ErrorClass // "" where the tool answered without isError
	Aborted      string          // the abort_reason of tool.Failure; "" for none
	Result       json.RawMessage // a tools/call result object: the executor's bytes, or the hub's own for a failure
	Object       rawjson.Object  // Result, read; the zero value where it is no JSON object
	// what the records say of a failure; nil where the tool has answered, be it with isError
	Error *tool.Error
	Err   *tool.RPCError // for malformed requests, unknown names and what an upstream answered so itself

	// Task is the task that the server has made of the call, as Result tells: the invocation ends
	// with that, and the task goes on. Nil: none.
	Task *Task

	// Revision is the protocol revision that the executor's side of the call speaks, where it speaks MCP.
	Revision string

	// Suspended is set where the invocation has not ended: Status is needs_input, Result is the server's result of type
	// input_required, and the client's next request goes on with it.
	Suspended *Suspended

	// Free, where it is not nil, may be called once nobody reads Result any more, as tool.Reply has it.
	Free func()

	// JournalFailed says that the terminal record could not be written. The call has run: its answer is passed on, and
	// the hub says so in its log and health.
	JournalFailed bool

	// Artifacts are those that the call has left in the store; nil: none.
	Artifacts []tool.PersistedRef

	// Unkept says that the record keeps less than Result: so may whoever passes it on.
	Unkept bool

	// Canceled says how a call ended that somebody has cancelled, or that ran out of time; "" for all others.
	Canceled tool.CancelOutcome

	Output tool.Output // what a success lacks
}

// Settings are those in force. They are asked at each call.
type Settings interface {
	Gate() *gate.Gate
	Hooks() *hook.Set // nil for none
	Limits(server string) Limits

	// Present returns the tool that is offered under the name of t at this moment; nil where there
	// is none.
	Present(t *tool.Tool) *tool.Tool
}

// People are asked about calls elsewhere than at their clients.
type People interface {
	// QueueOpen reports whether somebody could answer questions in Options.Approvals.
	QueueOpen() bool

	// Announce tells people of a question in the queue, by a message to a webhook, and does not
	// wait for that.
	Announce(ctx context.Context, webhook string, v approval.View)

	// Offer returns a grant that a question about r offers, because people have answered alike
	// before; nil for none.
	Offer(ctx context.Context, r *policy.Request) *policy.SuggestedGrant

	// CommandLine is a command of this program as a person has to type it to reach this hub: words
	// are its arguments.
	CommandLine(words string) string
}

// Admitter decides about calls of deferred tools.
type Admitter interface {
	// Admit returns nil, or the *tool.Failure that carries what the next call needs, and the
	// records of that.
	Admit(tool.DeferredCall) ([]tool.Record, error)
}

// Options are the parts that a Pipeline works with. Executors, Settings, People, Journal, Schemas
// and Logger are needed.
type Options struct {
	Executors map[string]Executor // by the source of a tool's canonical name
	Settings  Settings
	People    People
	Journal   *persist.Journal
	Schemas   *schema.Cache
	Logger    *slog.Logger

	Results   *payload.Store      // stores large results; nil: those are passed on whole
	Sources   Sources             // of what a result names; nil where no rule for results has artifacts taken in
	Admit     Admitter            // nil: calls of deferred tools are let through
	Approvals *approval.Approvals // open questions; nil: nobody is asked, which denies what would be asked about
	SignIn    tool.SignInAsker    // nil: calls that need a sign-in end with that
	Observer  Observer            // is told of calls; nil: nobody is

	Key     []byte         // of digests of inputs that hold secrets; nil: one that ends with the process
	Secrets *secret.Masker // of what is recorded; nil: one whose marks do not tell equal secrets
	Hub     string         // what records call this hub
}

// note gives the journal what is new of a call that waits or runs. The call does not wait for that.
// failure is the log message for where it fails.
func (o *Options) note(ctx context.Context, inv *invocation, failure string) {
	if err := o.Journal.Note(ctx, &inv.record); err != nil {
		o.Logger.Warn(failure, "invocation", inv.id, "error", err)
	}
}

// Pipeline runs invocations. It is safe for concurrent use and holds nothing of a call once that has ended.
type Pipeline struct {
	opts       Options
	validator  *validator
	approver   *approver
	scheduler  *scheduler
	rates      rates
	sayRefused rate.Sometimes // in the log
	phases     [12]phase
	groups     groups
}

// New returns a pipeline.
func New(o Options) (*Pipeline, error) {
	if o.Settings == nil || o.People == nil || o.Journal == nil || o.Schemas == nil || o.Logger == nil {
		return nil, errors.New("new pipeline: settings, people, journal, schemas and logger are all needed")
	}
	if o.Secrets == nil {
		o.Secrets = secret.New(nil)
	}
	if o.Key == nil {
		o.Key = []byte(rand.Text())
	}
	p := &Pipeline{opts: o, validator: &validator{schemas: o.Schemas, logger: o.Logger},
		scheduler: newScheduler(o.Settings), phases: phases(),
		sayRefused: rate.Sometimes{Interval: time.Minute}}
	p.approver = &approver{opts: &p.opts, arguments: p.validator, patience: 15 * time.Second}
	return p, nil
}

// Load returns what the pipeline knows of the calls to a server or built-in toolset.
func (p *Pipeline) Load(server string) ServerLoad { return p.scheduler.load(server) }

// phase is a row of the phase table: one of the standard's twelve phases.
type phase struct {
	name string
	run  func(*Pipeline, context.Context, *invocation) error // nil: nothing is left to do

	// always: the phase also runs for an invocation that has failed already, to bring it to its end.
	always bool

	// again: the phase also runs for an invocation that goes on after it was suspended. What was
	// parsed and checked stays, and hooks run once. Whether the tool is still there and still
	// allowed is asked anew.
	again bool
}

// phases is the pipeline, in order. A phase that returns an error fails the invocation; from then
// on only the rows marked always run.
func phases() [12]phase {
	return [...]phase{
		{"resolve_tool", (*Pipeline).resolveTool, false, true},
		{"parse_schema", (*Pipeline).parseSchema, false, false},
		// No tool declares checks beyond the schema: executors make them before their first side effect.
		{"validate_values", nil, false, false},
		{"prepare_observable_input", nil, false, false}, // parseSchema makes the inputs
		{"pre_hooks", (*Pipeline).preHooks, false, false},
		{"permission", (*Pipeline).permission, false, true},
		{"schedule", (*Pipeline).schedule, false, true},
		{"execute", (*Pipeline).execute, false, true},
		{"map_result", (*Pipeline).mapResult, true, true},
		{"post_hooks", (*Pipeline).postHooks, true, true},
		{"persist_result", (*Pipeline).persistResult, true, true},
		{"emit_terminal", (*Pipeline).emitTerminal, true, true},
	}
}

// Invoke runs c through the pipeline and returns how it ended, or for a call with retries, what it waits for. It always
// returns an outcome: also for a tool that does not exist, a canceled context or a panic in an executor.
func (p *Pipeline) Invoke(ctx context.Context, c *Call) Outcome {
	if c.Member != nil && c.Member.Group.ID != "" {
		return p.grouped(ctx, c)
	}
	return p.run(ctx, p.begin(ctx, c))
}

// run is the one loop: from the beginning, or from where a suspended invocation goes on. Nobody uses inv after its end.
func (p *Pipeline) run(ctx context.Context, inv *invocation) (out Outcome) {
	defer func() {
		inv.release()
		if out.Task != nil {
			out.Task.await(p, inv)
		}
	}()
	for ; inv.next < len(p.phases); inv.next++ {
		ph := &p.phases[inv.next]
		if inv.failure != nil && !ph.always || inv.resumed && !ph.again {
			continue
		}
		if err := p.runPhase(ctx, ph, inv); err != nil {
			inv.fail(err)
		}
		p.noteLap(inv, ph.name)
		if inv.reply.NeedsInput && inv.failure == nil {
			return p.suspend(ctx, inv)
		}
	}
	if inv.outcome.Result == nil && inv.outcome.Err == nil { // the finish itself failed
		inv.mapFailure()
		inv.moveTo(inv.final)
	}
	p.observe(ctx, inv)
	if inv.hidden { // the records have the truth, and whoever asked must not see it in a batch either
		inv.outcome.Status, inv.outcome.Class, inv.outcome.Error = tool.StatusFailed, tool.ClassUnknownTool, nil
	}
	return inv.outcome
}

// runPhase runs one phase and turns a panic into a failure: one faulty tool must not end everybody's hub.
func (p *Pipeline) runPhase(ctx context.Context, ph *phase, inv *invocation) (err error) {
	defer func() {
		if r := recover(); r != nil {
			p.opts.Logger.Error("panic in the pipeline", "phase", ph.name, "invocation", inv.id, "tool", inv.toolID(),
				"panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = &tool.Failure{Class: tool.ClassExecutionFailed, Code: "internal_error",
				OutcomeUnknown: !inv.started.IsZero(),
				Message: "the hub failed while it handled this call; its log says where. Try again, and report it " +
					"if it stays"}
		}
	}()
	if ph.run == nil {
		return nil
	}
	return ph.run(p, ctx, inv)
}

// Suspended is an invocation whose server needs input that the client's next request brings. It
// holds no place at the server. Its owner calls exactly one of Resume and End, once, so that the
// invocation gets its one terminal result.
type Suspended struct {
	pipeline *Pipeline
	inv      *invocation
}

// suspend tells the journal that the invocation waits for input.
func (p *Pipeline) suspend(ctx context.Context, inv *invocation) Outcome {
	if !rawjson.IsObject(inv.reply.Result) {
		inv.reply.Result = []byte(`{}`)
	}
	inv.resumed, inv.next = true, 0
	inv.moveTo(tool.StatusNeedsInput)
	out := Outcome{InvocationID: inv.id, Status: inv.status, Result: inv.reply.Result,
		Revision: inv.reply.Mapping.ProtocolVersion, Suspended: &Suspended{p, inv}}
	inv.reply = tool.Reply{}
	p.opts.note(context.WithoutCancel(ctx), inv, "a wait for input is not in the journal")
	return out
}

// Resume goes on with the client's next request c, under the same id and with the arguments that
// were checked first. The tool must still be there under c.Name, and allowed.
func (w *Suspended) Resume(ctx context.Context, c *Call) Outcome {
	w.inv.call = c
	w.pipeline.noteLap(w.inv, string(tool.StatusNeedsInput))
	w.inv.record.Name(c.Surface)
	w.inv.record.Resumed(clientSide(c), c.Surface.ID, time.Now())
	return w.pipeline.run(ctx, w.inv)
}

// End ends the invocation. err is a *tool.Failure, or a *tool.RPCError that the client gets.
func (w *Suspended) End(ctx context.Context, err error) Outcome {
	w.pipeline.noteLap(w.inv, string(tool.StatusNeedsInput))
	w.inv.fail(err)
	return w.pipeline.run(ctx, w.inv)
}
