package cli

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// directServers is a config of two servers, and a profile that leaves out a tool of one.
func directServers(t *testing.T, servers ...string) string {
	t.Helper()
	all := map[string]any{}
	for _, id := range servers {
		all[id] = child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo"), upstreamtest.Tool("raw")}})
	}
	return configText(t, all, map[string]any{"profiles": map[string]any{"default": map[string]any{"exclude": []string{"mcp.one.raw"}}}})
}

// checkDirect wants the tools of the server one under their own names and nothing else, and calls one of them.
func checkDirect(t *testing.T, w *wire) {
	t.Helper()
	want := []string{"echo", "raw"}
	if got := slices.Sorted(maps.Keys(w.tools())); !slices.Equal(got, want) {
		t.Errorf("the view of one shows %q, want %q", got, want)
	}
	if result := w.result(want[0], `{}`, ""); !strings.Contains(result, `"status":"succeeded"`) {
		t.Errorf("a call by the server's own name: %s", result)
	}
	messages := w.send(w.call("mcp.two."+want[0], `{}`, ""))
	if last := messages[len(messages)-1]; !strings.Contains(last, "unknown tool") {
		t.Errorf("a tool of another server: %s", last)
	}
	batch := w.result("tool_batch", `{"calls":[{"id":"own","name":"echo"},{"id":"other","name":"mcp.two.echo"}]}`, "")
	if !strings.Contains(batch, `"status":"succeeded"`) || !strings.Contains(batch, `unknown tool`) {
		t.Errorf("a batch holds calls of the view's tools, and of no others: %s", batch)
	}
}

// TestDirectViewOverStdio holds that a client that starts the hub can have one server alone.
func TestDirectViewOverStdio(t *testing.T) {
	t.Parallel()
	w := wireHub(t, directServers(t, "one", "two"), rev2025, "--server", "one").open()
	w.awaitTools("echo", "raw")
	checkDirect(t, w)
}
