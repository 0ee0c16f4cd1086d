package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// brokenServer is a started group of one isolated server that cannot be started: no file or process is touched.
func brokenServer(t *testing.T, change func(*Config)) *Group {
	t.Helper()
	cfg := Config{RetryBudget: 3, Servers: []ServerConfig{{ID: "s", Transport: Stdio, Isolated: true}}}
	change(&cfg)
	g, err := NewGroup(cfg, quiet())
	if err != nil {
		t.Fatal(err)
	}
	g.Start(t.Context())
	return g
}

func callFor(t *testing.T, g *Group, who string) *tool.Failure {
	t.Helper()
	_, err := g.Execute(t.Context(), &tool.Execution{Tool: &tool.Tool{Server: "s", Native: "x"}, Arguments: []byte(`{}`),
		Params: []byte(`{}`), Session: tool.Session{Key: who, Name: who}, Progress: func(tool.Progress) {}})
	var f *tool.Failure
	if !errors.As(err, &f) {
		t.Fatalf("error %v", err)
	}
	return f
}

// TestSessionsRestAndTryAgain checks the clock of a server that cannot be started: no session starts it while it rests,
// and after the rest one does.
func TestSessionsRestAndTryAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := brokenServer(t, func(c *Config) { c.RetryRest = 15 * time.Minute })
		i := g.roster.Load().byID["s"].isolation
		for n := range 5 {
			callFor(t, g, fmt.Sprint(n))
			synctest.Wait()
		}
		i.mu.Lock()
		started := len(i.failed)
		i.mu.Unlock()
		if started != 3 {
			t.Errorf("started %d times", started)
		}
		f := callFor(t, g, "late")
		if f.RetryAfter < 10*time.Minute || !strings.Contains(f.Message, "started 3 times within an hour") {
			t.Errorf("failure %+v", f)
		}
		time.Sleep(20 * time.Minute)
		callFor(t, g, "after")
		synctest.Wait()
		i.mu.Lock()
		if len(i.failed) != 4 {
			t.Errorf("after the rest it was started %d times", len(i.failed)-3)
		}
		i.mu.Unlock()
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// TestFailedSessionsAreForgotten checks that a session whose connection has failed and that does not call any more leaves
// nothing behind once its idle time has passed.
func TestFailedSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := brokenServer(t, func(c *Config) { c.Servers[0].SessionIdle = 8 * time.Minute })
		i := g.roster.Load().byID["s"].isolation
		open := func() int {
			synctest.Wait()
			i.mu.Lock()
			defer i.mu.Unlock()
			return len(i.open) + len(i.closing)
		}
		callFor(t, g, "ann")
		time.Sleep(7 * time.Minute)
		if n := open(); n != 1 {
			t.Errorf("%d connections before the time is up", n)
		}
		callFor(t, g, "ann")
		time.Sleep(7 * time.Minute)
		if n := open(); n != 1 {
			t.Errorf("%d connections: a call counts as use", n)
		}
		time.Sleep(5 * time.Minute)
		if n := open(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
		if st := g.Statuses()[0]; st.Sessions != 0 || strings.HasPrefix(st.LastError, "session") {
			t.Errorf("status %+v", st)
		}
		if err := g.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
