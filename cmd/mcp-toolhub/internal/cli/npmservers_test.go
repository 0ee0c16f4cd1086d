//go:build e2e

package cli

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// npmServers are servers that people use, as entries of a config. .ci/run installs four of them, .ci/long all; others are left out.
func npmServers(t *testing.T, dir string) map[string]any {
	t.Helper()
	files, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for name, words := range map[string][]string{
		"everything": {"mcp-server-everything", "stdio"},
		"files":      {"mcp-server-filesystem", files},
		"memory":     {"mcp-server-memory"},
		"playwright": {"playwright-mcp", "--headless", "--isolated"},
		"thinking":   {"mcp-server-sequential-thinking"},
		"context7":   {"context7-mcp"},
		"firecrawl":  {"firecrawl-mcp"},
		"exa":        {"exa-mcp-server"},
		"github":     {"mcp-server-github"},
		"slack":      {"mcp-server-slack"},
		"brave":      {"mcp-server-brave-search"},
		"tavily":     {"tavily-mcp"},
		"chrome":     {"chrome-devtools-mcp", "--headless", "--isolated"},
		"figma":      {"figma-developer-mcp", "--figma-api-key=none-of-it", "--stdio"},
		"chart":      {"mcp-server-chart"},
	} {
		program := npmProgram(t, words[0])
		if _, err := os.Stat(program); err != nil {
			if os.Getenv("TOOLHUB_LONG") != "" {
				t.Error(err)
			}
			continue
		}
		env := map[string]any{"MEMORY_FILE_PATH": filepath.Join(dir, "memory.jsonl"), "SLACK_TEAM_ID": "none-of-it"}
		for _, key := range []string{"FIRECRAWL_API_KEY", "EXA_API_KEY", "GITHUB_PERSONAL_ACCESS_TOKEN", "SLACK_BOT_TOKEN", "BRAVE_API_KEY", "TAVILY_API_KEY"} {
			env[key] = "none-of-it"
		}
		all[name] = map[string]any{"command": program, "args": words[1:], "env": env, "timeout": "2m", "cwd": dir}
	}
	return all
}

// answer sends r and returns its response, in whichever order that has its members. The server is told of no roots.
func (w *wire) answer(r rawRequest) string {
	w.t.Helper()
	if w.stdin == nil {
		messages := w.send(r)
		return messages[len(messages)-1]
	}
	w.write(r.text())
	for {
		m := w.next()
		id, _ := memberOf(w.t, m, "id")
		if strings.Contains(m, `"method":"roots/list"`) {
			w.write(`{"jsonrpc":"2.0","id":` + id + `,"result":{"roots":[]}}`)
		} else if id == r.id {
			return m
		}
	}
}

// declared are the elements of all lists of a server, as they came.
func (w *wire) declared() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for method, keys := range map[string][2]string{"tools/list": {"tools", "name"}, "prompts/list": {"prompts", "name"},
		"resources/list": {"resources", "uri"}, "resources/templates/list": {"resourceTemplates", "uriTemplate"}} {
		for cursor, more := "", true; more; {
			members := ""
			if cursor != "" {
				members = `"cursor":` + cursor
			}
			answer := w.answer(rawRequest{id: w.nextID(), method: method, params: w.params(members, "")})
			result, ok := memberOf(w.t, answer, "result")
			if !ok {
				break // it has no such list
			}
			var page map[string]json.RawMessage
			var elements []json.RawMessage
			mustDecode(w.t, result, &page)
			mustDecode(w.t, string(page[keys[0]]), &elements)
			for _, e := range elements {
				key, _ := memberOf(w.t, string(e), keys[1])
				all[method+" "+key] = string(e)
			}
			cursor, more = memberOf(w.t, result, "nextCursor")
		}
	}
	return all
}

// TestServersFromNPM: what servers that people use declare is the same through the hub as direct, byte by byte: in a direct view all of it, and
// in the usual list of tools all but the name.
func TestServersFromNPM(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	servers := npmServers(t, dir)
	hub := startHub(t, "hub.json", configText(t, servers, map[string]any{"deferred": map[string]any{"mode": "never"}}))
	for name, entry := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entry := entry.(map[string]any)
			cmd := exec.Command(entry["command"].(string), entry["args"].([]string)...)
			cmd.Dir, cmd.Env = dir, scratchEnv(dir)
			for key, value := range entry["env"].(map[string]any) {
				cmd.Env = append(cmd.Env, key+"="+value.(string))
			}
			direct := wireProcess(t, cmd, rev2025).able().open()
			through := wireHTTP(t, hub.url+"/mcp/s/"+name, rev2025).able().open()
			var want, got map[string]string
			defer func() {
				for key, text := range want {
					if t.Failed() && got[key] != text {
						t.Logf("%s is direct\n%s\nand through the hub\n%s", key, text, got[key])
					}
				}
			}()
			eventually(t, "both declare the same", func() bool { // some add tools once they know their client
				want, got = direct.declared(), through.declared()
				return len(want) > 0 && maps.Equal(want, got)
			})
			usual := wireHTTP(t, hub.url+"/mcp", rev2025).able().open().tools()
			for key, text := range want {
				tool, ok := strings.CutPrefix(key, "tools/list ")
				if !ok {
					continue
				}
				tool = strings.Trim(tool, `"`)
				own := "mcp." + name + "." + tool
				if got := strings.Replace(usual[own], quoted(own), quoted(tool), 1); got != text {
					t.Errorf("%s is direct\n%s\nand in the list of all tools\n%s", own, text, usual[own])
				}
			}
			t.Logf("%d declarations: %s …", len(want), strings.Join(slices.Sorted(maps.Keys(want))[:min(3, len(want))], ", "))
			direct.hangUp()
		})
	}
}
