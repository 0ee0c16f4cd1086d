//go:build unix

package upstream_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestDeepTools: however deep one tool nests, it costs no other one, and the list is known at the next start, too.
func TestDeepTools(t *testing.T) {
	t.Parallel()
	const levels = 100_000
	lone := fmt.Appendf(nil, `{"name":"lone","inputSchema":{"type":"object"},"_meta":{"x":%s%s}}`, strings.Repeat("[", levels), strings.Repeat("]", levels))
	broken := fmt.Appendf(nil, `{"name":"broken","inputSchema":{"type":"object"},"x":01,"_meta":{"x":%s%s}}`,
		strings.Repeat("[", levels), strings.Repeat("]", levels))
	script := upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("first"), upstreamtest.DeepTool("deep", levels), lone, broken,
		upstreamtest.Tool("echo")}}
	for name, o := range map[string]upstreamtest.Options{"stream": {}, "json": {JSON: true}, "sse": {SSE: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.Script = script
			cfg, _ := overHTTP(t, "s", o)
			kept := newMemory()
			check := func(h *harness) {
				t.Helper()
				c := h.catalog("s")
				if got := h.names("s"); got != "first deep echo" {
					t.Fatalf("tools %s", got)
				}
				if r := c.Tools[1].Repairs; len(r) != 1 || string(c.Tools[1].InputSchema) != `{"type":"object"}` {
					t.Errorf("repairs %+v", r)
				}
				if len(c.Excluded) != 2 || c.Excluded[0].Code != "too_large" || c.Excluded[1].Code != "too_large" {
					t.Errorf("excluded %+v", c.Excluded)
				}
			}
			h := startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, Catalogs: kept})
			h.ready(t, "s")
			check(h)
			h.mustCall(t, "s", "echo", `{}`)
			eventually(t, "the catalog is kept", func() bool { return len(kept.all()) == 1 })
			cfg.Lazy = true // it is known what it offers, so nothing is asked
			check(startConfig(t, upstream.Config{Servers: []upstream.ServerConfig{cfg}, Catalogs: kept}))
		})
	}
}
