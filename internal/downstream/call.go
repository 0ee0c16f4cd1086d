package downstream

import (
	"context"
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// call serves tools/call: it reads what the pipeline needs out of the raw request and writes the outcome back.
func (s *Server) call(ctx context.Context, p peer, m message, r replier) {
	if !rawjson.IsObject(m.params) {
		r.refuse(invalidParams("params are missing"))
		return
	}
	rawName, _ := rawjson.Get(m.params, "name")
	name, ok := rawjson.String(rawName)
	if !ok || name == "" {
		r.refuse(invalidParams(`"name" must be a non-empty string`))
		return
	}
	surface, err := s.deps.Surfaces.Surface(p.profile, p.actor.Client)
	if err != nil {
		r.refuse(&tool.RPCError{Code: tool.CodeInternalError, Message: err.Error()})
		return
	}
	ctx, done, refusal := p.inflight.add(ctx, m.id)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	defer done()
	args, _ := rawjson.Get(m.params, "arguments")
	token, meta := splitMeta(m.params)
	outcome := s.deps.Pipeline.Invoke(ctx, invoke.Call{
		Surface: surface, Name: name, Params: m.params, Arguments: args, Meta: meta, Hop: p.hop,
		NativeCallID: m.id, Method: m.method, Actor: p.actor, Progress: progressTo(r, token),
	})
	if outcome.Err != nil {
		r.refuse(outcome.Err)
		return
	}
	if outcome.Status == tool.StatusCanceled && ctx.Err() != nil && r.abandon() {
		return
	}
	result, err := s.resultFor(p, outcome)
	if err != nil {
		s.deps.Logger.Error("result cannot be sent", "invocation", outcome.InvocationID, "error", err)
		r.refuse(&tool.RPCError{Code: tool.CodeInternalError, Message: "the tool's result is no JSON object"})
		return
	}
	r.answer(result)
}

// progressTo passes progress on under the client's own token; nil where the client gave none.
func progressTo(r replier, token json.RawMessage) func(tool.Progress) {
	if token == nil {
		return nil
	}
	return func(u tool.Progress) {
		if params, err := rawjson.Set(u.Params, "progressToken", token); err == nil {
			r.notify(noteProgress, params)
		}
	}
}
