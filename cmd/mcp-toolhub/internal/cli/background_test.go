package cli

import (
	"context"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
)

// stopShared stops the hubs that start has left with a state directory.
func stopShared(t testing.TB, state string) {
	t.Helper()
	all, err := control.Find(context.Background(), state)
	if err != nil {
		t.Error(err)
	}
	for _, hub := range all {
		if hub.Shared() {
			if err := hub.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
	}
}
