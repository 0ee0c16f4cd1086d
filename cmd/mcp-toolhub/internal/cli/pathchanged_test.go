//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestLinksMadeInABatch: a link that the first call of a batch makes does not lead the second one to where nobody would have let it go.
// One that leads to where it may go is no fault.
func TestLinksMadeInABatch(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("links need rights there")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var tools []json.RawMessage
	mustDecode(t, aimedTools, &tools)
	tools = append(tools, json.RawMessage(`{"name":"read_file","description":"Reads a file","annotations":{"readOnlyHint":true},`+
		`"inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}`))
	hub := startHub(t, "hub.json", configText(t, map[string]any{"s": with(with(child(upstreamtest.Script{Tools: tools}), "cwd", root), "trust", true)}, map[string]any{
		"hub": map[string]any{"toolsets": map[string]any{"code": map[string]any{"root": root, "run_command": map[string]any{}}}},
		"policy": map[string]any{"ask": map[string]any{"channels": []string{"client"}},
			"rules": []any{map[string]any{"match": []string{"*", "code.run_command"}, "then": "allow"}}}}))
	w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
	for i, c := range []struct {
		to, tool, path string
		runs           bool
	}{
		{filepath.Join(hub.cmd.Dir, "state"), "read_file", "mcp-toolhub/run/a", false},
		{t.TempDir(), "write_file", "x", false},
		{filepath.Join(root, "inner"), "write_file", "x", true},
	} {
		link := fmt.Sprintf("link%d", i)
		got := w.batch(fmt.Sprintf(`{"calls":[{"id":"link","name":"code.run_command","arguments":{"argv":["ln","-s",%q,%q]}},`+
			`{"id":"use","name":"mcp.s.%s","arguments":{"path":%q}}]}`, c.to, filepath.Join(root, link), c.tool, link+"/"+c.path))
		ends := []string{"link succeeded; use succeeded"}
		if !c.runs { // the link may be there before the other call is judged for the first time
			ends = []string{"link succeeded; use denied,permission_denied", "link succeeded; use blocked,policy_blocked"}
		}
		if !slices.Contains(ends, got.ends()) {
			t.Errorf("%s: %s: %s", c.to, got.ends(), got.StructuredContent.Results[1].Result)
		}
	}
}
