package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// httpDo sends a request and reads what comes.
func httpDo(req *http.Request) (string, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.Status + " " + string(body), err
}

// startTokens is a hub with a policy that two callers use, whose tokens are ann-ann-… and bob-bob-….
func startTokens(t *testing.T, tokens []map[string]string) *permitted {
	t.Helper()
	p := &permitted{t: t, state: t.TempDir(), far: map[string]any{"s": child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo")}})}}
	p.file = filepath.Join(p.state, "hub.json")
	p.write(map[string]any{}, map[string]any{"hub": map[string]any{"auth": map[string]any{"tokens": tokens}}})
	env := append(scratchEnv(p.state), "ANN=ann-ann-ann-ann-ann", "BOB=bob-bob-bob-bob-bob")
	h, err := launch(p.state, env, "--config", p.file, "--state-dir", p.state)
	if err != nil {
		t.Fatal(err)
	}
	p.runningHub = h
	p.cleanUp(h)
	w := p.client(rev2026, "Authorization", "Bearer ann-ann-ann-ann-ann")
	eventually(t, "the tool is listed", func() bool { return w.tools()["mcp.s.echo"] != "" })
	return p
}

// notice is the file by which the hub's owner finds it, and where the API is.
func (p *permitted) notice(t *testing.T) (file string, at struct{ URL, Token string }) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.state, "run", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	mustDecode(t, string(text), &at)
	return files[0], at
}

// checkAPI: nobody without the token is heard, and no page of a browser; the token is its owner's alone.
func (p *permitted) checkAPI(t *testing.T) {
	file, notice := p.notice(t)
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for _, c := range []struct {
		token, host, origin string
		ok                  bool
	}{{notice.Token, "", "", true}, {"", "", "", false}, {notice.Token + "x", "", "", false}, {notice.Token, "evil.example", "", false},
		{notice.Token, "", "http://evil.example", false}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, notice.URL+"/approvals", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.token)
		if c.host != "" {
			req.Host = c.host
		}
		if c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		if got, err := httpDo(req); err != nil || strings.HasPrefix(got, "200") != c.ok {
			t.Errorf("%+v: %s, %v", c, got, err)
		}
	}
	for path, token := range map[string]string{"/approvals": "", "/approvals/apr_none": notice.Token, "/nothing": notice.Token} { // errors are JSON, too
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, notice.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var said struct{ Error string }
		if err := json.NewDecoder(resp.Body).Decode(&said); err != nil || said.Error == "" || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s, %v, %v", path, resp.Status, resp.Header, err)
		}
		resp.Body.Close()
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the notice outlives its hub: %v", err)
	}
}
