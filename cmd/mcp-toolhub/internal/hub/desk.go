package hub

import (
	"cmp"
	"context"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/login"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
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

// OpenSignIns returns where the sign-ins of the settings are kept.
func OpenSignIns(s *config.Settings) *signin.Store {
	if s.KeyringSignIns {
		return signin.OpenKeyring(s.StateDir)
	}
	return signin.Open(s.StateDir)
}

// SignOut signs out of a server, and says what came of it; "" where it failed.
func SignOut(ctx context.Context, store *signin.Store, server upstream.ServerConfig) (said string, err error) {
	was, revoked, err := store.Logout(ctx, server)
	switch {
	case !was && err == nil:
		return "nobody was signed in", nil
	case was && revoked:
		return "signed out", err
	case was:
		return "signed out here; the authorization server was not told: end the access there, too, if that matters", err
	}
	return "", err
}
