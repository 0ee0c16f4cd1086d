package upstream

import (
	"context"
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
)

// RootsChanged tells servers that the roots of the client of who have changed: those that the session has a connection of
// its own to, and that were told there that they would be told. What several sessions share has no roots of its own: there a
// server asks during a call for the roots of that call's client. params are the client's, an object or nil. It does not
// wait for servers.
func (g *Group) RootsChanged(ctx context.Context, who tool.Session, params json.RawMessage) {
	for _, s := range g.roster.Load().servers {
		if s.use != useListing {
			continue
		}
		if one := s.isolation.peek(who); one != nil {
			one.rootsChanged(ctx, params)
		}
	}
}

// rootsChanged tells the server of one connection. One that is not connected has not asked for the roots yet, or will
// again.
func (s *server) rootsChanged(ctx context.Context, params json.RawMessage) {
	sess := s.lifecycle.current()
	if roots := s.offers().RootsV2; sess == nil || sess.hop != nil || roots == nil || !roots.ListChanged {
		return
	}
	var clean []byte
	if rawjson.IsObject(params) && rawjson.Valid(params) {
		var err error
		if clean, err = hop.Strip(params); err != nil {
			return
		}
	}
	sess.lane.serverRequests().expectRoots()
	sess.lane.say(ctx, jsonrpc.NotificationText(noteRootsChanged, clean))
}
