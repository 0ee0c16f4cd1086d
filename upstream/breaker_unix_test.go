//go:build e2e && unix

package upstream_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestFrozenServer: a process that is alive and answers nothing, not even ping, is started anew.
func TestFrozenServer(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{})
	cfg.Timeouts.Call, cfg.Timeouts.Connect = 50*time.Millisecond, 2*time.Second
	h := start(t, cfg)
	frozen := h.ready(t, "s").PID
	if err := syscall.Kill(frozen, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := h.call(t.Context(), "s", "echo", `{}`); failure(t, err).Class != tool.ClassTimeout {
			t.Errorf("%v", err)
		}
	}
	h.reaches(t, "s", tool.ServerBackoff)
	if _, err := h.call(t.Context(), "s", "echo", `{}`); failure(t, err).RetryAfter == 0 {
		t.Error(err)
	}
	eventually(t, "another process answers", func() bool { _, err := h.call(t.Context(), "s", "echo", `{}`); return err == nil })
	if now := h.ready(t, "s").PID; now == frozen || now == 0 {
		t.Errorf("process %d", now)
	}
}
