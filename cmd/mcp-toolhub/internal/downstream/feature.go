package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// getPrompt serves prompts/get: the prompt goes by any of its names here, and by its own one on.
func (s *Server) getPrompt(ctx context.Context, p peer, m message, r replier) {
	name, refusal := textParam(m, "name")
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	surface, refusal := s.surface(p)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	server, native, refusal := promptOf(p, surface, name)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	s.forward(ctx, p, m, r, onward{server: server, member: "name", from: name, to: native})
}

func promptOf(p peer, surface *tool.Surface, name string) (server, native string, refusal *tool.RPCError) {
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

// resourceOf reads the URI out of a request about one resource.
func (s *Server) resourceOf(p peer, m message) (uri string, surface *tool.Surface, refusal *tool.RPCError) {
	if uri, refusal = textParam(m, "uri"); refusal != nil {
		return "", nil, refusal
	}
	if surface, refusal = s.surface(p); refusal != nil {
		return "", nil, refusal
	}
	return uri, surface, nil
}

// ownedResource is resourceOf with the server whose resource it is, and the URI as that knows it.
func (s *Server) ownedResource(p peer, m message) (uri, server, native string, refusal *tool.RPCError) {
	uri, surface, refusal := s.resourceOf(p, m)
	if refusal == nil {
		server, native, refusal = s.ownerOf(p, surface, uri)
	}
	return uri, server, native, refusal
}

// readResource serves resources/read.
func (s *Server) readResource(ctx context.Context, p peer, m message, r replier) {
	uri, server, native, refusal := s.ownedResource(p, m)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	s.forward(ctx, p, m, r, onward{server: server, member: "uri", from: uri, to: native})
}

// complete serves completion/complete: its ref says whose business it is.
func (s *Server) complete(ctx context.Context, p peer, m message, r replier) {
	surface, refusal := s.surface(p)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	ref, _ := rawjson.Get(m.params, "ref")
	rawKind, _ := rawjson.Get(ref, "type")
	kind, _ := rawjson.String(rawKind)
	member := map[string]string{"ref/prompt": "name", "ref/resource": "uri"}[kind]
	raw, _ := rawjson.Get(ref, member)
	text, ok := rawjson.String(raw)
	if member == "" || !ok || text == "" {
		r.refuse(invalidParams(`"ref" must be a ref/prompt with a name or a ref/resource with a uri`))
		return
	}
	to := onward{within: "ref", member: member, from: text}
	if member == "name" {
		to.server, to.to, refusal = promptOf(p, surface, text)
	} else {
		to.server, to.to, refusal = s.templateOf(p, surface, text)
	}
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	s.forward(ctx, p, m, r, to)
}

// templateOf finds the server of a resource template, or of a resource.
func (s *Server) templateOf(p peer, surface *tool.Surface, uri string) (server, native string, refusal *tool.RPCError) {
	var found []*tool.Feature
	if surface.Features != nil {
		for i := range surface.Features.Templates {
			t := &surface.Features.Templates[i]
			if t.Shown == uri {
				return t.Server, t.Native, nil
			}
			if t.Native == uri {
				found = append(found, t)
			}
		}
	}
	switch len(found) {
	case 0:
		return s.ownerOf(p, surface, uri)
	case 1:
		return found[0].Server, found[0].Native, nil
	}
	return "", "", invalidParams(fmt.Sprintf("resource template %q is offered by the servers %q and %q: ask for it by the "+
		"toolhub://SERVER/ template that resources/templates/list shows", uri, found[0].Server, found[1].Server))
}

// textParam is a parameter that must be a non-empty string.
func textParam(m message, name string) (string, *tool.RPCError) {
	raw, _ := rawjson.Get(m.params, name)
	text, ok := rawjson.String(raw)
	if !ok || text == "" {
		return "", invalidParams(fmt.Sprintf("%q must be a non-empty string", name))
	}
	return text, nil
}

// onward says where a request goes, and which name or URI in it is another one there.
type onward struct {
	server   string
	within   string // the member of params that holds member; "" for params themselves
	member   string
	from, to string

	unknown bool // the hub does not know the method; then nothing else in it
}

// params are the client's, with the name that the server knows.
func (o onward) params(params json.RawMessage) (json.RawMessage, error) {
	if o.from == o.to {
		return params, nil
	}
	if o.within == "" {
		return rawjson.Set(params, o.member, rawjson.Quote(o.to))
	}
	inner, _ := rawjson.Get(params, o.within)
	inner, err := rawjson.Set(inner, o.member, rawjson.Quote(o.to))
	if err != nil {
		return nil, err
	}
	return rawjson.Set(params, o.within, inner)
}

// forward sends a request on to a server and the server's answer back.
func (s *Server) forward(ctx context.Context, p peer, m message, r replier, to onward) {
	if why := s.refusal(ctx, p, m, to); why != nil {
		s.refuseOnward(ctx, r, why)
		return
	}
	params, err := to.params(m.params)
	if err != nil {
		r.refuse(invalidParams(err.Error()))
		return
	}
	token, meta := splitMeta(m.params)
	queue := newProgressQueue(r, token)
	request := tool.Request{Server: to.server, Method: m.method, Params: params, Meta: meta, Hop: p.hop, Session: p.session,
		Unknown: to.unknown}
	if to.unknown {
		request.Name = p.named
	}
	if p.modern && takesInput(m.method) {
		s.serveTurn(ctx, &turn{peer: p, work: &errand{s, request, to.to}, params: params, from: to.server, reply: r, progress: queue})
		return
	}
	call := s.openCall(p, to.server, queue.says(p.leastLevel()))
	defer call.leave()
	request.Notify, request.Progress = call.notify(s), queue.report()
	asks := s.questionerFor(p, r, to.server, queue.sent)
	if !p.modern {
		request.Ask = asks.ask
	}
	reply, err := s.deps.Servers.Forward(ctx, &request)
	asks.close()
	call.leave()
	queue.flush()
	s.finishForward(ctx, p, forwarded{server: to.server, method: m.method, wire: r, asked: to.from, native: to.to, unknown: to.unknown},
		reply, err)
}

// takesInput reports whether a server of 2026-07-28 may need input for requests of a method, besides tools/call.
func takesInput(method string) bool {
	return method == methodPromptsGet || method == methodResourcesRead
}

// forwarded is a request that a server was asked to answer.
type forwarded struct {
	server, method string
	wire           replier
	asked, native  string // name or URI of what it is about, as the client and as the server know it
	unknown        bool   // the hub does not know the method
}

// finishForward writes what a server answered on the client's wire.
func (s *Server) finishForward(ctx context.Context, p peer, to forwarded, reply tool.Reply, err error) {
	var result json.RawMessage
	if err == nil {
		if !reply.NeedsInput {
			object, _ := reply.Object.(rawjson.Object)
			p.caller.remember(to.server, reply.Result, object)
		}
		result, err = s.resultOf(p, to, reply)
	}
	if err != nil {
		var rpc *tool.RPCError
		if errors.As(err, &rpc) {
			s.elicitsFirst(p, to.server, rpc)
			err = labelledError(to.server, rpc)
		}
		s.refuseOnward(ctx, to.wire, err)
		return
	}
	if to.wire.answer(whole(result)) && reply.Free != nil {
		reply.Free()
	}
}

// resultOf is a server's result as this client gets it.
func (s *Server) resultOf(p peer, to forwarded, reply tool.Reply) (json.RawMessage, error) {
	if !rawjson.IsObject(reply.Result) {
		return nil, &tool.RPCError{Code: tool.CodeInternalError, Message: "the server's result is no JSON object"}
	}
	result, err := withoutHop(reply.Result)
	if err != nil {
		return nil, fmt.Errorf("clean _meta of result: %w", err)
	}
	if isTaskMethod(to.method) {
		if result, err = aboutTaskResult(p, to, result); err != nil {
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
	meta, ok := rawjson.Get(result, "_meta")
	if !ok || !rawjson.IsObject(meta) {
		meta = json.RawMessage("{}")
	}
	meta, metaErr := rawjson.Set(meta, mcp.MetaKeyServerInfo, s.serverInfo)
	set("_meta", meta)
	return result, errors.Join(err, metaErr)
}

// refuseOnward answers a request that no server has answered with a result.
func (s *Server) refuseOnward(ctx context.Context, r replier, err error) {
	if ctx.Err() != nil && r.abandon(ctx) {
		return
	}
	var rpc *tool.RPCError
	var f *tool.Failure
	switch {
	case errors.As(err, &rpc):
		r.refuse(rpc)
	case errors.As(err, &f):
		about, _ := json.Marshal(map[string]any{metaError: map[string]any{"error_class": f.Class, "error_code": f.ErrorCode(),
			"retry_after_ms": f.RetryAfter.Milliseconds()}})
		r.refuse(&tool.RPCError{Code: tool.CodeInternalError, Message: f.Message, Data: about})
	default:
		s.deps.Logger.Error("request failed", "error", err)
		r.refuse(&tool.RPCError{Code: tool.CodeInternalError,
			Message: "the hub failed while it handled this request; its log says why"})
	}
}

// metaError is the member of an error's data that says, machine-readable, what the hub knows of a request that failed.
const metaError = "toolhub/error"
