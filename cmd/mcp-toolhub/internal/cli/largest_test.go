//go:build e2e

package cli

import (
	"cmp"
	"encoding/json"
	"slices"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestLargestServer: a server with as many tools as the largest real one passes under the limits as they are, even where
// each tool is among the longest that real servers declare, and the servers beside it pass with it.
func TestLargestServer(t *testing.T) {
	t.Parallel()
	const largest = 344
	var tools []json.RawMessage
	for _, r := range recordings(t) {
		for name, declaration := range r.tools {
			own, err := rawjson.Set([]byte(declaration), "name", rawjson.Quote(r.name+"_"+name)) // some names are in several servers
			if err != nil {
				t.Fatal(err)
			}
			tools = append(tools, own)
		}
	}
	if len(tools) < largest {
		t.Fatalf("%d tools are recorded only", len(tools))
	}
	slices.SortFunc(tools, func(a, b json.RawMessage) int { return cmp.Or(len(b)-len(a), cmp.Compare(string(a), string(b))) })
	tools = tools[:largest]
	size := 0
	for _, one := range tools {
		size += len(one)
	}
	t.Logf("%d tools, %d bytes, the longest %d", len(tools), size, len(tools[0]))
	servers := map[string]any{
		"json":  map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{JSON: true, Script: upstreamtest.Script{Tools: tools}})},
		"pages": map[string]any{"type": "http", "url": fakeHTTP(t, upstreamtest.Options{Script: upstreamtest.Script{Tools: tools, PageSize: 10, Modern: true}})},
		"sse":   map[string]any{"type": "sse", "url": fakeHTTP(t, upstreamtest.Options{SSE: true, Script: upstreamtest.Script{Tools: tools}})},
	}
	hub := startHub(t, "hub.json", configText(t, servers, neverDeferred()))
	for id := range servers {
		if st := hub.server(t, id); st.State != tool.ServerReady || st.Tools != largest || len(st.Excluded) != 0 {
			t.Errorf("%s is %s with %d tools, excluded %v: %s", id, st.State, st.Tools, st.Excluded, st.LastError)
		}
	}
	if listed := wireHTTP(t, hub.url+"/mcp", rev2025).open().tools(); len(listed) != len(servers)*largest {
		t.Errorf("%d tools are listed", len(listed))
	}
}
