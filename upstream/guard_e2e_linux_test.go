//go:build e2e

package upstream_test

import (
	"syscall"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// TestKilledWrapperLeavesNothing checks that what a wrapper has started goes with it, and that the server comes back.
func TestKilledWrapperLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startConfig(t, upstream.Config{Servers: families(dir)})
	for _, s := range families(dir) {
		h.ready(t, s.ID)
	}
	pids, err := familyPIDs(h.Group, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range families(dir) {
		if err := syscall.Kill(h.status(s.ID).PID, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "all processes are gone", func() bool { return gone(pids) })
	for _, s := range families(dir) {
		eventually(t, "back", func() bool { st := h.status(s.ID); return st.State == tool.ServerReady && st.Restarts > 0 })
	}
}
