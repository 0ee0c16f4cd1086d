package cli

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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

// notice is the file by which the hub's owner finds it, and an address that leads to the API's socket.
func (p *permitted) notice(t *testing.T) (file, api string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(p.state, "run", "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", strings.TrimSuffix(files[0], ".json")+".sock")
	}}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: "hub"})
	}})
	t.Cleanup(proxy.CloseClientConnections)
	return files[0], proxy.URL
}

// checkAPI: the API is at a socket that nobody else can reach, and the notice leads nowhere else. Both go with the hub.
func (p *permitted) checkAPI(t *testing.T) {
	file, api := p.notice(t)
	for _, at := range []string{file, filepath.Dir(file)} {
		if info, err := os.Stat(at); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%v, %v", info, err)
		}
	}
	if text := readFile(t, file); strings.Contains(text, `"url"`) || strings.Contains(text, `"token"`) {
		t.Errorf("the notice leads elsewhere: %s", text)
	}
	for path, want := range map[string]int{"/approvals": 200, "/approvals/apr_none": 404, "/nothing": 404} { // errors are JSON, too
		resp, err := http.Get(api + path)
		if err != nil {
			t.Fatal(err)
		}
		var said any
		if err := json.NewDecoder(resp.Body).Decode(&said); err != nil || resp.StatusCode != want || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s, %v, %v", path, resp.Status, resp.Header, err)
		}
		resp.Body.Close()
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{file, strings.TrimSuffix(file, ".json") + ".sock"} {
		if _, err := os.Stat(name); !os.IsNotExist(err) {
			t.Errorf("%s outlives its hub: %v", filepath.Base(name), err)
		}
	}
}
