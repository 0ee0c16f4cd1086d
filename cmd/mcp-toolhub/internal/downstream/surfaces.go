package downstream

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// surfaces says what callers see and what that can do: it serves lists, capabilities and instructions.
type surfaces struct {
	deps       *Deps
	config     func() Config
	serverInfo json.RawMessage
}

// of returns what p sees now.
func (v *surfaces) of(p peer) (*tool.Surface, *tool.RPCError) {
	surface, err := v.deps.Surfaces.Surface(p.profile, p.actor)
	if err != nil {
		return nil, &tool.RPCError{Code: tool.CodeInternalError, Message: err.Error()}
	}
	return surface, nil
}

// awaitLists waits for the first lists of the servers of surface, the one of p, and returns what p sees then.
func (v *surfaces) awaitLists(ctx context.Context, p peer, surface *tool.Surface) (*tool.Surface, *tool.RPCError) {
	if v.deps.FirstLists == nil {
		return surface, nil
	}
	v.deps.FirstLists(ctx, surface)
	return v.of(p)
}

// forList returns what p sees, for a list of that method. Some clients list tools only once: so a list of tools waits for
// servers that are starting. Nobody waits where a search is listed: it finds those tools later.
func (v *surfaces) forList(ctx context.Context, p peer, method string) (*tool.Surface, *tool.RPCError) {
	surface, refusal := v.of(p)
	if refusal != nil || method != methodToolsList || surface.Finder() != "" {
		return surface, refusal
	}
	return v.awaitLists(ctx, p, surface)
}

// forCall returns what p sees, for a call of name. An unknown name may be that of a tool whose server has not listed yet. It
// waits for a tool that is hidden from p as for one that nobody has: the time tells no difference.
func (v *surfaces) forCall(ctx context.Context, p peer, name string) (*tool.Surface, *tool.RPCError) {
	surface, refusal := v.of(p)
	if refusal != nil {
		return nil, refusal
	}
	if _, known := surface.Resolve(name); known {
		return surface, nil
	}
	return v.awaitLists(ctx, p, surface)
}

// soleServer returns the server of a direct view.
func (v *surfaces) soleServer(p peer) (string, *tool.RPCError) {
	surface, refusal := v.of(p)
	if refusal != nil {
		return "", refusal
	}
	if surface.Features == nil || len(surface.Features.Servers) != 1 {
		return "", &tool.RPCError{Code: tool.CodeMethodNotFound, Message: "no server takes this here"}
	}
	return surface.Features.Servers[0], nil
}

// abilities returns what the surface can do besides tools. A server that has not been up yet counts as one that can do
// everything: what a client is told at its beginning holds to the end of its session.
func (v *surfaces) abilities(surface *tool.Surface) tool.Abilities {
	f := surface.Features
	if f == nil {
		return tool.Abilities{}
	}
	able := f.Abilities
	for _, st := range v.deps.Statuses() {
		if !st.Known && (st.State == tool.ServerStarting || st.State == tool.ServerBackoff) && slices.Contains(f.Servers, st.Server) {
			able = able.Or(tool.Abilities{Prompts: true, Resources: true, Subscribe: true, Completions: true, Logging: true,
				Tasks: tool.Tasks{Calls: true, List: true, Cancel: true}, TaskExtension: true})
		}
	}
	return able
}

// shows reports whether the listener's surface shows the server.
func (v *surfaces) shows(l *listener, server string) bool {
	surface, err := v.deps.Surfaces.Surface(l.profile, tool.Actor{Client: l.actor.Client})
	return err == nil && surface.Features != nil && slices.Contains(surface.Features.Servers, server)
}
