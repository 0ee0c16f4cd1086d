//go:build unix

package upstream_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// hammer calls a server from 20 goroutines until stop is called.
func (h *harness) hammer(t *testing.T, id string) (stop func(), calls *atomic.Int64) {
	t.Helper()
	var over atomic.Bool
	var callers sync.WaitGroup
	calls = new(atomic.Int64)
	for range 20 {
		callers.Go(func() {
			for !over.Load() {
				_, err := h.call(t.Context(), id, "raw", `{"result":{}}`)
				if err == nil {
					t.Error("a server that is down has answered")
				}
				calls.Add(1)
			}
		})
	}
	return func() {
		over.Store(true)
		callers.Wait()
	}, calls
}

// TestBudget checks that a server which exits at once is started as often as its budget allows and no more, however much
// it is called.
func TestBudget(t *testing.T) {
	t.Parallel()
	const budget = 6
	count := filepath.Join(t.TempDir(), "count")
	cfg := upstream.ServerConfig{ID: "s", Transport: upstream.Stdio, Command: "sh",
		Args: []string{"-c", `case $1 in *) echo x >> "$0"; exit 3;; esac`, count}}
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, RetryMin: 5 * time.Millisecond,
		RetryMax: 10 * time.Millisecond, RetryBudget: budget, RetryRest: time.Hour})
	stop, calls := h.hammer(t, "s")
	defer stop()
	var st tool.ServerStatus
	eventually(t, "the budget is used up", func() bool {
		st = h.status("s")
		return strings.Contains(st.Hint, fmt.Sprintf("started %d times within an hour", budget))
	})
	if st.NextTry == nil || time.Until(*st.NextTry) < 40*time.Minute || st.State != tool.ServerBackoff ||
		!strings.Contains(st.LastError, "exited with status 3") {
		t.Errorf("status %+v", st)
	}
	was := calls.Load()
	eventually(t, "calls go on", func() bool { return calls.Load() > was+2000 })
	if st := h.status("s"); st.Restarts != budget-1 || st.State != tool.ServerBackoff {
		t.Errorf("restarted %d times with a budget of %d", st.Restarts, budget)
	}
	data, err := os.ReadFile(count)
	// A child that ends when it is asked server/discover is started once more within the same try.
	if n := strings.Count(string(data), "x"); err != nil || n < budget || n > 2*budget {
		t.Errorf("%d processes started with a budget of %d: %v", n, budget, err)
	}
	_, err = h.call(t.Context(), "s", "echo", `{}`)
	f := failure(t, err)
	if f.RetryAfter < 40*time.Minute || !strings.Contains(f.Message, "within an hour") {
		t.Errorf("failure %+v", f)
	}
}

// TestRestEnds checks that the server is tried again after the long pause.
func TestRestEnds(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtestScript(upstreamtest.ExitsAtOnce))
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, RetryMin: 5 * time.Millisecond,
		RetryMax: 5 * time.Millisecond, RetryBudget: 2, RetryRest: 200 * time.Millisecond})
	eventually(t, "tried after the rest", func() bool {
		st := h.status("s")
		return st.Restarts >= 3 && strings.Contains(st.Hint, "within an hour")
	})
}

// TestHammeringDoesNotStorm checks that calls bring the next try forward, but never closer than RetryMin.
func TestHammeringDoesNotStorm(t *testing.T) {
	t.Parallel()
	const pause = 100 * time.Millisecond
	cfg := upstream.ServerConfig{ID: "s", Transport: upstream.Stdio, Command: "/no/such/program"}
	began := time.Now()
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, RetryMin: pause, RetryMax: time.Hour})
	stop, _ := h.hammer(t, "s")
	defer stop()
	eventually(t, "restarted", func() bool { return h.status("s").Restarts >= 4 })
	st := h.status("s")
	// The first pause may be shorter by its jitter.
	if most := int(time.Since(began)/pause) + 2; st.Restarts > most {
		t.Errorf("%d restarts within %s, want at most %d", st.Restarts, time.Since(began), most)
	}
}

// TestCatalogSaysWhatTheServerNeeds: who searches its tools learns what somebody has to do first, and goes on learning it
// while the server is tried again.
func TestCatalogSaysWhatTheServerNeeds(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	locked, _ := overHTTP(t, "locked", upstreamtest.Options{Intercept: func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		http.Error(w, "no", http.StatusUnauthorized)
		return true
	}})
	broken, _ := overHTTP(t, "broken", upstreamtest.Options{Intercept: func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		if !mended.Load() {
			http.Error(w, "no", http.StatusInternalServerError)
		}
		return !mended.Load()
	}})
	h := start(t, locked, broken, stdio("good", upstreamtest.Script{}))
	h.ready(t, "good")
	h.reaches(t, "locked", tool.ServerNeedsAuth)
	if got := h.catalog("locked").Needs; got != "a sign-in: run mcp-toolhub login locked (or give a token in headers of the server's entry)" {
		t.Errorf("the server that refuses the credentials needs %q", got)
	}
	h.reaches(t, "broken", tool.ServerBackoff)
	for h.status("broken").Restarts < 3 {
		if got := h.catalog("broken").Needs; !strings.HasPrefix(got, "mending: ") || !strings.Contains(got, "HTTP 500") {
			t.Fatalf("the server that fails needs %q", got)
		}
	}
	mended.Store(true)
	h.ready(t, "broken")
	for _, id := range []string{"broken", "good"} {
		if got := h.catalog(id).Needs; got != "" {
			t.Errorf("server %s is ready and needs %q", id, got)
		}
	}
}

// TestNeedsAuthIsNotRetriedOnUse checks that a server which has refused the credentials hears nothing more until its
// entry changes.
func TestNeedsAuthIsNotRetriedOnUse(t *testing.T) {
	t.Parallel()
	cfg, fake := overHTTP(t, "s", upstreamtest.Options{Intercept: func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Header.Get("Authorization") == "Bearer good" {
			return false
		}
		http.Error(w, "no", http.StatusUnauthorized)
		return true
	}})
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, RetryMin: time.Millisecond, RetryMax: time.Millisecond})
	h.reaches(t, "s", tool.ServerNeedsAuth)
	was := len(fake.Requests())
	stop, calls := h.hammer(t, "s")
	eventually(t, "calls", func() bool { return calls.Load() > 2000 })
	stop()
	_, err := h.call(t.Context(), "s", "echo", `{}`)
	if f := failure(t, err); f.Class != tool.ClassSetupRequired || f.Code != "server_needs_auth" {
		t.Errorf("failure %+v", f)
	}
	if n := len(fake.Requests()); n != was {
		t.Errorf("%d requests to a server that has refused the credentials", n-was)
	}
	if st := h.status("s"); st.NextTry != nil || st.Restarts != 0 {
		t.Errorf("status %+v", st)
	}
	cfg.Headers = map[string]string{"Authorization": "Bearer good"}
	h.apply(t, cfg)
	h.ready(t, "s")
	h.mustCall(t, "s", "raw", `{"result":{}}`)
}
