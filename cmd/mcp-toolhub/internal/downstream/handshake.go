package downstream

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// latestWithInitialize is the newest revision that begins with initialize.
const latestWithInitialize = "2025-11-25"

// negotiated returns the revision that initialize agrees on with a client that asks for version.
func negotiated(version string) string {
	if supported(version) && version < modernVersion {
		return version
	}
	return latestWithInitialize
}

// initialize answers a client's initialize. It returns the client as it describes itself, with the
// revision that was agreed on, and the result; or why the request is refused.
func (s *Server) initialize(ctx context.Context, profile string, m *jsonrpc.Message) (client tool.Client,
	result json.RawMessage, refusal *tool.RPCError) {
	meta, _ := rawjson.Get(m.Params, "_meta")
	if s.deps.Observer != nil {
		_, end := s.deps.Observer.Request(ctx, m.Method, meta)
		defer func() { end(refusal) }()
	}
	if rawjson.Text(meta, mcp.MetaKeyProtocolVersion) >= modernVersion {
		return client, nil, notServed(m.Method)
	}
	if refusal := checkInitialize(m); refusal != nil {
		return client, nil, refusal
	}
	info, _ := rawjson.Get(m.Params, "clientInfo")
	client.Name, client.Version = clientInfo(info)
	client.Apps = showsApps(capabilitiesOf(m))
	client.ProtocolVersion = negotiated(rawjson.Text(m.Params, "protocolVersion"))
	hello := &mcp.InitializeResult{ProtocolVersion: client.ProtocolVersion, ServerInfo: s.impl}
	caps, instructions := s.surfaces.description(profile, client)
	hello.Instructions = instructions
	result, err := withCapabilities(hello, caps)
	if err != nil {
		return client, nil, &tool.RPCError{Code: tool.CodeInternalError, Message: err.Error()}
	}
	return client, result, nil
}

// discover serves server/discover.
func (s *Server) discover(_ context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	if !p.modern {
		return &tool.RPCError{Code: tool.CodeMethodNotFound,
			Message: fmt.Sprintf("%q is only served from protocol revision %s on", m.Method, modernVersion)}
	}
	// How long it holds is, as in lists, a matter of who asks, and of what servers do.
	found := &mcp.DiscoverResult{Meta: mcp.Meta{mcp.MetaKeyServerInfo: s.impl}, SupportedVersions: protocolVersions(),
		Cacheable: mcp.Cacheable{CacheScope: "private"}}
	found.ResultType = "complete"
	caps, instructions := s.surfaces.description(p.profile, p.actor.Client)
	found.Instructions = instructions
	text, err := withCapabilities(found, caps)
	if err != nil {
		return &tool.RPCError{Code: tool.CodeInternalError, Message: err.Error()}
	}
	r.answer(whole(text))
	return nil
}

// ping serves ping, which revisions with initialize have.
func (s *Server) ping(_ context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	if p.modern {
		return notServed(m.Method)
	}
	r.answer(whole([]byte("{}")))
	return nil
}

// notServed refuses a request of a method that the client's revision does not have, or the hub does not know.
func notServed(method string) *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeMethodNotFound, Message: fmt.Sprintf("method %q is not served", clip(method))}
}
