//go:build e2e

package cli

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A hub that runs on a project's config keeps its settings when the file changes, and takes the new ones as soon as a person
// trusts them.
func TestRunningHubWaitsForTrustInAChangedConfig(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, ran := filepath.Join(dir, "mcp-toolhub.json"), filepath.Join(dir, "ran")
	before := map[string]any{"one": map[string]any{"command": "mcp-toolhub", "args": []string{"demo-server"}}}
	writeFile(t, file, configText(t, before, nil))
	trust(t, dir)
	h, err := launch(dir, scratchEnv(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.stop() }()

	after := map[string]any{"two": map[string]any{"command": "sh", "args": []string{"-c", "touch '" + ran + "'; exec mcp-toolhub demo-server"}}}
	replaceFile(t, file, configText(t, after, nil))
	if err := h.waitFor(regexp.MustCompile(`config is not applied.*has changed since it was allowed; look at what has changed, then run: mcp-toolhub allow-config`)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a changed command ran unseen")
	}
	for view, want := range map[string]int{"one": http.StatusOK, "two": http.StatusNotFound} {
		if got := initializeStatus(t, h.url+"/mcp/s/"+view); got != want {
			t.Errorf("before it is trusted, the server %s answers %d, want %d", view, got, want)
		}
	}
	trust(t, dir)
	if err := h.waitFor(regexp.MustCompile(`config is applied`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new server is started", func() bool { _, err := os.Stat(ran); return err == nil })
}

// trust trusts the config in dir.
func trust(t *testing.T, dir string) {
	t.Helper()
	cmd := exec.Command("mcp-toolhub", "trust")
	cmd.Dir, cmd.Env = dir, scratchEnv(dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// initializeStatus is the HTTP status of an initialize at url.
func initializeStatus(t *testing.T, url string) int {
	t.Helper()
	const body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"test","version":"1"}}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
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
	return resp.StatusCode
}
