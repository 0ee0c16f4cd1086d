//go:build e2e && unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// gated is the config entry of a scripted server that does nothing until there is the file gate.
func gated(s upstreamtest.Script, gate string) map[string]any {
	entry := child(s)
	entry["args"] = []string{"-c", `until [ -e "$0" ]; do sleep 0.02; done; exec "$1"`, gate, entry["command"].(string)}
	entry["command"] = "sh"
	return entry
}

// coldHub is the config of a hub with the built-in tools and a server that hangs until there is the file gate. Its clients
// wait for it longer than any test.
func coldHub(t *testing.T, gate string, more map[string]any) string {
	t.Helper()
	all := map[string]any{
		"tuning":   tuning{FirstListWithin: 10 * time.Minute},
		"hub":      map[string]any{"toolsets": map[string]any{"code": map[string]any{"root": "."}}},
		"profiles": map[string]any{"default": map[string]any{"exclude": []string{"code.search", "mcp.slow.fail"}}},
		"deferred": neverDeferred()["deferred"],
	}
	for key, value := range more {
		all[key] = value
	}
	return configText(t, map[string]any{"slow": gated(upstreamtest.Script{}, gate)}, all)
}

// TestFirstListWaitsForServers: the first list and a call of an unknown name wait for servers that have never listed. A
// hidden name waits like an unknown one. What is known is called at once. At the next start nobody waits.
func TestFirstListWaitsForServers(t *testing.T) {
	t.Parallel()
	for _, version := range []string{rev2025June, rev2026} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			gate := filepath.Join(dir, "gate")
			config := coldHub(t, gate, nil)
			w := wireHubIn(t, dir, config, version).open()
			list := rawRequest{id: `"list"`, method: "tools/list", params: w.params("", "")}
			call := func(id, name string) string {
				r := w.call(name, `{"path":"."}`, "")
				r.id = `"` + id + `"`
				return r.text()
			}
			w.write(list.text(), call("absent", "mcp.slow.absent"), call("hidden", "code.search"), call("late", "mcp.slow.fail"),
				call("here", "mcp.slow.echo"), call("known", "code.list_dir"))
			if first := w.next(); !strings.HasPrefix(first, `{"jsonrpc":"2.0","id":"known","result":`) {
				t.Fatalf("the first answer is %.300s", first)
			}
			if err := os.WriteFile(gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			answers := map[string]string{}
			for len(answers) < 5 {
				line := w.next()
				if rest, ok := strings.CutPrefix(line, `{"jsonrpc":"2.0","id":"`); ok {
					id, answer, _ := strings.Cut(rest, `",`)
					answers[id] = invocationID.ReplaceAllString(answer, "inv_ID")
				}
			}
			if !strings.Contains(answers["list"], `"mcp.slow.echo"`) {
				t.Errorf("the list is %.300s", answers["list"])
			}
			if !strings.Contains(answers["here"], `"structuredContent"`) {
				t.Errorf("the server's tool answered %s", answers["here"])
			}
			unknown := answers["absent"]
			for id, name := range map[string]string{"hidden": "code.search", "late": "mcp.slow.fail"} {
				if got := strings.ReplaceAll(answers[id], name, "mcp.slow.absent"); got != unknown || !strings.Contains(got, "-32602") {
					t.Errorf("%s answered %s, and an unknown name %s", name, got, unknown)
				}
			}
			w.hangUp()

			if err := os.Remove(gate); err != nil {
				t.Fatal(err)
			}
			w = wireHubIn(t, dir, config, version).open()
			w.write(list.text())
			if answer := w.next(); !strings.Contains(answer, `"mcp.slow.echo"`) {
				t.Errorf("the list of the next start is %.300s", answer)
			}
		})
	}
}

// TestNobodyWaitsForWhatIsDeferred: where tool_search is listed, a list is answered at once.
func TestNobodyWaitsForWhatIsDeferred(t *testing.T) {
	t.Parallel()
	w := wireHub(t, coldHub(t, filepath.Join(t.TempDir(), "gate"), alwaysDeferred), rev2025June).open()
	w.write(rawRequest{id: `"list"`, method: "tools/list", params: w.params("", "")}.text())
	if answer := w.next(); !strings.Contains(answer, `"tool_search"`) {
		t.Errorf("the list is %.300s", answer)
	}
}
