//go:build unix

package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// apply applies a configuration of these servers, with the pauses of startConfig.
func (h *harness) apply(t testing.TB, servers ...upstream.ServerConfig) {
	t.Helper()
	err := h.Apply(upstream.Config{Servers: servers, RetryMin: 20 * time.Millisecond, RetryMax: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
}

// changed is cfg with a difference that matters to nobody.
func changed(cfg upstream.ServerConfig, n int) upstream.ServerConfig {
	cfg.Env = append(slices.Clone(cfg.Env), fmt.Sprintf("CHANGE=%d", n))
	return cfg
}

// waiting calls a tool that answers once there is the file, and returns when the server has got that. How it ends comes over the
// channel.
func (h *harness) waiting(t testing.TB, id, file string) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	ctx, before := t.Context(), h.of(id).count(t, "wait")
	go func() {
		_, err := h.call(ctx, id, "wait", fmt.Sprintf(`{"file":%q}`, file))
		done <- err
	}()
	h.of(id).reach(t, "wait", before+1)
	return done
}

// touch makes a file, so that what waits for it goes on.
func touch(t testing.TB, file string) {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestApplyLeavesTheUnchangedAlone(t *testing.T) {
	t.Parallel()
	same, other := stdio("same", upstreamtest.Script{}), stdio("other", upstreamtest.Script{})
	h := start(t, same, other)
	before, was := h.ready(t, "same"), h.ready(t, "other")
	end := filepath.Join(t.TempDir(), "end")
	inSame, inOther := h.waiting(t, "same", end), h.waiting(t, "other", end)

	h.apply(t, same, changed(other, 1), stdio("new", upstreamtest.Script{}))
	if c := h.catalog("other"); len(c.Tools) != 13 || !c.Pending {
		t.Errorf("a changed server lists %d tools, pending %v: want those it had, pending", len(c.Tools), c.Pending)
	}
	if st := h.status("other"); st.State != tool.ServerStarting || !st.Cached {
		t.Errorf("status of a changed server %+v", st)
	}
	touch(t, end)
	for id, c := range map[string]<-chan error{"same": inSame, "other": inOther} {
		if err := <-c; err != nil {
			t.Errorf("the call in flight on %s: %v", id, err)
		}
	}
	h.ready(t, "new")
	if st := h.ready(t, "other"); st.PID == was.PID || st.PID == 0 {
		t.Errorf("the changed server was not started anew: pid %d", st.PID)
	}
	if !gone([]int{was.PID}) {
		t.Errorf("the changed server's process %d is still there while its successor runs", was.PID)
	}
	if st := h.status("same"); st.PID != before.PID || st.Restarts != 0 || !st.Since.Equal(before.Since) {
		t.Errorf("the unchanged server was disturbed: %+v, before %+v", st, before)
	}
	eventually(t, "confirmed", func() bool { return !h.catalog("other").Pending })
	if err := h.WaitReady(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestApplyRetiresTheRemoved(t *testing.T) {
	t.Parallel()
	h := start(t, stdio("a", upstreamtest.Script{}), stdio("b", upstreamtestScript(upstreamtest.HasDescendant)))
	h.ready(t, "a")
	h.ready(t, "b")
	pids := pidsOf(t, h, "b")
	end := filepath.Join(t.TempDir(), "end")
	inFlight := h.waiting(t, "b", end)
	h.apply(t, stdio("a", upstreamtest.Script{}))
	if len(h.Statuses()) != 1 || len(h.Catalogs()) != 1 {
		t.Errorf("servers after the removal: %+v", h.Statuses())
	}
	_, err := h.call(t.Context(), "b", "echo", `{}`)
	if f := failure(t, err); f.Code != "unknown_server" {
		t.Errorf("failure %+v", f)
	}
	touch(t, end)
	if err := <-inFlight; err != nil {
		t.Errorf("the call in flight: %v", err)
	}
	eventually(t, "its processes are gone", func() bool { return gone(pids) })
}

// TestApplyAgainWhileRetiring checks that a server is never started before all that came before it under its id have
// ended, whatever happened in between.
func TestApplyAgainWhileRetiring(t *testing.T) {
	t.Parallel()
	first := stdio("s", upstreamtest.Script{})
	off := first
	off.Disabled = true
	for name, between := range map[string][][]upstream.ServerConfig{
		"changed twice":        {{changed(first, 1)}},
		"changed often":        {{changed(first, 1)}, {changed(first, 2)}, {changed(first, 3)}},
		"disabled between":     {{off}},
		"removed between":      {{}},
		"removed and disabled": {{}, {off}, {}, {changed(first, 4)}, {off}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t, first)
			was := h.ready(t, "s")
			end := filepath.Join(t.TempDir(), "end")
			inFlight := h.waiting(t, "s", end)
			for _, servers := range between {
				h.apply(t, servers...)
			}
			h.apply(t, changed(first, 9))
			select {
			case err := <-inFlight:
				t.Fatalf("the call in flight ended early: %v", err)
			default:
			}
			if st := h.status("s"); st.PID != 0 || !strings.Contains(st.Hint, "when the calls that it was still working on have ended") {
				t.Errorf("a successor runs beside the first, or nobody is told why it does not: %+v", st)
			}
			touch(t, end)
			h.mustCall(t, "s", "raw", `{"result":{}}`) // waits for the successor
			if !gone([]int{was.PID}) {
				t.Error("the successor answered while the first was running")
			}
			if err := <-inFlight; err != nil {
				t.Errorf("the call in flight: %v", err)
			}
		})
	}
}

func TestApplyFaultyConfig(t *testing.T) {
	t.Parallel()
	a, b := stdio("a", upstreamtest.Script{}), stdio("b", upstreamtest.Script{})
	h := start(t, a, b)
	pids := map[string]int{"a": h.ready(t, "a").PID, "b": h.ready(t, "b").PID}
	for _, servers := range [][]upstream.ServerConfig{
		{changed(a, 1), changed(a, 2)},
		{changed(a, 1), {ID: "x", Transport: "pigeon"}},
		{{ID: "x", Transport: upstream.StreamableHTTP, URL: "ftp://x"}},
	} {
		if err := h.Apply(upstream.Config{Servers: servers}); err == nil {
			t.Errorf("no error for %+v", servers)
		}
	}
	for id, pid := range pids {
		if st := h.status(id); st.State != tool.ServerReady || st.PID != pid || st.Restarts != 0 {
			t.Errorf("%s was disturbed: %+v", id, st)
		}
	}
	if len(h.Statuses()) != 2 {
		t.Errorf("servers %+v", h.Statuses())
	}
}

func TestApplyFlipsDisabled(t *testing.T) {
	t.Parallel()
	on := stdio("s", upstreamtest.Script{})
	off := on
	off.Disabled = true
	h := start(t, off)
	for range 3 {
		h.apply(t, on)
		pid := h.ready(t, "s").PID
		h.apply(t, off)
		if c := h.catalog("s"); len(c.Tools) != 0 || c.Pending {
			t.Errorf("a disabled server lists %d tools, pending %v", len(c.Tools), c.Pending)
		}
		if st := h.status("s"); st.State != tool.ServerStopped || st.Tools != 0 {
			t.Errorf("status %+v", st)
		}
		_, err := h.call(t.Context(), "s", "echo", `{}`)
		if f := failure(t, err); f.Code != "server_stopped" || !strings.Contains(f.Message, "disabled") {
			t.Errorf("failure %+v", f)
		}
		eventually(t, "the process is gone", func() bool { return gone([]int{pid}) })
	}
}

func TestApplyBeforeStartAndAfterClose(t *testing.T) {
	t.Parallel()
	g, err := upstream.NewGroup(upstream.Config{Servers: []upstream.ServerConfig{stdio("old", upstreamtest.Script{})}}, discard())
	if err != nil {
		t.Fatal(err)
	}
	early := make(chan error, 1)
	go func() { early <- g.WaitReady(t.Context()) }()
	cfg := upstream.Config{Servers: []upstream.ServerConfig{stdio("new", upstreamtest.Script{})}}
	if err := g.Apply(cfg); err != nil {
		t.Fatal(err)
	}
	g.Start(t.Context())
	if err := errors.Join(g.WaitReady(t.Context()), <-early); err != nil {
		t.Fatal(err)
	}
	if st := g.Statuses(); len(st) != 1 || st[0].Server != "new" || st[0].State != tool.ServerReady {
		t.Errorf("servers %+v", st)
	}
	if err := g.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := g.Apply(cfg); err == nil {
		t.Error("a closed group was changed")
	}
}

func TestCloseWhileRetiring(t *testing.T) {
	t.Parallel()
	h := start(t, stdio("s", upstreamtest.Script{}))
	h.ready(t, "s")
	inFlight := h.waiting(t, "s", "") // for ever
	h.apply(t, changed(stdio("s", upstreamtest.Script{}), 1))
	waiting := make(chan error, 1)
	go func() {
		_, err := h.call(t.Context(), "s", "raw", `{"result":{}}`)
		waiting <- err
	}()
	eventually(t, "a call waits for the successor", func() bool { return h.status("s").InFlight == 1 })
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if f := failure(t, <-inFlight); !f.OutcomeUnknown {
		t.Errorf("the call in flight: %+v", f)
	}
	if f := failure(t, <-waiting); f.OutcomeUnknown {
		t.Errorf("the call that waited: %+v", f)
	}
}

// TestApplyMendsAStuckServer checks that a call which waits for a server that does not come up is answered by the one
// that takes its place.
func TestApplyMendsAStuckServer(t *testing.T) {
	t.Parallel()
	h := start(t, stdio("s", upstreamtestScript(upstreamtest.NeverInitialises)))
	answer := make(chan error, 1)
	go func() {
		_, err := h.call(t.Context(), "s", "raw", `{"result":{}}`)
		answer <- err
	}()
	eventually(t, "the call waits", func() bool { return h.status("s").InFlight == 1 })
	h.apply(t, stdio("s", upstreamtest.Script{}))
	if err := <-answer; err != nil {
		t.Errorf("the call that waited: %v", err)
	}
}

// TestApplyUnderLoad changes one server again and again, and takes another in and out, while ten callers use all.
func TestApplyUnderLoad(t *testing.T) {
	t.Parallel()
	stays, moves := stdio("stays", upstreamtest.Script{}), stdio("moves", upstreamtest.Script{})
	web, _ := overHTTP(t, "web", upstreamtest.Options{})
	h := start(t, stays, web, moves)
	pid := h.ready(t, "stays").PID
	h.ready(t, "web")
	h.ready(t, "moves")
	var stop atomic.Bool
	var callers sync.WaitGroup
	var calls atomic.Int64
	for i := range 10 {
		callers.Go(func() {
			for n := 0; !stop.Load(); n++ {
				id := []string{"stays", "web", "moves"}[(i+n)%3]
				want := fmt.Sprintf(`{"content":[],"n":%d}`, n)
				reply, err := h.call(t.Context(), id, "raw", `{"result":`+want+`}`)
				if err != nil || string(reply.Result) != want {
					t.Errorf("%s: %s, %v", id, reply.Result, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	for n := range 12 {
		roster := []upstream.ServerConfig{stays, web, changed(moves, n)}
		if n%2 == 0 {
			roster = append(roster, stdio("guest", upstreamtest.Script{}))
		}
		h.apply(t, roster...)
		if n%3 == 0 {
			h.ready(t, "moves") // otherwise the next change comes while it starts
		}
		was := calls.Load()
		eventually(t, "calls go on", func() bool { return calls.Load() > was+20 || t.Failed() })
	}
	stop.Store(true)
	callers.Wait()
	if st := h.status("stays"); st.PID != pid || st.Restarts != 0 || st.Errors != 0 {
		t.Errorf("the server that stays was disturbed: %+v", st)
	}
}

// TestApplyKeepsVersionAndCatalogs checks that a configuration without them does not take them away.
func TestApplyKeepsVersionAndCatalogs(t *testing.T) {
	t.Parallel()
	store := newMemory()
	cfg, fake := overHTTP(t, "s", upstreamtest.Options{})
	h := startConfig(t, upstream.Config{Catalogs: store})
	h.apply(t, cfg)
	h.ready(t, "s")
	eventually(t, "the catalog is kept", func() bool { return len(store.all()) == 1 })
	for _, r := range fake.Requests() {
		if strings.Contains(string(r.Body), `"clientInfo"`) && !strings.Contains(string(r.Body), `"version":"9.9"`) {
			t.Errorf("the server was told another version: %s", r.Body)
		}
	}
}
