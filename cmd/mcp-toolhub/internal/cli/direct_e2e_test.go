//go:build e2e

package cli

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestDirectViews holds that each server has a view of its own, through the same pipeline, as long as the config names it.
func TestDirectViews(t *testing.T) {
	t.Parallel()
	hub := startHub(t, "hub.json", directServers(t, "one", "two"))
	for _, version := range []string{rev2025June, rev2025, rev2026} {
		checkDirect(t, wireHTTP(t, hub.url+"/mcp/s/one", version).open())
	}
	two := wireHTTP(t, hub.url+"/mcp/s/two", rev2025).open()
	if !strings.Contains(objectsBeneath(t, hub.cmd.Dir), `"tool_id":"mcp.one.`) {
		t.Error("calls through a view have no records by their canonical names")
	}
	replaceFile(t, filepath.Join(hub.cmd.Dir, "hub.json"), directServers(t, "one"))
	if err := hub.waitFor(regexp.MustCompile(`config is applied`)); err != nil {
		t.Fatal(err)
	}
	checkDirect(t, wireHTTP(t, hub.url+"/mcp/s/one", rev2025).open())
	if status, _, got := two.post(rawRequest{id: "9", method: "tools/list", params: "{}"}); status != http.StatusNotFound {
		t.Errorf("the view of a server that is gone: %d %v", status, got)
	}
	checkRecordsBeneath(t, hub.cmd.Dir) // each view has a record, too
}

// TestDirectViewOfABatch holds that a server's own tool is what its view means by the name tool_batch, and that a rule can hide the
// hub's.
func TestDirectViewOfABatch(t *testing.T) {
	t.Parallel()
	own := child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("tool_batch")}})
	hub := startHub(t, "hub.json", configText(t, map[string]any{"own": own, "one": child(upstreamtest.Script{})}, map[string]any{
		"policy": map[string]any{"mode": "accept_all", "rules": []any{map[string]any{"match": "tool_batch", "then": "deny"}}}}))
	if result := wireHTTP(t, hub.url+"/mcp/s/own", rev2025).open().result("tool_batch", `{"any":1}`, ""); !strings.Contains(result, `"ok"`) {
		t.Errorf("the server's own tool_batch: %s", result)
	}
	w := wireHTTP(t, hub.url+"/mcp/s/one", rev2025).open()
	if messages := w.send(w.call("tool_batch", `{"calls":[{"id":"a","name":"echo"}]}`, "")); !strings.Contains(messages[len(messages)-1], "unknown tool") {
		t.Errorf("a hidden tool_batch: %s", messages)
	}
}
