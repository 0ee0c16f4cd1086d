package cli

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// otherUser is a client of HTTP that runs as another user of this machine: its sockets are that user's. It takes root.
func otherUser(t *testing.T) *http.Client {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user: run the tests as root")
	}
	dial := func(_ context.Context, network, address string) (conn net.Conn, err error) {
		done := make(chan struct{})
		go func() { // on a thread that ends with this function, because it has another user
			defer close(done)
			runtime.LockOSThread()
			_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, 65534, 0, 0)
			conn, err = net.Dial(network, address)
		}()
		<-done
		return conn, err
	}
	transport := &http.Transport{DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestOtherUsersAreRefused lets another user of the machine call a hub on loopback: without tokens nothing answers, with them a token counts.
func TestOtherUsersAreRefused(t *testing.T) {
	t.Parallel()
	other := otherUser(t)
	servers := map[string]any{"s": child(upstreamtest.Script{Tools: []json.RawMessage{upstreamtest.Tool("echo")}})}
	open := startHub(t, "hub.json", configText(t, servers, nil))
	closed := startHubIn(t, []string{"ANN=ann-ann-ann-ann-ann"}, "hub.json", configText(t, servers, map[string]any{"hub": map[string]any{
		"auth": map[string]any{"tokens": []any{map[string]any{"name": "ann", "token": "${env:ANN}"}}}}}))
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp.s.echo","arguments":{},"_meta":{` + clientMeta + `{}}}}`
	ask := func(client *http.Client, url, body, token string) (status int, text string) {
		t.Helper()
		method := http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
		req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": rev2026, "Mcp-Method": "tools/call", "Mcp-Name": "mcp.s.echo", "Authorization": "Bearer " + token} {
			req.Header.Set(name, value)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(answer)
	}
	for _, path := range []string{"/mcp", "/health/ready", "/ui/", "/metrics", "/"} {
		body := ""
		if path == "/mcp" {
			body = call
		}
		if status, text := ask(other, open.url+path, body, ""); status != http.StatusForbidden || !strings.Contains(text, "hub.auth.tokens") {
			t.Errorf("%s answers another user: %d %s", path, status, text)
		}
	}
	if status, text := ask(http.DefaultClient, open.url+"/mcp", call, ""); status != http.StatusOK || !strings.Contains(text, "succeeded") {
		t.Errorf("the owner is refused: %d %s", status, text)
	}
	if status, _ := ask(other, closed.url+"/mcp", call, "wrong-wrong-wrong-wrong"); status != http.StatusUnauthorized {
		t.Errorf("another user with a wrong token: %d", status)
	}
	if status, text := ask(other, closed.url+"/mcp", call, "ann-ann-ann-ann-ann"); status != http.StatusOK || !strings.Contains(text, "succeeded") {
		t.Errorf("another user with a token is refused: %d %s", status, text)
	}
}
