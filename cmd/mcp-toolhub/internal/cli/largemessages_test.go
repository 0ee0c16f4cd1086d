//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestCatalogsHoldNoMemory has 30 servers with long lists of tools, and lets large messages have little memory. All come up.
func TestCatalogsHoldNoMemory(t *testing.T) {
	t.Parallel()
	servers := map[string]any{}
	for i := range 30 {
		var tools []json.RawMessage
		for n := range 4 + i { // of 32 KiB each
			tools = append(tools, fmt.Appendf(nil, `{"name":"t%d","description":"%s","inputSchema":{"type":"object"}}`, n, strings.Repeat("x ", 16<<10)))
		}
		servers[fmt.Sprintf("s%d", i)] = map[string]any{"type": "http",
			"url": fakeHTTP(t, upstreamtest.Options{JSON: true, Sized: i%2 == 0, Script: upstreamtest.Script{Tools: tools}})}
	}
	hub := startHub(t, "hub.json", configText(t, servers, map[string]any{"hub": map[string]any{"limits": map[string]any{"memory": "8MiB"}}}))
	for id := range servers {
		if st := hub.server(t, id); st.State != tool.ServerReady {
			t.Errorf("%s is %s: %s", id, st.State, st.LastError)
		}
	}
}
