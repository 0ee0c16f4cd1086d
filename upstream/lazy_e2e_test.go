//go:build e2e && unix

package upstream_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestDyingServerIsNotAsleep checks that a server which is idle for long enough between closing its stdout and the end of
// its process is one that has failed.
func TestDyingServerIsNotAsleep(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtestScript(upstreamtest.DiesSlowly, upstreamtest.Stubborn))
	cfg.IdleStop = 50 * time.Millisecond
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, RetryMin: time.Minute})
	if _, err := h.call(t.Context(), "s", "die", `{}`); !failure(t, err).OutcomeUnknown {
		t.Errorf("error %v", err)
	}
	if st := h.reaches(t, "s", tool.ServerBackoff); !strings.Contains(st.LastError, "closed its stdout") {
		t.Errorf("status %+v", st)
	}
}

// TestBusyServerDoesNotSleep checks that a call in flight keeps the server awake, however long it takes.
func TestBusyServerDoesNotSleep(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{})
	cfg.IdleStop = 50 * time.Millisecond
	h := start(t, cfg)
	h.started(t)
	h.mustCall(t, "s", "sleep", `{"ms":600}`)
	h.reaches(t, "s", tool.ServerStopped)
}

func TestLazyServerThatFailsToWake(t *testing.T) {
	t.Parallel()
	store := newMemory()
	cfg := stdio("s", upstreamtest.Script{})
	link := filepath.Join(t.TempDir(), "server")
	if err := os.Symlink(cfg.Command, link); err != nil {
		t.Fatal(err)
	}
	self := cfg.Command
	cfg.Command = link
	learn(t, store, cfg)
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{lazily(cfg, 0)}, Catalogs: store, RetryMin: 5 * time.Second})
	_, err := h.call(t.Context(), "s", "echo", `{}`)
	f := failure(t, err)
	if f.Code != "server_backoff" || !strings.Contains(f.Message, "does not exist") || f.RetryAfter == 0 || f.OutcomeUnknown {
		t.Errorf("failure %+v", f)
	}
	if st := h.status("s"); st.State != tool.ServerBackoff || st.NextTry == nil || st.Tools != 13 || !st.Cached {
		t.Errorf("status %+v", st)
	}
	if err := os.Symlink(self, link); err != nil {
		t.Fatal(err)
	}
	h.ready(t, "s")
	h.mustCall(t, "s", "raw", `{"result":{}}`)
}
