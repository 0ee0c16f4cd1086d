//go:build e2e && unix

package upstream_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

func TestSubscriptionsAreBounded(t *testing.T) {
	t.Parallel()
	h, _ := hear(t, stdio("s", upstreamtest.Script{Features: full()}))
	h.ready(t, "s")
	a := tool.Session{Key: "a"}
	for i := range 1000 {
		if err := h.Subscribe(t.Context(), "s", fmt.Sprintf("x://%d", i), a, tool.Hop{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Subscribe(t.Context(), "s", "x://more", a, tool.Hop{}); failure(t, err).Class != tool.ClassRateLimited {
		t.Errorf("error %v", err)
	}
	if err := h.Subscribe(t.Context(), "s", "x://5", a, tool.Hop{}); err != nil {
		t.Error(err)
	}
	if err := h.Subscribe(t.Context(), "s", "x://more", tool.Session{Key: "b"}, tool.Hop{}); err != nil {
		t.Error(err)
	}
}

// TestSubscriptionsKeepAServerAwake checks that a server from which updates are awaited is not stopped for being idle.
func TestSubscriptionsKeepAServerAwake(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtest.Script{Features: full()})
	cfg.IdleStop = 100 * time.Millisecond
	h, _ := hear(t, cfg)
	h.started(t)
	if err := h.Subscribe(t.Context(), "s", "x://1", tool.Session{}, tool.Hop{}); err != nil {
		t.Fatal(err)
	}
	pid := h.ready(t, "s").PID
	idle := time.NewTimer(500 * time.Millisecond)
	<-idle.C
	if st := h.status("s"); st.State != tool.ServerReady || st.PID != pid {
		t.Errorf("status %+v", st)
	}
	if err := h.Unsubscribe(t.Context(), "s", "x://1", tool.Session{}); err != nil {
		t.Fatal(err)
	}
	h.reaches(t, "s", tool.ServerStopped)
}

// TestLogLevelIsNotTaken: a server that does not answer logging/setLevel is called all the same.
func TestLogLevelIsNotTaken(t *testing.T) {
	t.Parallel()
	h := start(t, stdio("s", upstreamtest.Script{Features: full(), Behaviours: []upstreamtest.Behaviour{upstreamtest.SilentLevel}}))
	h.ready(t, "s")
	h.SetLogLevel("debug")
	for range 20 { // not each after a second
		if got := h.wishes(t).Levels; !slices.Equal(got, []string{"debug"}) {
			t.Errorf("the server was told %q", got)
		}
	}
}
