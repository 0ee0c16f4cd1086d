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
			for range 7 {
				if _, err := h.call(t.Context(), "s", "hang", `{}`); failure(t, err).Class != tool.ClassTimeout {
					t.Errorf("%v", err)
				}
			}
			eventually(t, "another tool answers", func() bool { // or times out on a busy machine
				_, err := h.call(t.Context(), "s", "echo", `{}`)
				return err == nil
			})
			if st := h.ready(t, "s"); st.PID != before.PID || st.Restarts != before.Restarts || st.LastError != "" {
				t.Errorf("it was started anew: %+v", st)
			}
			if !strings.Contains(h.log.String(), "3 requests in a row got no answer") {
				t.Error("it was not asked whether it is there")
			}
		})
	}
}
