//go:build unix

package upstream_test

import (
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

// recorded is a server that notes every message it gets, and a function that counts how often it was initialised.
func recorded(t *testing.T, id string, s upstreamtest.Script) (upstream.ServerConfig, func() int) {
	t.Helper()
	s.Record = filepath.Join(t.TempDir(), "record")
	return stdio(id, s), func() int {
		data, err := os.ReadFile(s.Record)
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
		return strings.Count(string(data), `"method":"initialize"`)
	}
}

// lazily is cfg, started by its first call and stopped when it was idle for d.
func lazily(cfg upstream.ServerConfig, d time.Duration) upstream.ServerConfig {
	cfg.Lazy, cfg.IdleStop = true, d
	return cfg
}

func TestLazyServerStartsWhenCalled(t *testing.T) {
	t.Parallel()
	store := newMemory()
	cfg, started := recorded(t, "s", upstreamtest.Script{})
	learn(t, store, cfg)
	before := started()
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{lazily(cfg, 0), stdio("other", upstreamtest.Script{})}, Catalogs: store})
	if err := h.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.ready(t, "other")
	if c := h.catalog("s"); len(c.Tools) != 13 || !c.Pending {
		t.Errorf("listed %d tools, pending %v", len(c.Tools), c.Pending)
	}
	if st := h.status("s"); st.State != tool.ServerStopped || st.PID != 0 || !strings.Contains(st.Hint, "when one of its tools is called") {
		t.Errorf("status %+v", st)
	}
	if n := started() - before; n != 0 {
		t.Fatalf("started %d times before it was called", n)
	}
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() { h.mustCallQuietly(t, "s") })
	}
	calls.Wait()
	if n := started() - before; n != 1 {
		t.Errorf("20 first calls started it %d times", n)
	}
	if st := h.ready(t, "s"); st.Restarts != 0 || st.Hint != "" {
		t.Errorf("status %+v", st)
	}
}

// mustCallQuietly is mustCall for other goroutines than the test's.
func (h *harness) mustCallQuietly(t *testing.T, id string) bool {
	_, err := h.call(t.Context(), id, "raw", `{"result":{}}`)
	if err != nil {
		t.Errorf("call %s: %v", id, err)
	}
	return err == nil
}

// TestLazyServerIsCallableAtOnce checks the moment between Start and the server's own goroutine.
func TestLazyServerIsCallableAtOnce(t *testing.T) {
	t.Parallel()
	store := newMemory()
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{})
	learn(t, store, cfg)
	for range 50 {
		g, err := upstream.NewGroup(upstream.Config{Servers: []upstream.ServerConfig{lazily(cfg, 0)}, Catalogs: store}, discard())
		if err != nil {
			t.Fatal(err)
		}
		g.Start(t.Context())
		if _, err := g.Execute(t.Context(), execution("s", "raw", `{"result":{}}`)); err != nil {
			t.Errorf("the first call: %v", err)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestIdleServerSleepsAndWakes(t *testing.T) {
	t.Parallel()
	cfg, started := recorded(t, "s", upstreamtestScript(upstreamtest.HasDescendant))
	// Its tools are not known: it is started once to learn them. Sleeping is no failure: three starts fit into a budget
	// of two.
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{lazily(cfg, 150*time.Millisecond)}, RetryBudget: 2,
		RetryMin: time.Minute})
	h.started(t)
	for range 3 {
		pids := pidsOf(t, h, "s")
		st := h.reaches(t, "s", tool.ServerStopped)
		if st.LastError != "" || st.Restarts != 0 || st.PID != 0 || !strings.Contains(st.Hint, "when one of its tools") {
			t.Errorf("status asleep %+v", st)
		}
		eventually(t, "its processes are gone", func() bool { return gone(pids) })
		if c := h.catalog("s"); len(c.Tools) != 13 || c.Pending {
			t.Errorf("asleep it lists %d tools, pending %v", len(c.Tools), c.Pending)
		}
		before := started()
		h.mustCall(t, "s", "raw", `{"result":{}}`)
		if n := started() - before; n != 1 {
			t.Errorf("a call started it %d times", n)
		}
	}
	_, _ = h.call(t.Context(), "s", "die", `{}`)
	if st := h.reaches(t, "s", tool.ServerBackoff); strings.Contains(st.Hint, "within an hour") {
		t.Errorf("waking counts towards the budget: %+v", st)
	}
}

// TestCallsRaceWithSleep checks that a call which comes just as the server goes to sleep is answered.
func TestCallsRaceWithSleep(t *testing.T) {
	t.Parallel()
	web, _ := overHTTP(t, "web", upstreamtest.Options{})
	h := start(t, lazily(web, time.Nanosecond), lazily(stdio("child", upstreamtest.Script{}), time.Nanosecond))
	if err := h.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for range 50 {
				if !h.mustCallQuietly(t, "web") {
					return
				}
			}
		})
		calls.Go(func() {
			for range 8 {
				if !h.mustCallQuietly(t, "child") {
					return
				}
			}
		})
	}
	calls.Wait()
}

// TestLazyServerThatBecameAnother checks that the tools of another command are not taken for this one's.
func TestLazyServerThatBecameAnother(t *testing.T) {
	t.Parallel()
	h := start(t, lazily(stdio("s", upstreamtest.Script{}), 0))
	h.ready(t, "s")
	h.apply(t, lazily(stdio("s", upstreamtest.Script{Tools: tools("other")}), 0))
	eventually(t, "the tools are learnt", func() bool { return h.names("s") == "other" && !h.catalog("s").Pending })

	same := lazily(stdio("s", upstreamtest.Script{Tools: tools("other")}), 0)
	same.Tags = []string{"new"}
	h.apply(t, same)
	st := h.reaches(t, "s", tool.ServerStopped)
	if st.Hint == "" || h.names("s") != "other" {
		t.Errorf("status %+v, tools %s", st, h.names("s"))
	}
	h.mustCall(t, "s", "raw", `{"result":{}}`)
}

func TestCloseWhileWaking(t *testing.T) {
	t.Parallel()
	store := newMemory()
	cfg, _, gate := gatedHTTP(t, "s", upstreamtest.Options{})
	gate.open()
	learn(t, store, cfg)
	gate.shut()
	h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{lazily(cfg, 0)}, Catalogs: store})
	done := make(chan error, 1)
	go func() {
		_, err := h.call(t.Context(), "s", "raw", `{"result":{}}`)
		done <- err
	}()
	h.reaches(t, "s", tool.ServerStarting)
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if f := failure(t, <-done); f.OutcomeUnknown || f.Code != "server_stopped" {
		t.Errorf("failure %+v", f)
	}
}

// TestSleepHidesNothing checks that a server which sleeps and wakes keeps its tools listed all the time.
func TestSleepHidesNothing(t *testing.T) {
	t.Parallel()
	cfg, _ := overHTTP(t, "s", upstreamtest.Options{})
	cfg = lazily(cfg, 10*time.Millisecond)
	h := &harness{log: &logBuffer{}}
	var err error
	h.Group, err = upstream.NewGroup(upstream.Config{Servers: []upstream.ServerConfig{cfg}}, discard())
	if err != nil {
		t.Fatal(err)
	}
	var known, flapped atomic.Bool
	h.OnChange(func() {
		n := len(h.catalog("s").Tools)
		if n > 0 {
			known.Store(true)
		} else if known.Load() {
			flapped.Store(true)
		}
	})
	h.Start(t.Context())
	defer func() { _ = h.Close(t.Context()) }()
	eventually(t, "known", known.Load)
	for range 5 {
		h.reaches(t, "s", tool.ServerStopped)
		h.mustCall(t, "s", "raw", `{"result":{}}`)
		if len(h.catalog("s").Tools) == 0 {
			t.Error("tools are hidden")
		}
	}
	if flapped.Load() {
		t.Error("tools went and came")
	}
}

// started waits until each server was ready once, or has failed: one that falls asleep soon may not be seen ready.
func (h *harness) started(t testing.TB) {
	t.Helper()
	if err := h.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}
