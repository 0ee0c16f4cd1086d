package invoke

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// invocation is the state of one call on its way through the phases. One goroutine owns it at a
// time, apart from what the reporter guards.
type invocation struct {
	call   *Call
	id     tool.InvocationID
	listed *tool.Listed // nil until resolved

	inputs inputs
	facts  *facts.Facts // of the tool; nil until resolved
	key    []byte       // Options.Key

	status tool.Status
	record persist.Call
	client tool.ClientRef // as the record has it

	decision tool.PermissionDecision // the last one, as it is recorded

	described bool // the record has the input
	invalid   bool // the record says what is wrong with the arguments

	started time.Time // when the executor was about to be called; zero before

	approved  *consent // so that nobody is asked again after a suspension
	permitted gate.Permitted
	hidden    bool // the policy hides the tool from the caller, who is answered as to an unknown name
	yielded   bool // it ends before a person has answered: its client is to call again

	hooks *hooked // nil where no hook can match
	walk
	reply   tool.Reply
	failure *tool.Failure  // why the invocation failed, in the hub's words
	rpcErr  *tool.RPCError // the JSON-RPC error to answer with, where there is one

	observation

	end     persist.CallEnd // as the journal keeps it
	outcome Outcome
	place   place       // at the server
	final   tool.Status // the last one, which it comes to when its hooks have ended
}

// walk is how far an invocation has come.
type walk struct {
	next    int  // the phase that it is in, or goes on with
	resumed bool // it was suspended before
	waited  bool // other calls may have run since it was permitted
}

// inputs are the standard's four inputs. model is never written to; each of the others is a fresh
// value where it differs.
type inputs struct {
	model, observable, permission, call json.RawMessage
}

func (p *Pipeline) begin(ctx context.Context, c *Call) *invocation {
	inv := &invocation{call: c, id: c.Invocation, inputs: inputs{model: c.Arguments},
		status: tool.StatusPlanned, key: p.opts.Key}
	if inv.id == "" {
		inv.id = tool.NewInvocationID()
	}
	if o := p.opts.Observer; o != nil && c.Request == nil { // the door and the servers tell of requests
		inv.trace = o.Begin(ctx, c)
	}
	head := persist.CallHead{Invocation: inv.id, Tool: tool.UnknownTool, Surface: c.Surface.ID, Actor: c.Actor.Ref(),
		Profile: c.Surface.Profile, Created: time.Now(), Origin: tool.Origin{Address: c.Actor.Address, Hub: p.opts.Hub}}
	if inv.client = (tool.ClientRef{Name: hidden.Cut(c.Actor.Client.Name, maxSaid),
		Version: hidden.Cut(c.Actor.Client.Version, maxSaid)}); inv.client != (tool.ClientRef{}) {
		head.Client = &inv.client
	}
	if m := c.Member; m != nil {
		head.Parent, head.Batch = m.Parent, m.Group.ID
	}
	inv.record.Secrets = p.opts.Secrets
	client := clientSide(inv.call)
	client.ToolName, _ = inv.record.Secrets.Text(client.ToolName) // a tool that nobody has may be called anything
	inv.record.Begin(head, client)
	inv.record.Name(c.Surface)
	return inv
}

// maxSaid bounds the bytes of a text of strangers that each call's record repeats.
const maxSaid = 200

// clientSide returns the native ids of a call on the client's side.
func clientSide(c *Call) tool.ExternalMapping {
	return tool.ExternalMapping{Source: tool.SourceMCP, Role: "client", SessionID: c.Actor.Session,
		ProtocolVersion: c.Actor.Client.ProtocolVersion, Method: c.Method, ToolName: cmp.Or(c.Via, c.Name),
		JSONRPCRequestID: string(c.NativeCallID)}
}

// answeredBy notes the requests that have brought answers, where the client came back with another
// one than the call's, and those before them that have brought none.
func (inv *invocation) answeredBy(answers []tool.Answer) {
	resumed := func(request json.RawMessage) {
		m := clientSide(inv.call)
		m.JSONRPCRequestID = string(request)
		inv.record.Resumed(m, inv.call.Surface.ID, time.Now())
	}
	for i, a := range answers {
		for _, request := range a.Earlier {
			resumed(request)
		}
		noted := slices.ContainsFunc(answers[:i], func(b tool.Answer) bool { return bytes.Equal(a.Request, b.Request) })
		if a.Request != nil && !noted {
			resumed(a.Request)
		}
	}
}

// fail records why the invocation failed. The first reason stays: a later phase that fails too adds nothing that the
// caller could act on.
func (inv *invocation) fail(err error) {
	if inv.failure != nil {
		return
	}
	inv.failedIn = inv.next
	inv.call.Arrival.Leave()
	var f *tool.Failure
	var rpc *tool.RPCError
	switch {
	case errors.As(err, &f):
		inv.failure = f
	case errors.As(err, &rpc):
		inv.rpcErr = rpc
		inv.failure = &tool.Failure{Class: classOfRPC(rpc.Code), Code: codeUpstreamError, Message: rpc.Text(),
			Cause: err}
		if rpc.Code == tool.CodeMissingCapabilities {
			inv.failure.Code = "missing_client_capability"
		} else if rpc.Own {
			inv.failure.Class, inv.failure.Code = tool.ClassSetupRequired, tool.CodeNeedsSignIn
		}
	default:
		inv.failure = &tool.Failure{Class: tool.ClassExecutionFailed, Code: "internal_error", Cause: err,
			Message: "the hub failed while it handled this call; its log says why. Try again, and report it if it stays"}
	}
}

// codeUpstreamError is the error_code of a JSON-RPC error of a server.
const codeUpstreamError = "upstream_error"

// classOfRPC returns the standard's class for a JSON-RPC error of a server.
func classOfRPC(code int64) tool.ErrorClass {
	switch code {
	case tool.CodeInvalidParams:
		return tool.ClassInvalidArguments
	case tool.CodeMethodNotFound, tool.CodeMissingCapabilities:
		return tool.ClassCapabilityGap
	}
	return tool.ClassExecutionFailed
}

func (inv *invocation) toolID() tool.Name { return inv.record.Tool }

// moveTo changes the invocation's status; every status that it had stays in its record.
func (inv *invocation) moveTo(s tool.Status) {
	inv.status = s
	inv.record.Move(s, time.Now())
}

// release gives back what the invocation holds of the hub. Before that, its siblings hear of its
// failure, if it has failed.
func (inv *invocation) release() {
	class := inv.outcome.Class
	if m := inv.call.Member; m != nil && m.Failed != nil && class != "" {
		status := inv.final
		if inv.hidden {
			status = tool.StatusFailed // as its caller is told
		}
		m.Failed(status, class)
	}
	if inv.place.queue == nil {
		return
	}
	// that somebody gave up is no fault of the server
	inv.place.leave(class != "" && class != tool.ClassCanceled && class != tool.ClassStreamingDiscarded)
	inv.place = place{}
}

// describe gives the record what the journal keeps of the input. It is called before the first
// line, when the tool is known whose facts say what is secret, and before the last one.
func (inv *invocation) describe() {
	if inv.described {
		return
	}
	inv.described = true
	in := &inv.record.Input
	in.Model, in.ModelRef = inv.inline(inv.inputs.model)
	if len(inv.shown(inv.inputs.model)) != len(inv.inputs.model) { // a batch: its calls have the rest
		in.ModelRef = inv.ref(inv.inputs.model)
	}
	if rawjson.IsNull(inv.inputs.model) && inv.inputs.observable != nil {
		in.Observable = inv.inputs.observable
	}
}
