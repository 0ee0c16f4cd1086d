package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream/internal/suspended"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// forwarder sends requests other than tools/call on to the one server that they concern.
type forwarder struct {
	*parts
}

// onward is the server that a request goes to, and the name or URI in the request that is another one there.
type onward struct {
	server   string
	path     []string // of the member of params that holds from
	from, to string

	unknown bool // the hub does not know the method; then nothing else in it

	task *invoke.Task // that the request is about; nil for none
}

// params returns the client's params, with the name that the server knows.
func (o onward) params(params json.RawMessage) (json.RawMessage, error) {
	if o.from == o.to {
		return params, nil
	}
	return rawjson.SetIn(params, rawjson.Quote(o.to), o.path...)
}

// forward sends a request on to a server and the server's answer back. Requests about tasks are not
// decided about: their calls were.
func (f *forwarder) forward(ctx context.Context, p *peer, m *jsonrpc.Message, r replier, to onward) *tool.RPCError {
	params, err := to.params(m.Params)
	if err != nil {
		return invalidParams(err.Error())
	}
	// A server of 2026-07-28 may need input for these, besides tools/call.
	takesInput := m.Method == tool.MethodPromptsGet || m.Method == tool.MethodResourcesRead
	state, _ := m.Object.Get("requestState")
	a := &attempt{peer: p, params: params, requestState: state, server: to.server, reply: r,
		token: p.meta.token, retries: p.modern && takesInput}
	op := &forwardedRequest{toolCall: toolCall{toolCalls: &f.toolCalls}, forwarder: f, to: to,
		request: tool.Request{
			Server: to.server, Method: m.Method, Params: params, Meta: p.meta.onward, Hop: p.hop, Session: p.session,
			Unknown: to.unknown}}
	if a.op = op; to.unknown {
		op.request.Name = p.named
	}
	if !isTaskMethod(m.Method) {
		var refusal *tool.RPCError
		if op.call, refusal = f.callOf(p, m, to, params, op.send); refusal != nil {
			return refusal
		}
	}
	f.suspensions.serve(ctx, a)
	return nil
}

// callOf returns a request as a call of the pipeline, for which send sends it on. Completion asks
// nobody: people get it as they type.
func (f *forwarder) callOf(p *peer, m *jsonrpc.Message, to onward, params json.RawMessage,
	send func(context.Context, *tool.Execution) (tool.Reply, error)) (c invoke.Call, refusal *tool.RPCError) {
	surface, refusal := f.surfaces.of(p)
	if refusal != nil {
		return c, refusal
	}
	c = invoke.Call{Surface: surface, Params: params, Meta: p.meta.onward, Hop: p.hop, NativeCallID: m.ID,
		Method: clip(m.Method),
		Actor:  p.actor, Session: p.session, Request: &invoke.Request{Send: send,
			Method:  f.deps.Servers.Method(to.server, m.Method, !to.unknown),
			Unasked: m.Method == tool.MethodComplete}}
	if rawjson.IsObject(params) {
		own := []string{"_meta"}
		if p.modern && !to.unknown { // of a retry
			own = append(own, "inputResponses", "requestState")
		}
		arguments, _, err := rawjson.DeleteFunc(params,
			func(m rawjson.Member) bool { return slices.Contains(own, m.Name()) })
		if err != nil {
			return c, invalidParams(err.Error())
		}
		c.Arguments = arguments
	}
	return c, nil
}

// permitted runs a request about a server, or a notification, that the client waits for no answer
// of: do, where the policy lets it. Nobody is asked.
func (f *forwarder) permitted(ctx context.Context, p *peer, m *jsonrpc.Message, to onward,
	do func(context.Context) error) *tool.RPCError {
	c, refusal := f.callOf(p, m, to, m.Params, func(ctx context.Context, _ *tool.Execution) (tool.Reply, error) {
		by := tool.ExternalMapping{Source: tool.SourceMCP, Role: "upstream", ServerID: to.server,
			Method: clip(m.Method)}
		return tool.Reply{Result: json.RawMessage("{}"), Mapping: by}, do(ctx)
	})
	if refusal != nil {
		return refusal
	}
	c.Request.Unasked = true
	return f.deps.Pipeline.Invoke(ctx, &c).Err
}

// forwardedRequest is the operation of a request that goes on to a server. Nothing of it is left
// between two attempts, but for what the pipeline keeps.
type forwardedRequest struct {
	toolCall
	*forwarder
	request tool.Request // apart from what depends on the attempt
	to      onward
	retry   bool // whose params may have less than those that were judged
}

func (f *forwardedRequest) identify(s *suspended.State) {
	arguments, _ := rawjson.Get(f.request.Params, "arguments")
	s.Method, s.Name, s.Arguments = f.request.Method, f.to.to, suspended.ArgumentsDigest(arguments)
}

func (f *forwardedRequest) run(ctx context.Context, a *attempt) invoke.Outcome {
	if f.call.Request != nil {
		f.retry = a.before != nil
		return f.toolCall.run(ctx, a)
	}
	request := f.request
	request.Params, request.Ask, request.Notify = a.params, a.ask, a.notes.notify
	if a.token != nil {
		request.Progress = a.notes.report
	}
	reply, err := f.deps.Servers.Forward(ctx, &request)
	// the reason of the cancellation
	if why := (*tool.Failure)(nil); err != nil && errors.As(context.Cause(ctx), &why) {
		err = why
	}
	return invoke.Outcome{Result: reply.Result, Free: reply.Free, Err: f.errorOf(err),
		Revision: reply.Mapping.ProtocolVersion}
}

// send sends the request on that the pipeline lets through.
func (f *forwardedRequest) send(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
	request := f.request
	request.Params, request.Ask, request.InputByRetry, request.Notify = e.Params, e.Ask, e.InputByRetry, e.Notify
	if f.call.Progress != nil {
		request.Progress = e.Progress
	}
	var err error
	// what was judged is sent: a hook, a person or a retry may have changed it
	_ = rawjson.Members(e.Arguments, func(m rawjson.Member) bool {
		if was, there := rawjson.Get(request.Params, m.Name()); (there || !f.retry) && !bytes.Equal(was, m.Value) {
			request.Params, err = rawjson.Set(request.Params, m.Name(), m.Value)
		}
		return err == nil
	})
	if err != nil {
		return tool.Reply{}, err
	}
	return f.deps.Servers.Forward(ctx, &request)
}

func (f *forwardedRequest) answer(ctx context.Context, a *attempt, o invoke.Outcome) {
	needsInput, why := o.Status == tool.StatusNeedsInput, o.Err
	if !needsInput {
		a.peer.caller.remember(a.server, o.Result)
	}
	if why == nil {
		to := answeredRequest{onward: f.to, method: f.request.Method, revision: o.Revision, needsInput: needsInput}
		text, err := f.resultOf(ctx, a.peer, to, o.Result)
		if err == nil {
			answer := pieces{parts: [][]byte{text}, disk: f.deps.Spool, free: o.Free}
			if a.reply.answer(answer) && answer.free != nil {
				answer.free()
			}
			return
		}
		why = f.errorOf(err)
	}
	f.ownerships.elicitsFirst(a.peer, a.server, why)
	a.reply.refuse(labelledError(a.server, why))
}

// answeredRequest is a request that a server has answered.
type answeredRequest struct {
	onward
	method     string
	revision   string // of the protocol that the server speaks
	needsInput bool   // the server needs input first
}

// resultOf returns a server's result as this client gets it.
func (f *forwarder) resultOf(ctx context.Context, p *peer, to answeredRequest,
	given json.RawMessage) (json.RawMessage, error) {
	if !rawjson.IsObject(given) {
		return nil, &tool.RPCError{Code: tool.CodeInternalError, Message: "the server's result is no JSON object"}
	}
	result, err := tool.WithoutHop(given)
	if err != nil {
		return nil, fmt.Errorf("clean _meta of result: %w", err)
	}
	if isTaskMethod(to.method) {
		if result, err = taskResult(ctx, p, to, result); err != nil {
			return nil, err
		}
	}
	if !p.modern {
		if !to.unknown && to.revision >= modernVersion {
			result, _, err = rawjson.DeleteFunc(result, func(m rawjson.Member) bool {
				return m.Is("resultType") || m.Is("ttlMs") || m.Is("cacheScope")
			})
		}
		return result, err
	}
	set := func(member string, value []byte) {
		if err == nil {
			result, err = rawjson.Set(result, member, value)
		}
	}
	if to.method == tool.MethodResourcesRead && !to.needsInput {
		// Who may read it is this hub's affair, so that no cache may share it. For how long it is
		// good, its server knows.
		if ttl, _ := rawjson.Get(result, "ttlMs"); len(ttl) == 0 || ttl[0] < '0' || ttl[0] > '9' {
			set("ttlMs", []byte("0"))
		}
		set("cacheScope", []byte(`"private"`))
	}
	if kind, ok := rawjson.Get(result, "resultType"); !ok || !to.unknown && !to.needsInput && asksForInput(kind) {
		set("resultType", []byte(`"complete"`))
	}
	if given, ok := rawjson.Get(result, "_meta"); ok && !rawjson.IsObject(given) {
		return result, err // null: it stays as it came
	}
	meta, metaErr := rawjson.Set(rawjson.GetObject(result, "_meta"), mcp.MetaKeyServerInfo, f.serverInfo)
	set("_meta", meta)
	return result, errors.Join(err, metaErr)
}

// errorOf returns err as a client gets it.
func (f *forwarder) errorOf(err error) *tool.RPCError {
	var rpc *tool.RPCError
	var failure *tool.Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &rpc):
		return rpc
	case errors.As(err, &failure):
		return failure.RPC()
	}
	f.deps.Logger.Error("request failed", "error", err)
	return &tool.RPCError{Code: tool.CodeInternalError,
		Message: "the hub failed while it handled this request; its log says why"}
}

// getPrompt serves prompts/get: the prompt goes by any of its names here, and by its own one on.
func (f *forwarder) getPrompt(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	name, refusal := textParam(m, "name")
	if refusal != nil {
		return refusal
	}
	var server, native string
	refusal = f.surfaces.find(ctx, p, func(s *tool.Surface) (none *tool.RPCError) {
		server, native, none = promptOf(p, s, name)
		return none
	})
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
	uri, server, native, refusal := f.surfaces.ownedResource(ctx, p, m)
	if refusal != nil {
		return refusal
	}
	return f.forward(ctx, p, m, r, onward{server: server, path: []string{"uri"}, from: uri, to: native})
}

// complete serves completion/complete. Its ref names a prompt or a resource, and so the server.
func (f *forwarder) complete(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	ref, _ := rawjson.Get(m.Params, "ref")
	kind, _ := rawjson.GetString(ref, "type")
	member := map[string]string{"ref/prompt": "name", "ref/resource": "uri"}[kind]
	text, ok := rawjson.GetString(ref, member)
	if member == "" || !ok || text == "" {
		return invalidParams(`"ref" must be a ref/prompt with a name or a ref/resource with a uri`)
	}
	to := onward{path: []string{"ref", member}, from: text}
	refusal := f.surfaces.find(ctx, p, func(s *tool.Surface) (none *tool.RPCError) {
		if member == "name" {
			to.server, to.to, none = promptOf(p, s, text)
		} else {
			to.server, to.to, none = templateOf(p, s, text)
		}
		return none
	})
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

// passNote sends a notification on that the hub does not know, and returns when the server has it or does not take it.
func (f *forwarder) passNote(ctx context.Context, p *peer, m *jsonrpc.Message) {
	server, refusal := f.surfaces.soleServer(p)
	if refusal != nil {
		return
	}
	p.hop.Revision, p.hop.Direct = p.actor.Client.ProtocolVersion, true
	params := m.Params
	if rawjson.IsNull(params) {
		params = nil
	}
	err := f.permitted(ctx, p, m, onward{server: server, unknown: true}, func(ctx context.Context) error {
		return f.deps.Servers.Notify(ctx, &tool.Request{Server: server, Method: m.Method, Params: params, Hop: p.hop,
			Session: p.session})
	})
	if err != nil {
		f.deps.Logger.Warn("a client's notification did not reach the server", "server", server, "method",
			clip(m.Method), "error", err)
	}
}

// clip shortens text that a stranger wrote, for the log.
func clip(text string) string { return fmt.Sprintf("%.100s", text) }
