package cli

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestTokensOpenTheirProfiles: a token with profiles opens those and no others, direct views among them, also once the config has changed. A
// token without them opens all.
func TestTokensOpenTheirProfiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := func(small ...string) string {
		var tokens []any
		for name, profiles := range map[string][]string{"ann": small, "bob": {"default", "s/s"}, "carl": nil} {
			replaceFile(t, filepath.Join(dir, name), name+"-token-of-the-test")
			token := map[string]any{"name": name, "token": "${file:" + filepath.Join(dir, name) + "}"}
			if profiles != nil {
				token["profiles"] = profiles
			}
			tokens = append(tokens, token)
		}
		return configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo")}})}, map[string]any{
			"profiles": map[string]any{"small": map[string]any{}, "other": map[string]any{}}, "hub": map[string]any{"auth": map[string]any{"tokens": tokens}}})
	}
	file := filepath.Join(dir, "hub.json")
	replaceFile(t, file, config("small"))
	h, err := launch(dir, scratchEnv(dir), "--config", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.stop() })
	status := func(path, name string) int {
		t.Helper()
		method, body := http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{`+clientMeta+`{}}}}`
		req, err := http.NewRequestWithContext(t.Context(), method, h.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for header, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": rev2026, "Mcp-Method": "tools/list", "Authorization": "Bearer " + name + "-token-of-the-test"} {
			req.Header.Set(header, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for name, opens := range map[string][]string{"ann": {"/mcp/p/small"}, "bob": {"/mcp", "/mcp/p/default", "/mcp/s/s"},
		"carl": {"/mcp", "/mcp/p/default", "/mcp/p/small", "/mcp/p/other", "/mcp/s/s"}} {
		for _, path := range []string{"/mcp", "/mcp/p/default", "/mcp/p/small", "/mcp/p/other", "/mcp/s/s"} {
			want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[slices.Contains(opens, path)]
			if got := status(path, name); got != want {
				t.Errorf("%s at %s: %d, want %d", name, path, got, want)
			}
		}
	}
	replaceFile(t, file, config("other"))
	eventually(t, "the config is applied", func() bool { return status("/mcp/p/other", "ann") == http.StatusOK })
	if got := status("/mcp/p/small", "ann"); got != http.StatusNotFound {
		t.Errorf("a profile that the token does not open any more: %d", got)
	}
}

// TestTwoTokensOfOneName: while a token is rotated the old and the new one let the same caller in, until the old one expires.
func TestTwoTokensOfOneName(t *testing.T) {
	t.Parallel()
	for expires, want := range map[string]int{"2126-12-31": http.StatusOK, "2001-12-31T12:00:00Z": http.StatusUnauthorized} {
		p := startTokens(t, []map[string]string{{"name": "ann", "token": "${env:BOB}", "expires": expires}, {"name": "ann", "token": "${env:ANN}"}})
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer bob-bob-bob-bob-bob")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("the token that expires at %s is answered %d, want %d", expires, resp.StatusCode, want)
		}
	}
}
