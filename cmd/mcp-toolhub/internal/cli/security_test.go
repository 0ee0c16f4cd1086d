package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A session and its results belong to the identity that opened it, whoever knows its id.
func TestSessionsBelongToTheirOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, who := range []string{"ann", "bob"} {
		if err := os.WriteFile(filepath.Join(dir, who), []byte("a-long-token-of-"+who), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g := newTurnstile(t)
	hub := startHub(t, "hub.json", configText(t, map[string]any{"g": g.entry()}, map[string]any{
		"hub": map[string]any{"auth": map[string]any{"tokens": []map[string]any{
			{"name": "ann", "token": "${file:" + filepath.Join(dir, "ann") + "}"},
			{"name": "bob", "token": "${file:" + filepath.Join(dir, "bob") + "}"},
		}}}}))
	ann := wireHTTP(t, hub.url+"/mcp", rev2025, "Authorization", "Bearer a-long-token-of-ann").open()
	bob := wireHTTP(t, hub.url+"/mcp", rev2025, "Authorization", "Bearer a-long-token-of-bob")
	eventually(t, "the tool is listed", func() bool { return ann.tools()["mcp.g.gate"] != "" })
	var calling sync.WaitGroup
	calling.Go(func() {
		r := ann.call("mcp.g.gate", `{"who":"ann"}`, "")
		r.id = "1"
		if _, _, messages := ann.post(r); !strings.Contains(strings.Join(messages, ""), "for ann") {
			t.Errorf("ann got %v", messages)
		}
	})
	await(t, g.reached)
	bob.session = ann.session
	for _, r := range []rawRequest{
		bob.call("mcp.g.echo", `{}`, ""),
		{method: "notifications/cancelled", params: `{"requestId":1}`},
		{id: "9", method: "ping", params: `{}`},
	} {
		if status, _, messages := bob.post(r); status != http.StatusNotFound {
			t.Errorf("%s of bob in ann's session: HTTP %d %v", r.method, status, messages)
		}
	}
	close(g.lock("ann"))
	calling.Wait()
}
