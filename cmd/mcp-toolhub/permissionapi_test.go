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
	t.Cleanup(func() { _ = h.stop() })
	p.runningHub = h
	w := p.client(rev2026, "Authorization", "Bearer ann-ann-ann-ann-ann")
	eventually(t, "the tool is listed", func() bool { return w.tools()["mcp.s.echo"] != "" })
	return p
}

// checkAPI: nobody without the token is heard, and no page of a browser; the token is its owner's alone.
func (p *permitted) checkAPI(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(p.state, "run", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	var notice struct{ URL, Token string }
	mustDecode(t, string(text), &notice)
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
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
		t.Errorf("the notice outlives its hub: %v", err)
	}
}

// Over stdio the client's own question is enough, but for what is dangerous; rules that deny hold.
func TestPermissionOverStdio(t *testing.T) {
	t.Parallel()
	config := configText(t, map[string]any{"s": child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo"), upstreamtest.Tool("risky"),
		upstreamtest.Tool("never")}})}, map[string]any{"policy": map[string]any{"tools": []map[string]any{{"match": "mcp.s.risky", "tags": []string{"dangerous"}}},
		"rules": []map[string]any{{"match": "mcp.s.never", "when": "true", "then": "deny"}}}})
	for _, version := range []string{rev2025June, rev2025, rev2026} {
		w := wireHub(t, config, version).able().open()
		w.ready("mcp.s.echo")
		x := &exchange{w: w, answer: answerWith("deny_once", "no")}
		if r := x.call("mcp.s.echo", `{}`); !strings.Contains(r, `"status":"succeeded"`) || len(x.asked) != 0 {
			t.Errorf("%s: asked %d times: %s", version, len(x.asked), r)
		}
		if r := x.call("mcp.s.risky", `{}`); !strings.Contains(r, "approval_rejected") || len(x.asked) != 1 {
			t.Errorf("%s, dangerous: asked %d times: %s", version, len(x.asked), r)
		}
		if r := x.call("mcp.s.never", `{}`); strings.Contains(r, `"status":"succeeded"`) || len(x.asked) != 1 {
			t.Errorf("%s, denied: %s", version, r)
		}
	}
}
