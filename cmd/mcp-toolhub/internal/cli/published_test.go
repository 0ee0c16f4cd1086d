//go:build e2e

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// npmDir names a directory whose node_modules holds the published servers.
const npmDir = "TOOLHUB_NPM_DIR"

// publishedServers is a config with the published servers. files is what the file server may read.
func publishedServers(t *testing.T, files string) string {
	t.Helper()
	dir := os.Getenv(npmDir)
	if dir == "" {
		t.Skip(npmDir + " names no directory with @modelcontextprotocol/server-everything, server-filesystem, " +
			"server-memory and @playwright/mcp")
	}
	bin := func(name string, args ...string) map[string]any {
		path, err := filepath.Abs(filepath.Join(dir, "node_modules", ".bin", name))
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			t.Fatalf("%s: %v", npmDir, err)
		}
		return map[string]any{"command": path, "args": args, "timeout": "2m"}
	}
	memory := bin("mcp-server-memory")
	memory["env"] = map[string]any{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}
	return configText(t, map[string]any{
		"everything": bin("mcp-server-everything", "stdio"),
		"files":      bin("mcp-server-filesystem", files),
		"memory":     memory,
		"playwright": bin("playwright-mcp", "--headless", "--isolated"),
	}, map[string]any{"profiles": map[string]any{"safe": map[string]any{"style": "safe"}}, "deferred": map[string]any{"mode": "never"}})
}

// TestPublishedServers runs servers that people use behind one hub, and calls their tools.
func TestPublishedServers(t *testing.T) {
	t.Parallel()
	files, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	greeting := filepath.Join(files, "greeting.txt")
	if err := os.WriteFile(greeting, []byte("Grüße <&> \u2028 end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hub := startHub(t, "hub.json", publishedServers(t, files))
	health, body := hub.health(t)
	for _, st := range health.Servers {
		if st.State != tool.ServerReady && st.Isolation == "" || st.Tools == 0 {
			t.Errorf("%s is %s with %d tools: %s (%s)", st.Server, st.State, st.Tools, st.LastError, st.Hint)
		}
		if len(st.Excluded) > 0 {
			t.Errorf("%s: tools are left out: %v", st.Server, st.Excluded)
		}
	}
	if len(health.Servers) != 4 {
		t.Fatalf("health is %s", body)
	}
	for _, version := range []string{rev2025June, rev2025, rev2026} {
		t.Run(version, func(t *testing.T) {
			w := wireHTTP(t, hub.url+"/mcp", version).open()
			callPublished(t, w, greeting)
			checkProgress(t, w)
		})
	}
	all := wireHTTP(t, hub.url+"/mcp", rev2026).tools()
	for _, name := range []string{"mcp.everything.echo", "mcp.files.read_text_file", "mcp.memory.read_graph",
		"mcp.playwright.browser_navigate"} {
		if all[name] == "" {
			t.Errorf("%s is not listed", name)
		}
	}
	checkNames(t, "style safe", nameList(wireHTTP(t, hub.url+"/mcp/p/safe", rev2026).tools()), true)
	for _, client := range pickyClients() {
		w := wireHTTP(t, hub.url+"/mcp", rev2025June)
		w.as(client)
		names := nameList(w.tools())
		checkNames(t, client, names, true)
		names = slices.DeleteFunc(names, func(name string) bool { return name == "result_read" }) // for clients that cut large results
		if len(names) != len(all) {
			t.Errorf("%s is shown %d tools of %d", client, len(names), len(all))
		}
	}
}

// callPublished calls a tool of each server that has one without side effects beyond its own files.
func callPublished(t *testing.T, w *wire, greeting string) {
	t.Helper()
	entity := "of " + w.version
	for _, c := range []struct{ name, args, want string }{
		{"mcp.everything.echo", `{"message":"Grüße \u003c😀>"}`, `Grüße <😀>`},
		{"mcp.everything.get-sum", `{"a":2,"b":40}`, `42`},
		{"mcp.everything.get-sum", `{"a":"two","b":40}`, `"isError":true`},
		{"mcp.files.read_text_file", `{"path":` + quoted(greeting) + `}`, `Grüße <&>`},
		{"mcp.files.read_text_file", `{"path":"/etc/passwd"}`, `"isError":true`},
		{"mcp.memory.create_entities",
			`{"entities":[{"name":` + quoted(entity) + `,"entityType":"test","observations":["a <b>"]}]}`, entity},
		{"mcp.memory.read_graph", `{}`, `a <b>`},
	} {
		if result := w.result(c.name, c.args, ""); !strings.Contains(result, c.want) || !strings.Contains(result, `"toolhub/invocation"`) {
			t.Errorf("%s %s answered %s, want %s", c.name, c.args, result, c.want)
		}
	}
}

// checkProgress calls a tool that takes its time and wants the reports before the result.
func checkProgress(t *testing.T, w *wire) {
	t.Helper()
	const tool = "mcp.everything.trigger-long-running-operation"
	messages := w.send(w.call(tool, `{"duration":0.4,"steps":4}`, `"progressToken":"p"`))
	for i, m := range messages[:len(messages)-1] {
		if !strings.Contains(m, `"progressToken":"p"`) || !strings.Contains(m, fmt.Sprintf(`"progress":%d`, i+1)) {
			t.Errorf("report %d is %s", i+1, m)
		}
	}
	if len(messages) != 5 || !strings.Contains(messages[len(messages)-1], `"status":"succeeded"`) {
		t.Errorf("%d messages of 5: %v", len(messages), messages)
	}
}
