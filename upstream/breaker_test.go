package upstream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// hasty runs a test with a server of each transport that does not wait for its tool hang.
func hasty(t *testing.T, run func(*testing.T, *harness)) {
	for name, cfg := range map[string]func(*testing.T) upstream.ServerConfig{
		"stdio": func(*testing.T) upstream.ServerConfig { return stdio("s", upstreamtest.Script{}) },
		"http": func(t *testing.T) upstream.ServerConfig {
			cfg, _ := overHTTP(t, "s", upstreamtest.Options{})
			return cfg
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := cfg(t)
			cfg.Timeouts.Call = 300 * time.Millisecond
			run(t, startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, RetryMin: time.Second, RetryMax: 2 * time.Second}))
		})
	}
}

// TestToolThatHangs: a server that answers ping keeps its connection, even if many calls of one tool in
// a row get no answer.
func TestToolThatHangs(t *testing.T) {
	t.Parallel()
	hasty(t, func(t *testing.T, h *harness) {
		before := h.ready(t, "s")
		for range 7 {
			if _, err := h.call(t.Context(), "s", "hang", `{}`); failure(t, err).Class != tool.ClassTimeout {
				t.Errorf("%v", err)
			}
		}
		h.mustCall(t, "s", "echo", `{}`)
		if st := h.ready(t, "s"); st.PID != before.PID || st.Restarts != before.Restarts || st.LastError != "" {
			t.Errorf("it was started anew: %+v", st)
		}
		if !strings.Contains(h.log.String(), "3 requests in a row got no answer") {
			t.Error("it was not asked whether it is there")
		}
	})
}

// TestServersThatAreNotSilent: failed calls are answers, and so are late ones; one answer ends a row.
func TestServersThatAreNotSilent(t *testing.T) {
	t.Parallel()
	hasty(t, func(t *testing.T, h *harness) {
		h.ready(t, "s")
		hang := func(arguments string) {
			if _, err := h.call(t.Context(), "s", "hang", arguments); failure(t, err).Class != tool.ClassTimeout {
				t.Errorf("%v", err)
			}
		}
		for range 2 {
			hang(`{}`)
			hang(`{}`)
			h.mustCall(t, "s", "raw", `{"result":{"isError":true,"content":[]}}`)
		}
		for range 4 {
			_, _ = h.call(t.Context(), "s", "fail", `{"error":{"code":-32603,"message":"broken"}}`)
		}
		if h.status("s").Transport == "stdio" { // over HTTP a cancellation ends the stream
			for range 4 {
				hang(`{"then":"finish"}`)
			}
		}
		hang(`{}`)
		hang(`{}`)
		h.mustCall(t, "s", "echo", `{}`)
		if log := h.log.String(); strings.Contains(log, "in a row") {
			t.Error("the server was asked whether it is there")
		}
	})
}
