//go:build e2e && unix

package upstream_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
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

// TestStandingStreamWaitsForASignIn checks that the hub opens a standing stream again that was
// refused for its token, once the authorization server works again.
func TestStandingStreamWaitsForASignIn(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern %v", modern), func(t *testing.T) {
			t.Parallel()
			var broken, refused atomic.Bool
			g := newGuarded(t, upstreamtest.Options{Script: upstreamtest.Script{Modern: modern}}, nil)
			g.auth.Intercept = func(w http.ResponseWriter, _ *http.Request) bool {
				if broken.Load() {
					refused.Store(true)
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				return broken.Load()
			}
			g.reaches(t, "s", tool.ServerNeedsAuth)
			g.login(t)
			before := g.ready(t, "s").Restarts
			eventually(t, "the hub listens", func() bool { return g.fake.Listening() > 0 })
			broken.Store(true)
			g.auth.Expire()
			g.fake.Cut()
			eventually(t, "the authorization server fails", refused.Load)
			broken.Store(false)
			eventually(t, "the hub listens again", func() bool { return g.fake.Listening() > 0 })
			if st := g.status("s"); st.Restarts != before || st.State != tool.ServerReady {
				t.Errorf("status %+v", st)
			}
		})
	}
}
