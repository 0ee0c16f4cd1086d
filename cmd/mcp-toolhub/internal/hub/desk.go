package hub

import (
	"cmp"
	"context"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/login"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// newDesk makes the desk that signs people in to the servers of the settings in force.
func (h *Hub) newDesk() *login.Desk {
	return login.New(login.Options{
		Store: h.signIns,
		Server: func(id string, caller tool.Session) (upstream.ServerConfig, bool) {
			for _, s := range h.Settings().Upstream.Servers {
				if s.ID == id && !s.IsOff() && (caller.Person != "" || !s.OAuth.PerCaller) {
					return s.For(caller.Person), true
				}
			}
			return upstream.ServerConfig{}, false
		},
		Base:     h.base,
		Signed:   h.followSignIns,
		Ready:    func(ctx context.Context) { _ = h.Group.WaitReady(ctx) },
		Elicited: func(id string) { h.server.Elicited(id) },
		Logger:   h.Logger,
	})
}

// base is the address of the hub's HTTP side for people, without a slash at its end; "" where it serves none.
func (h *Hub) base() string {
	if h.listens == "" {
		return ""
	}
	return cmp.Or(h.Settings().Downstream.HTTP.PublicURL, h.listens)
}
