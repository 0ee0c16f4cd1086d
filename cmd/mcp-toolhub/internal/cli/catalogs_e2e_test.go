//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// recording is what one real server has answered, raw.
type recording struct {
	name       string
	initialize json.RawMessage
	pages      []json.RawMessage // results of tools/list, compact
	tools      map[string]string // declarations by the server's own name
}

// recordings are the real servers in ../shared/catalog.
func recordings(t *testing.T) []recording {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "..", "shared", "catalog", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no recorded catalogs in ../shared/catalog beside the repository")
	}
	var all []recording
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var recorded struct {
			Initialize json.RawMessage   `json:"initialize"`
			Pages      []json.RawMessage `json:"tools/list"`
		}
		mustDecode(t, onOneLine(t, string(text)), &recorded)
		r := recording{name: strings.TrimSuffix(filepath.Base(file), ".json"), initialize: recorded.Initialize, pages: recorded.Pages,
			tools: map[string]string{}}
		for _, page := range r.pages {
			var list struct{ Tools []json.RawMessage }
			mustDecode(t, string(page), &list)
			for _, d := range list.Tools {
				var head struct{ Name string }
				mustDecode(t, string(d), &head)
				r.tools[head.Name] = string(d)
			}
		}
		all = append(all, r)
	}
	return all
}

// replay serves every recording over HTTP at /NAME: initialize and tools/list as they were recorded, and to a call what
// was called.
func replay(t *testing.T, all []recording) string {
	t.Helper()
	byName := map[string]recording{}
	for _, r := range all {
		byName[r.name] = r
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r := byName[strings.TrimPrefix(req.URL.Path, "/")]
		body, _ := io.ReadAll(req.Body)
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cursor, Name string }
		}
		if req.Method != http.MethodPost || json.Unmarshal(body, &m) != nil {
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		answer := `"error":{"code":-32601,"message":"method not found"}`
		switch m.Method {
		case "initialize":
			answer = `"result":` + string(r.initialize)
			w.Header().Set("Mcp-Session-Id", "replayed")
		case "ping":
			answer = `"result":{}`
		case "tools/list":
			page := 0
			for i := range r.pages {
				if m.Params.Cursor == "" {
					break
				}
				if next, ok := memberOf(t, string(r.pages[i]), "nextCursor"); ok && next == quoted(m.Params.Cursor) {
					page = i + 1
				}
			}
			answer = `"result":` + string(r.pages[page])
		case "tools/call":
			answer = fmt.Sprintf(`"result":{"content":[],"structuredContent":{"server":%q,"tool":%q}}`, r.name, m.Params.Name)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
	}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL
}

// TestRecordedServersTogether runs all recorded servers behind one hub and looks at them in every style and as each
// client that is known.
func TestRecordedServersTogether(t *testing.T) {
	t.Parallel()
	all := recordings(t)
	url := replay(t, all)
	servers, profiles := map[string]any{}, map[string]any{}
	for _, r := range all {
		servers[r.name] = map[string]any{"type": "http", "url": url + "/" + r.name, "validate": "off"}
	}
	for _, style := range []string{"canonical", "safe", "short", "native"} {
		profiles[style] = map[string]any{"style": style}
	}
	hub := startHub(t, "hub.json", configText(t, servers, map[string]any{"profiles": profiles,
		"deferred": map[string]any{"mode": "never"}}))
	holders := map[string][]string{} // which servers have a tool of that name
	total := 0
	for _, r := range all {
		total += len(r.tools)
		for name := range r.tools {
			holders[name] = append(holders[name], r.name)
		}
	}
	if len(all) != 26 || total < 380 {
		t.Fatalf("%d servers with %d tools were recorded", len(all), total)
	}

	canonical := wireHTTP(t, hub.url+"/mcp/p/canonical", rev2026).open()
	checkDeclarations(t, all, canonical.tools())
	checkCollisions(t, canonical, holders)
	unique := 0
	for _, servers := range holders {
		if len(servers) == 1 {
			unique++
		}
	}
	for style, want := range map[string]int{"canonical": total, "safe": total, "short": total, "native": unique} {
		names := nameList(wireHTTP(t, hub.url+"/mcp/p/"+style, rev2025).open().tools())
		if len(names) != want {
			t.Errorf("style %s lists %d tools of %d", style, len(names), want)
		}
		if style != "canonical" {
			checkNames(t, "style "+style, names, style != "native")
		}
	}
	for _, client := range pickyClients() {
		w := wireHTTP(t, hub.url+"/mcp", rev2025June)
		w.as(client)
		names := slices.DeleteFunc(nameList(w.tools()), func(name string) bool { return name == "result_read" })
		if len(names) != total {
			t.Errorf("%s is shown %d tools of %d", client, len(names), total)
		}
		checkNames(t, client, names, true)
	}
}

// pickyClients are clients, by the names that they give, that do not take every name of a tool.
func pickyClients() []string {
	return []string{"claude-code", "codex-mcp-client", "gemini-cli-mcp-client", "Visual Studio Code", "cursor-vscode"}
}

func nameList(tools map[string]string) []string {
	names := make([]string, 0, len(tools))
	for name := range tools {
		names = append(names, name)
	}
	return names
}

// checkDeclarations: each tool is listed as it was recorded, but for the name; one without a schema that clients accept
// has got one, and all else of it is as it was.
func checkDeclarations(t *testing.T, all []recording, got map[string]string) {
	t.Helper()
	repaired := map[string]int{}
	for _, r := range all {
		for native, declaration := range r.tools {
			name := "mcp." + r.name + "." + native
			want := ""
			for _, m := range membersOf(t, declaration) {
				if m.key == "name" {
					want = declaration[:m.valueAt] + quoted(name) + declaration[m.end:]
				}
			}
			if got[name] == want {
				continue
			}
			repaired[r.name]++
			schema, _ := memberOf(t, got[name], "inputSchema")
			if kind, _ := memberOf(t, schema, "type"); kind != `"object"` {
				t.Errorf("%s is listed with the schema %s", name, schema)
			}
			isSchema := func(key string) bool { return key == "inputSchema" }
			if g, w := without(t, got[name], isSchema), without(t, want, isSchema); g != w {
				t.Errorf("%s\n got %s\nwant %s", name, g, w)
			}
		}
	}
	if repaired["gitlab"] != 9 || len(repaired) != 1 {
		t.Errorf("schemas were repaired of %v, want the 9 of gitlab", repaired)
	}
}

// checkCollisions: of tools that several servers call by one name, each is reached by its own.
func checkCollisions(t *testing.T, w *wire, holders map[string][]string) {
	t.Helper()
	colliding := 0
	for native, servers := range holders {
		if len(servers) < 2 {
			continue
		}
		colliding++
		for _, server := range servers {
			for _, name := range []string{"mcp." + server + "." + native, "mcp__" + server + "__" + native} {
				result := w.result(name, `{}`, "")
				if want := fmt.Sprintf(`{"server":%q,"tool":%q}`, server, native); !strings.Contains(result, want) {
					t.Errorf("%s answered %s, want %s", name, result, want)
				}
			}
		}
		messages := w.send(w.call(native, `{}`, ""))
		if !strings.Contains(messages[0], `"code":-32602`) {
			t.Errorf("%q of %v is called as %s", native, servers, messages[0])
		}
	}
	if colliding < 18 {
		t.Errorf("only %d names collide, the recorded servers alone have 18", colliding)
	}
}

var safeName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checkNames holds names against what known clients take. ours says that the hub has made them; native
// names are their servers' own, and nobody can make them shorter.
func checkNames(t *testing.T, who string, names []string, ours bool) {
	t.Helper()
	ends, cut := map[string]string{}, map[string]string{}
	for _, name := range names {
		if !safeName.MatchString(name) {
			t.Errorf("%s: %q is no name of 64 safe characters", who, name)
		}
		if ours && len(name) > 46 {
			t.Errorf("%s: %q is longer than 46", who, name)
		}
		if len("mcp__toolhub__"+name) > 128 {
			t.Errorf("%s: %q is dropped by Claude Code", who, name)
		}
		if end := name[:min(30, len(name))] + "|" + name[max(0, len(name)-30):]; ends[end] != "" {
			t.Errorf("%s: %q and %q have equal first and last 30 characters", who, name, ends[end])
		} else {
			ends[end] = name
		}
		long := "mcp_toolhub_" + name // Gemini CLI cuts it to 63 in the middle
		if len(long) > 63 {
			long = long[:30] + "..." + long[len(long)-30:]
		}
		if cut[long] != "" {
			t.Errorf("%s: %q and %q are the same once cut", who, name, cut[long])
		}
		cut[long] = name
	}
}
