//go:build e2e

package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestNoRouteAddsACommand posts a server's entry to every route that the hub has, at both of its doors. No server is added,
// no process started, and the config file stays as it was.
func TestNoRouteAddsACommand(t *testing.T) {
	t.Parallel()
	p := startPermitted(t, map[string]any{"mode": "accept_all"}, nil)
	before := readFile(t, p.file)
	proof := filepath.Join(p.dir, "proof")
	entry := `{"mcpServers":{"evil":{"command":"touch","args":[` + quoted(proof) + `]}},"name":"evil","command":"touch","args":[` + quoted(proof) + `]}`
	_, api := p.notice(t)
	for _, base := range []string{p.url, api} {
		for _, path := range []string{"/", "/mcp", "/mcp/p/evil", "/mcp/s/evil", "/mcp/s/s", "/servers", "/servers/evil", "/config", "/reload",
			"/api/servers", "/admin", "/health/ready", "/health/live", "/approvals", "/approvals/evil", "/grants", "/grants/evil", "/trust", "/ui/add",
			"/ui/servers/evil/enable", "/ui/tools/enable"} {
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch} {
				req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(entry))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Accept", "application/json, text/event-stream")
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode < 400 {
					t.Errorf("%s %s was answered %s", method, path, resp.Status)
				}
			}
		}
	}
	health, _ := p.health(t)
	if len(health.Servers) != 1 {
		t.Errorf("the hub has %d servers, want the one of its config", len(health.Servers))
	}
	if _, err := os.Stat(proof); err == nil {
		t.Error("a command from a request was run")
	}
	if after := readFile(t, p.file); after != before {
		t.Error("the config file has changed")
	}
}

// TestAnnotationsAreNotBelieved lists a tool that deletes and says that it only reads. Without trust a person is asked about
// it; with trust its name still counts.
func TestAnnotationsAreNotBelieved(t *testing.T) {
	t.Parallel()
	tools := []json.RawMessage{
		json.RawMessage(`{"name":"lookup","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`),
		json.RawMessage(`{"name":"delete_all","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"destructiveHint":false}}`),
	}
	for _, c := range []struct {
		trust bool
		name  string
		runs  bool
	}{{false, "lookup", false}, {false, "delete_all", false}, {true, "lookup", true}, {true, "delete_all", false}} {
		far := with(child(upstreamtest.Script{Tools: tools}), "trust", c.trust)
		p := startPermittedWith(t, far, map[string]any{"ask": map[string]any{"channels": []string{"client"}}})
		w := p.client(rev2025).open()
		eventually(t, "the tools are listed", func() bool { return w.tools()["mcp.s.lookup"] != "" })
		got := w.result("mcp.s."+c.name, `{}`, "")
		if runs := strings.Contains(got, `"status":"succeeded"`); runs != c.runs {
			t.Errorf("trust %v: %s was answered %s", c.trust, c.name, got)
		}
		if !c.runs && !strings.Contains(got, `"error_class":"approval_rejected"`) && !strings.Contains(got, string(tool.ClassPermissionDenied)) {
			t.Errorf("trust %v: %s was refused as %s", c.trust, c.name, got)
		}
	}
}

// TestSessionIDsCannotBeGuessed opens sessions and tries ids beside theirs: one with another letter anywhere, one that a hub
// with another key has given, and the plain words that a guess would begin with. The hub knows none of them.
func TestSessionIDsCannotBeGuessed(t *testing.T) {
	t.Parallel()
	config := configText(t, map[string]any{}, nil)
	hub, other := startHub(t, "hub.json", config), startHub(t, "hub.json", config)
	w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
	known, seen := w.session, map[string]bool{}
	for range 50 {
		id := wireHTTP(t, hub.url+"/mcp", rev2025).open().session
		if seen[id] || len(id) < 32 {
			t.Fatalf("the session id %q is short, or was given twice", id)
		}
		seen[id] = true
	}
	guesses := []string{"1", "session", strings.Repeat("0", len(known)), known[:len(known)-1], known + "0",
		wireHTTP(t, other.url+"/mcp", rev2025).open().session}
	for at := 0; at < len(known)-1; at += max(1, len(known)/16) { // the last letter of base64 may have bits that mean nothing
		guesses = append(guesses, flip(known, at))
	}
	for _, guess := range guesses {
		w.session = guess
		if status, _, messages := w.post(rawRequest{id: "7", method: "tools/list", params: "{}"}); status != http.StatusNotFound {
			t.Errorf("the id %q was answered %d %v", guess, status, messages)
		}
	}
	w.session = known
	if status, _, messages := w.post(rawRequest{id: "8", method: "tools/list", params: "{}"}); status != http.StatusOK {
		t.Errorf("the session itself was answered %d %v", status, messages)
	}
}
