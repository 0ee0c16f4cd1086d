package downstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream/internal/suspended"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// forwarder sends requests other than tools/call on to the one server that they concern.
type forwarder struct {
	deps        *Deps
	serverInfo  json.RawMessage
	surfaces    *surfaceReader
	suspensions *suspensions
	ownerships  *ownerships
}

// onward is the server that a request goes to, and the name or URI in the request that is another one there.
type onward struct {
	server   string
	path     []string // of the member of params that holds from
	from, to string

	unknown bool // the hub does not know the method; then nothing else in it

	task *invoke.Task // nil for none
}

// params returns the client's params, with the name that the server knows.
func (o onward) params(params json.RawMessage) (json.RawMessage, error) {
	if o.from == o.to {
		return params, nil
	}
	return rawjson.SetIn(params, rawjson.Quote(o.to), o.path...)
}

// forward sends a request on to a server and the server's answer back.
func (f *forwarder) forward(ctx context.Context, p *peer, m *jsonrpc.Message, r replier, to onward) *tool.RPCError {
	if why := f.refusal(ctx, p, m, to); why != nil {
		return f.failed(ctx, r, why)
	}
	params, err := to.params(m.Params)
	if err != nil {
		return invalidParams(err.Error())
	}
	request := tool.Request{Server: to.server, Method: m.Method, Params: params, Meta: p.meta.onward, Hop: p.hop, Session: p.session,
		Unknown: to.unknown}
	if to.unknown {
		request.Name = p.named
	}
	// A server of 2026-07-28 may need input for these, besides tools/call.
	takesInput := m.Method == methodPromptsGet || m.Method == methodResourcesRead
	state, _ := m.Object.Get("requestState")
	f.suspensions.serve(ctx, &attempt{peer: p, op: &forwardedRequest{f, request, to}, params: params, requestState: state, server: to.server,
		reply: r, progress: progressQueue{replier: r, token: p.meta.token}, retries: p.modern && takesInput})
	return nil
}

// forwardedRequest is the operation of a request that goes on to a server. Nothing of it is left between two attempts.
type forwardedRequest struct {
	*forwarder
	request tool.Request // apart from what depends on the attempt
	to      onward
}

func (f *forwardedRequest) identify(s *suspended.State) {
	arguments, _ := rawjson.Get(f.request.Params, "arguments")
	s.Method, s.Name, s.Arguments = f.request.Method, f.to.to, suspended.ArgumentsDigest(arguments)
}

func (f *forwardedRequest) run(ctx context.Context, a *attempt, l link) attemptResult {
	request := f.request
	request.Params = a.params
	request.InputByRetry, request.Ask, request.Progress, request.Notify = a.retries, l.ask, l.report, l.notify
	if of := f.to.task; of != nil && l.ask != nil {
		request.Ask = func(ctx context.Context, questions []tool.Question) ([]tool.Answer, error) {
			defer of.Tell(tool.MethodTaskUpdate, nil) // the server goes on with the task
			return l.ask(ctx, questions)
		}
	}
	reply, err := f.deps.Servers.Forward(ctx, &request)
	if why := tool.NeedsSignIn(err); why != nil && f.deps.SignIns != nil {
		err = f.deps.SignIns.SignIn(ctx, &tool.SignInNeed{Server: request.Server, Why: why, Actor: a.peer.actor, Session: request.Session,
			Hop: request.Hop, Ask: request.Ask, Progress: request.Progress, Aside: func(_ context.Context, wait func()) { wait() }})
		if err == nil {
			reply, err = f.deps.Servers.Forward(ctx, &request)
		}
	}
	r := attemptResult{reply: &reply, err: err}
	var why *tool.Failure
	switch {
	case err != nil && errors.As(context.Cause(ctx), &why): // whoever canceled it has given a reason
		r.err = why
	case err == nil && reply.NeedsInput && reply.Result == nil:
		r.needs = json.RawMessage("{}")
	case err == nil && reply.NeedsInput:
		r.needs = reply.Result
	}
	return r
}

func (f *forwardedRequest) end(_ context.Context, _ attemptResult, why error) attemptResult {
	return attemptResult{err: why}
}

func (f *forwardedRequest) answer(ctx context.Context, a *attempt, r attemptResult) {
	reply, err := cmp.Or(r.reply, &tool.Reply{}), r.err
	if r.needs != nil {
		reply = &tool.Reply{Result: r.needs, NeedsInput: true, Mapping: reply.Mapping}
	}
	var result json.RawMessage
	if err == nil {
		if !reply.NeedsInput {
			object, _ := reply.Object.(rawjson.Object)
			a.peer.caller.remember(a.server, reply.Result, object)
		}
		to := answeredRequest{server: a.server, method: f.request.Method, asked: f.to.from, native: f.to.to, unknown: f.to.unknown,
			task: f.to.task}
		result, err = f.resultOf(ctx, a.peer, to, reply)
	}
	if err != nil {
		var rpc *tool.RPCError
		if errors.As(err, &rpc) {
			f.ownerships.elicitsFirst(a.peer, a.server, rpc)
			err = labelledError(a.server, rpc)
		}
		if e := f.failed(ctx, a.reply, err); e != nil {
			a.reply.refuse(e)
		}
		return
	}
	if a.reply.answer(whole(result)) && reply.Free != nil {
		reply.Free()
	}
}

// answeredRequest is a request that a server has answered.
type answeredRequest struct {
	server, method string
	asked, native  string // name or URI of what it is about, as the client and as the server know it
	unknown        bool   // the hub does not know the method

	task *invoke.Task // that it is about; nil for none
}

// resultOf returns a server's result as this client gets it.
func (f *forwarder) resultOf(ctx context.Context, p *peer, to answeredRequest, reply *tool.Reply) (json.RawMessage, error) {
	if !rawjson.IsObject(reply.Result) {
		return nil, &tool.RPCError{Code: tool.CodeInternalError, Message: "the server's result is no JSON object"}
	}
	result, err := withoutHop(reply.Result)
	if err != nil {
		return nil, fmt.Errorf("clean _meta of result: %w", err)
	}
	if isTaskMethod(to.method) {
		if result, err = taskResult(ctx, p, to, result); err != nil {
			return nil, err
		}
	}
	if !p.modern {
		if !to.unknown && reply.Mapping.ProtocolVersion >= modernVersion {
			result, _, err = rawjson.Delete(result, "resultType")
		}
		return result, err
	}
	set := func(member string, value []byte) {
		if err == nil {
			result, err = rawjson.Set(result, member, value)
		}
	}
	if to.method == methodResourcesRead && !reply.NeedsInput {
		// Who may read it is this hub's affair, so that no cache may share it. For how long it is good, its server knows.
		if ttl, _ := rawjson.Get(result, "ttlMs"); len(ttl) == 0 || ttl[0] < '0' || ttl[0] > '9' {
			set("ttlMs", []byte("0"))
		}
		set("cacheScope", []byte(`"private"`))
	}
	if kind, ok := rawjson.Get(result, "resultType"); !ok || !to.unknown && !reply.NeedsInput && asksForInput(kind) {
		set("resultType", []byte(`"complete"`))
	}
	meta, metaErr := rawjson.Set(rawjson.GetObject(result, "_meta"), mcp.MetaKeyServerInfo, f.serverInfo)
	set("_meta", meta)
	return result, errors.Join(err, metaErr)
}

// failed returns the error for a request that no server has answered with a result; nil where the client has cancelled it.
func (f *forwarder) failed(ctx context.Context, r replier, err error) *tool.RPCError {
	if ctx.Err() != nil && r.abandon(ctx) {
		return nil
	}
	var rpc *tool.RPCError
	var failure *tool.Failure
	switch {
	case errors.As(err, &rpc):
		return rpc
	case errors.As(err, &failure):
		about, _ := json.Marshal(map[string]any{metaError: map[string]any{"error_class": failure.Class,
			"error_code": failure.ErrorCode(), "retry_after_ms": failure.RetryAfter.Milliseconds()}})
		return &tool.RPCError{Code: tool.CodeInternalError, Message: failure.Message + failure.Private, Data: about}
	}
	f.deps.Logger.Error("request failed", "error", err)
	return &tool.RPCError{Code: tool.CodeInternalError, Message: "the hub failed while it handled this request; its log says why"}
}

// metaError is the member of an error's data that describes a failed request for machines.
const metaError = "toolhub/error"

// getPrompt serves prompts/get: the prompt goes by any of its names here, and by its own one on.
func (f *forwarder) getPrompt(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	name, refusal := textParam(m, "name")
	if refusal != nil {
		return refusal
	}
	surface, refusal := f.surfaces.of(p)
	if refusal != nil {
		return refusal
	}
	server, native, refusal := promptOf(p, surface, name)
	if refusal != nil {
		return refusal
	}
	return f.forward(ctx, p, m, r, onward{server: server, path: []string{"name"}, from: name, to: native})
}

func promptOf(p *peer, surface *tool.Surface, name string) (server, native string, refusal *tool.RPCError) {
	if f := surface.Features; f != nil {
		if prompt, ok := f.Prompt(name); ok {
			return prompt.Server, prompt.Native, nil
		}
		if direct(p.profile) && len(f.Servers) == 1 {
			return f.Servers[0], name, nil // it knows best what it has
		}
	}
	return "", "", &tool.RPCError{Code: tool.CodeInvalidParams,
		Message: fmt.Sprintf("unknown prompt %q: list the prompts and use a name from there", name)}
}

// readResource serves resources/read.
func (f *forwarder) readResource(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	if uri, refusal := textParam(m, "uri"); refusal == nil && f.isStored(uri) {
		return f.readStored(ctx, p, m, r, uri)
	}
	uri, server, native, refusal := f.surfaces.ownedResource(p, m)
	if refusal != nil {
		return refusal
	}
	return f.forward(ctx, p, m, r, onward{server: server, path: []string{"uri"}, from: uri, to: native})
}

// complete serves completion/complete. Its ref names a prompt or a resource, and so the server.
func (f *forwarder) complete(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	surface, refusal := f.surfaces.of(p)
	if refusal != nil {
		return refusal
	}
	ref, _ := rawjson.Get(m.Params, "ref")
	kind, _ := rawjson.GetString(ref, "type")
	member := map[string]string{"ref/prompt": "name", "ref/resource": "uri"}[kind]
	text, ok := rawjson.GetString(ref, member)
	if member == "" || !ok || text == "" {
		return invalidParams(`"ref" must be a ref/prompt with a name or a ref/resource with a uri`)
	}
	to := onward{path: []string{"ref", member}, from: text}
	if member == "name" {
		to.server, to.to, refusal = promptOf(p, surface, text)
	} else {
		to.server, to.to, refusal = templateOf(p, surface, text)
	}
	if refusal != nil {
		return refusal
	}
	return f.forward(ctx, p, m, r, to)
}

// pass serves a request that the hub does not know: the server does.
func (f *forwarder) pass(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	server, refusal := f.surfaces.soleServer(p)
	if refusal != nil {
		return refusal
	}
	return f.forward(ctx, p, m, r, onward{server: server, unknown: true})
}

// Forwarded is a request of a client to a server besides tools/call: the policy of tools does not see it.
type Forwarded struct {
	Server  string
	Method  string
	Params  json.RawMessage // as the client sent them; nil where it sent none
	Unknown bool            // the hub does not know the method, so nobody knows what it does
	Actor   tool.Actor
	Profile string
}

// refusal returns why a request of p may not reach a server; nil where it may. Requests about tasks are not looked at: their
// calls were let through.
func (f *forwarder) refusal(ctx context.Context, p *peer, m *jsonrpc.Message, to onward) error {
	if f.deps.Refuse == nil || isTaskMethod(m.Method) {
		return nil
	}
	why := f.deps.Refuse(ctx, Forwarded{Server: to.server, Method: m.Method, Params: m.Params, Unknown: to.unknown, Actor: p.actor,
		Profile: p.profile})
	if why == nil {
		return nil
	}
	f.deps.Logger.Info("a request is refused by the policy", "server", to.server, "method", clip(m.Method), "actor", p.actor.Ref(),
		"why", why.Message)
	return why
}

// passNote sends a notification on that the hub does not know, and returns when the server has it or does not take it.
func (f *forwarder) passNote(ctx context.Context, p *peer, m *jsonrpc.Message) {
	server, refusal := f.surfaces.soleServer(p)
	if refusal != nil || f.refusal(ctx, p, m, onward{server: server, unknown: true}) != nil {
		return
	}
	p.hop.Revision, p.hop.Direct = p.actor.Client.ProtocolVersion, true
	params := m.Params
	if rawjson.IsNull(params) {
		params = nil
	}
	err := f.deps.Servers.Notify(ctx, &tool.Request{Server: server, Method: m.Method, Params: params, Hop: p.hop, Session: p.session})
	if err != nil {
		f.deps.Logger.Warn("a client's notification did not reach the server", "server", server, "method", clip(m.Method), "error", err)
	}
}

// clip shortens text that a stranger wrote, for the log.
func clip(text string) string { return fmt.Sprintf("%.100s", text) }
