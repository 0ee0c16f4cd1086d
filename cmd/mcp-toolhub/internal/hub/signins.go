package hub

import (
	"context"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

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
