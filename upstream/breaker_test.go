package upstream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestToolThatHangs: a server that answers ping keeps its connection, even if many calls of one tool in
// a row get no answer.
func TestToolThatHangs(t *testing.T) {
	t.Parallel()
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
			h := start(t, cfg)
			before := h.ready(t, "s")
			eventually(t, "it is asked twice whether it is there", func() bool {
				_, err := h.call(t.Context(), "s", "hang", `{}`)
				switch failure(t, err).Class {
				case tool.ClassTimeout, tool.ClassDependencyUnavailable: // its answer to ping may take longer than a call waits
				default:
					t.Error(err)
				}
				return strings.Count(h.log.String(), "3 requests in a row got no answer") >= 2
			})
			eventually(t, "another tool answers", func() bool { // or times out on a busy machine
				_, err := h.call(t.Context(), "s", "echo", `{}`)
				return err == nil
			})
			if st := h.ready(t, "s"); st.PID != before.PID || st.Restarts != before.Restarts || st.LastError != "" {
				t.Errorf("it was started anew: %+v", st)
			}
		})
	}
}
