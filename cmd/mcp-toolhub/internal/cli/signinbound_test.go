//go:build e2e

package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestTokensBoundToAKey: where a server wants that, tokens are bound to a key of the hub, and each request has a proof of its own (RFC 9449). The
// key outlives the hub, so that the sign-in does, too.
func TestTokensBoundToAKey(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the browser of the tests is xdg-open")
	}
	auth, config := guardedServer(t, func(a *upstreamtest.AuthServer) { a.Bound, a.Nonce = true, "one" })
	home := newSignInHome(t, config)
	if text, code := home.run(t, "login", "s"); code != exitOK || !strings.Contains(text, "  mcp.s.echo\n") {
		t.Fatalf("login ended with %d", code)
	}
	hub := home.hub(t)
	home.calls(t, hub, 3)
	auth.SetNonce("two")
	home.calls(t, hub, 3)
	auth.Expire()
	home.calls(t, hub, 3)
	if err := hub.stop(); err != nil {
		t.Error(err)
	}
	auth.Expire()
	home.calls(t, home.hub(t), 3)
	nonces, faults := auth.Proofs()
	if len(faults) > 0 || nonces == 0 {
		t.Errorf("%d requests without a nonce; faults of proofs: %q", nonces, faults)
	}
	refreshed := 0
	for _, r := range auth.Requests("/token") {
		if r.Form.Get("grant_type") == "refresh_token" {
			refreshed++
		}
	}
	if refreshed != 4 || auth.Failures() > 0 { // each once more for the nonce
		t.Errorf("%d requests to renew the token, %d refused", refreshed, auth.Failures())
	}
}

// TestTokensAreBoundOnlyWhereThatIsWanted: what the authorization server can do is no reason, because the server may not take such tokens.
func TestTokensAreBoundOnlyWhereThatIsWanted(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the browser of the tests is xdg-open")
	}
	_, config := guardedServer(t, func(a *upstreamtest.AuthServer) {
		a.Metadata = map[string]any{"dpop_signing_alg_values_supported": []string{"ES256"}}
		a.Intercept = func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("DPoP") != "" {
				t.Errorf("%s got a proof", r.URL.Path)
			}
			return false
		}
	})
	home := newSignInHome(t, config)
	if _, code := home.run(t, "login", "s"); code != exitOK {
		t.Fatalf("login ended with %d", code)
	}
	home.calls(t, home.hub(t), 1)
}

// TestServerThatWantsBoundTokensNobodyMakes names the authorization server that cannot do it.
func TestServerThatWantsBoundTokensNobodyMakes(t *testing.T) {
	t.Parallel()
	_, config := guardedServer(t, func(a *upstreamtest.AuthServer) {
		a.Bound, a.Metadata = true, map[string]any{"dpop_signing_alg_values_supported": []string{"PS512"}}
	})
	if text, code := newSignInHome(t, config).run(t, "login", "s"); code == exitOK || !strings.Contains(text, "does not say that it makes them with ES256") {
		t.Errorf("login ended with %d", code)
	}
}

// TestHubSignsInWithAToken: the token in a file stands for the hub. It is read at each use. What is wrong with it is said, with the file.
func TestHubSignsInWithAToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	auth, config := guardedServer(t, func(a *upstreamtest.AuthServer) {
		a.Assertion, a.Clients = "first-token", map[string]string{"workload": ""}
		a.Lifetime = 5 * time.Second // so short that each use needs another one
	})
	home := newSignInHome(t, strings.Replace(config, auth.Resource+"}", auth.Resource+
		", oauth: {grant: jwt_bearer, client_id: workload, assertion_file: "+file+"}}", 1))
	step := "read the token that stands for the hub: "
	if text, code := home.run(t, "doctor", "s"); code == exitOK || !strings.Contains(text, step+"open "+file+": no such file") {
		t.Errorf("without the file, doctor ended with %d", code)
	}
	replaceFile(t, file, " \n")
	if text, code := home.run(t, "doctor", "s"); code == exitOK || !strings.Contains(text, step+file+" is empty") {
		t.Errorf("with an empty file, doctor ended with %d", code)
	}
	replaceFile(t, file, strings.Repeat("x", 65<<10))
	if text, code := home.run(t, "doctor", "s"); code == exitOK || !strings.Contains(text, step+file+" is larger than 64 KiB") {
		t.Errorf("with a large file, doctor ended with %d", code)
	}
	replaceFile(t, file, "wrong-token\n")
	if text, code := home.run(t, "doctor", "s"); code == exitOK || !strings.Contains(text, "get a token: the authorization server refuses it (invalid_grant") ||
		strings.Contains(text, "wrong-token") {
		t.Errorf("with a wrong token, doctor ended with %d", code)
	}
	replaceFile(t, file, "first-token\n")
	hub := home.hub(t)
	home.calls(t, hub, 2)
	auth.SetAssertion("second-token")
	replaceFile(t, file, "second-token\n")
	home.calls(t, hub, 2)
	for _, r := range auth.Requests("/token") {
		if r.Form.Get("resource") != auth.Resource || r.Form.Get("client_id") != "workload" {
			t.Errorf("asked with %v", r.Form)
		}
	}
	if raw, err := os.ReadFile(filepath.Join(home.dir, "state", "sign-ins")); err == nil && strings.Contains(string(raw), "second-token") {
		t.Error("the token is kept")
	}
}

// calls calls the tool echo of the server "s" as often as that, and reports what does not succeed.
func (h signInHome) calls(t *testing.T, hub *runningHub, times int) {
	t.Helper()
	eventually(t, "the server is ready", func() bool { return hub.server(t, "s").State == tool.ServerReady })
	w := wireHTTP(t, hub.url+"/mcp", rev2025).open()
	for range times {
		if got := last(w.send(w.call("mcp.s.echo", `{"text":"hello"}`, ""))); !strings.Contains(got, `"status":"succeeded"`) {
			t.Errorf("the call: %s", got)
		}
	}
}
