//go:build e2e && unix

package upstream_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestOthersServeMeanwhile checks that servers which fail in every way do not keep an honest one from its work.
func TestOthersServeMeanwhile(t *testing.T) {
	t.Parallel()
	bad := map[string]upstreamtest.Behaviour{
		"never": upstreamtest.NeverInitialises, "exits": upstreamtest.ExitsAtOnce, "noise": upstreamtest.Noise,
		"endless": upstreamtest.EndlessCursor, "silent": upstreamtest.SilentList,
	}
	servers := []upstream.ServerConfig{}
	for id, b := range bad {
		cfg := stdio(id, upstreamtestScript(b))
		switch id {
		case "never":
			cfg.Timeouts.Connect = time.Second
		case "silent":
			cfg.Timeouts.List = time.Second
		}
		servers = append(servers, cfg)
	}
	servers = append(servers, stdio("good", upstreamtest.Script{}))
	h := startConfig(t, upstream.Config{Servers: servers, StartParallel: 10, RetryMin: time.Minute})
	h.ready(t, "good")
	h.mustCall(t, "good", "raw", `{"result":{}}`)
	if err := h.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]struct {
		state       tool.ServerState
		err, hint   string
		tools       int
		pending     bool
		callFailure string
	}{
		"never":   {tool.ServerBackoff, "no answer to initialize within 1s", "raise timeout of", 0, true, "tries again in"},
		"exits":   {tool.ServerBackoff, "exited with status 3; its stderr says: fake server: no license key found", "by hand", 0, true, "license key"},
		"noise":   {tool.ServerReady, "", "", 13, false, ""},
		"endless": {tool.ServerBackoff, "tools/list did not end", "", 0, true, "tools/list"},
		"silent":  {tool.ServerBackoff, "tools/list did not end within 1s (page 1)", "raise timeout of", 0, true, "tools/list"},
	} {
		st, cat := h.status(id), h.catalog(id)
		if st.State != want.state || !strings.Contains(st.LastError, want.err) || !strings.Contains(st.Hint, want.hint) ||
			st.Tools != want.tools || cat.Pending != want.pending || (st.NextTry != nil) != (want.state == tool.ServerBackoff) {
			t.Errorf("%s: status %+v pending %v, want %+v", id, st, cat.Pending, want)
		}
		_, err := h.call(t.Context(), id, "echo", `{}`)
		if want.callFailure == "" {
			if err != nil {
				t.Errorf("%s: call failed: %v", id, err)
			}
			continue
		}
		f := failure(t, err)
		if f.Class != tool.ClassDependencyUnavailable || f.OutcomeUnknown || f.RetryAfter == 0 || !strings.Contains(f.Message, want.callFailure) {
			t.Errorf("%s: failure %+v", id, f)
		}
	}
}

// TestBriskClose checks that Close without time kills a stubborn server, and says so.
func TestBriskClose(t *testing.T) {
	t.Parallel()
	h := start(t, stdio("s", upstreamtestScript(upstreamtest.Stubborn)))
	pid := h.ready(t, "s").PID
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Close(ctx); err == nil {
		t.Error("a close that had no time says nothing of it")
	}
	eventually(t, "the server is gone", func() bool { return gone([]int{pid}) })
}

// TestChildThatClosesStdin checks that a call of which nothing could be written is known not to have run, and that the child
// is given up although its stdout stays open.
func TestChildThatClosesStdin(t *testing.T) {
	t.Parallel()
	h := start(t, stdio("s", upstreamtestScript(upstreamtest.ClosesStdin)))
	first := h.ready(t, "s").PID
	eventually(t, "a call that was never written is known not to have run", func() bool {
		// The first ones may find room in the pipe before the child closes it.
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := h.call(ctx, "s", "echo", `{}`)
		return !failure(t, err).OutcomeUnknown
	})
	if !settles(func() bool { st := h.status("s"); return st.PID != first && st.Restarts > 0 }) {
		t.Errorf("the child is not given up: %+v", h.status("s"))
	}
	if log := h.log.String(); !strings.Contains(log, "closed its stdin and went on running") {
		t.Error("the log does not say why")
	}
}

// TestChildThatStopsReading checks that calls to it fail one by one and can be canceled, and that it can be stopped.
func TestChildThatStopsReading(t *testing.T) {
	t.Parallel()
	cfg, short := stdio("s", upstreamtestScript(upstreamtest.StopsReading)), stdio("short", upstreamtestScript(upstreamtest.StopsReading))
	short.Timeouts.Call = 400 * time.Millisecond
	h := start(t, cfg, short)
	h.ready(t, "s")
	h.ready(t, "short")
	big := `{"x":"` + strings.Repeat("x", 1<<20) + `"}`
	_, err := h.call(t.Context(), "short", "echo", big)
	if f := failure(t, err); f.Class != tool.ClassTimeout {
		t.Errorf("failure %+v", f)
	}
	ctx, cancel := context.WithCancel(t.Context()) // what is in the queue stays there until its caller gives up
	defer cancel()
	codes := make(chan string, 100)
	for range cap(codes) {
		go func() {
			_, err := h.call(ctx, "s", "echo", big)
			codes <- failure(t, err).Code
		}()
	}
	if code := <-codes; code != "server_not_reading" {
		t.Errorf("the first of many calls ends with %s", code)
	}
	cancel()
	for range cap(codes) - 1 {
		<-codes
	}
}

func TestCallWaitsForStartingServer(t *testing.T) {
	t.Parallel()
	cfg := stdio("s", upstreamtestScript(upstreamtest.IgnoresDiscover))
	cfg.Timeouts.Connect = 9 * time.Second // a third of which goes by
	h := start(t, cfg)
	if got := h.mustCall(t, "s", "raw", `{"result":{"a":1}}`); string(got) != `{"a":1}` {
		t.Errorf("result %s", got)
	}
}
