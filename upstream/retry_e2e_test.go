//go:build e2e && unix

package upstream_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestWakeOnUse checks that a call to a server whose next try is far off is answered once the server can be started.
func TestWakeOnUse(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{})
	link := filepath.Join(t.TempDir(), "server")
	self := cfg.Command
	cfg.Command = link
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, RetryMin: 10 * time.Millisecond, RetryMax: time.Hour,
		RetryBudget: 1000})
	stop, _ := h.hammer(t, "s") // so that the pause grows quickly
	var due time.Time
	eventually(t, "the next try is far off", func() bool {
		if st := h.status("s"); st.NextTry != nil {
			due = *st.NextTry
		}
		return time.Until(due) > 30*time.Second
	})
	stop()
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a call is answered", func() bool {
		_, err := h.call(t.Context(), "s", "raw", `{"result":{}}`)
		return err == nil
	})
	if !time.Now().Before(due) {
		t.Error("it was the timer, not the call, that started the server")
	}
	if st := h.ready(t, "s"); st.NextTry != nil || st.LastError != "" || st.Hint != "" {
		t.Errorf("status %+v", st)
	}
}
