package downstream

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// work is what a client of 2026-07-28 wants done, and what a server may need input for: an invocation or an errand.
type work interface {
	// bind says in a claim what the work is about.
	bind(c *claim)

	// run does a round of t, the first or the next, during which the server may use k.
	run(ctx context.Context, t *turn, k *parkable) outcome

	// end ends work that o says needs input. why is a *tool.Failure, or a *tool.RPCError for the client.
	end(ctx context.Context, o outcome, why error) outcome

	// answer writes o on the wire of t.
	answer(ctx context.Context, t *turn, o outcome)
}

// outcome is how work has ended, or what its server needs before it goes on.
type outcome struct {
	needs   json.RawMessage // a result of type input_required; nil where the work has ended
	invoked invoke.Outcome  // of an invocation, but for the result where there are needs
	reply   tool.Reply      // of an errand, likewise
	err     error           // of an errand: why there is no reply
}

// invocation is the work of tools/call, which the pipeline does.
type invocation struct {
	server *Server
	call   invoke.Call // but for what depends on the round
}

func (w *invocation) bind(c *claim) {
	c.Method, c.Arguments = w.call.Method, argumentsDigest(w.call.Arguments)
	if l, ok := w.call.Surface.Resolve(w.call.Name); ok {
		c.Name = string(l.Tool.Name)
	}
}

func (w *invocation) run(ctx context.Context, t *turn, k *parkable) outcome {
	c := w.call
	c.Invocation, c.Params = t.invocation, t.params
	c.InRounds, c.Ask, c.Progress, c.Notify, c.Hears = true, k.ask, k.report, k.notify, k.hears
	if t.before == nil {
		return w.outcomeOf(w.server.deps.Pipeline.Invoke(ctx, c))
	}
	return w.outcomeOf(t.before.invoked.Paused.Resume(ctx, c))
}

func (w *invocation) outcomeOf(o invoke.Outcome) outcome {
	if o.Paused == nil {
		return outcome{invoked: o}
	}
	return outcome{invoked: o, needs: o.Result}
}

func (w *invocation) end(ctx context.Context, o outcome, why error) outcome {
	return outcome{invoked: o.invoked.Paused.End(ctx, why)}
}

func (w *invocation) answer(ctx context.Context, t *turn, o outcome) {
	if o.needs != nil {
		o.invoked = invoke.Outcome{InvocationID: t.invocation, Status: tool.StatusNeedsInput, Result: o.needs}
	}
	kept := w.server.keepTask(t.peer, t.from, o.invoked, t.progress.token)
	defer kept.release()
	w.server.finishCall(ctx, t.peer, finished{t.from, t.reply, kept}, o.invoked)
}

// errand is the work of a request that goes on to a server. Between two rounds nothing of it is left.
type errand struct {
	server  *Server
	request tool.Request // but for what depends on the round
	native  string       // name or URI of what it is about, as the server knows it
}

func (w *errand) bind(c *claim) {
	arguments, _ := rawjson.Get(w.request.Params, "arguments")
	c.Method, c.Name, c.Arguments = w.request.Method, w.native, argumentsDigest(arguments)
}

func (w *errand) run(ctx context.Context, t *turn, k *parkable) outcome {
	r := w.request
	r.Params = t.params
	r.InRounds, r.Ask, r.Progress, r.Notify = true, k.ask, k.report, k.notify
	var o outcome
	if o.reply, o.err = w.server.deps.Servers.Forward(ctx, &r); o.err != nil {
		var why *tool.Failure
		if errors.As(context.Cause(ctx), &why) { // whoever canceled it has given a reason
			o.err = why
		}
		return o
	}
	if o.reply.NeedsInput {
		o.needs = o.reply.Result
		if o.needs == nil {
			o.needs = json.RawMessage("{}")
		}
	}
	return o
}

func (w *errand) end(_ context.Context, _ outcome, why error) outcome { return outcome{err: why} }

func (w *errand) answer(ctx context.Context, t *turn, o outcome) {
	if o.needs != nil {
		o.reply.Result, o.reply.NeedsInput, o.reply.Free = o.needs, true, nil
	}
	w.server.finishForward(ctx, t.peer, forwarded{server: w.request.Server, method: w.request.Method, wire: t.reply}, o.reply, o.err)
}
