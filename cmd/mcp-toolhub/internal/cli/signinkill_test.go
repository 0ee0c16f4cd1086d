//go:build e2e

package cli

import (
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestHubKilledBeforeARenewedTokenIsKept kills the hub after the authorization server has answered a renewal, and before the hub has kept
// the answer. The refresh token that is kept was used then, and one that is used twice ends the sign-in. The next hub says so, asks once,
// and keeps the other sign-ins.
func TestHubKilledBeforeARenewedTokenIsKept(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the browser of the tests is xdg-open")
	}
	var auth *upstreamtest.AuthServer
	var armed atomic.Bool
	held, answered := make(chan func(), 1), make(chan struct{})
	state := ""
	auth, config := guardedServer(t, func(a *upstreamtest.AuthServer) {
		a.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Form.Get("grant_type") != "refresh_token" || !armed.CompareAndSwap(true, false) {
				return false
			}
			unlock, err := statefile.Lock(filepath.Join(state, signin.FileName)) // nobody can keep anything from now on
			if err != nil {
				t.Error(err)
			}
			auth.ServeHTTP(w, r)
			_ = http.NewResponseController(w).Flush()
			held <- unlock
			close(answered)
			return true
		}
	})
	other, otherConfig := guardedServer(t, nil)
	entry := "  other: {url: " + other.Resource + "}\n"
	if !strings.Contains(otherConfig, other.Resource) {
		t.Fatal("the test is out of date")
	}
	home := newSignInHome(t, strings.Replace(config, "  demo:", entry+"  demo:", 1))
	state = filepath.Join(home.dir, "state", "mcp-toolhub")
	for _, id := range []string{"s", "other"} {
		if text, code := home.run(t, "login", id); code != exitOK {
			t.Fatal(text)
		}
	}
	kept := func(id, address string) (signin.Grant, bool) {
		g, ok, err := signin.Open(state).Grant(upstream.ServerConfig{ID: id, URL: address})
		if err != nil {
			t.Fatal(err)
		}
		return g, ok
	}
	before, _ := kept("s", auth.Resource)
	otherBefore, _ := kept("other", other.Resource)
	hub, err := launch(home.dir, scratchEnv(home.dir), "--config", home.file)
	if err != nil {
		t.Fatal(err)
	}
	client := wireHTTP(t, hub.url+"/mcp", rev2026)
	request := client.newRequest(client.call("mcp.s.echo", `{}`, ""))
	armed.Store(true)
	auth.Expire()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultClient.Do(request); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-answered
	_ = hub.cmd.Process.Kill()
	<-hub.read
	_ = hub.cmd.Wait()
	<-gone
	(<-held)()
	if g, ok := kept("s", auth.Resource); !ok || g.Refresh != before.Refresh {
		t.Fatalf("the hub has kept the new token: the test shows nothing: %+v", g)
	}
	renewals := func() (n int) {
		for _, r := range auth.Requests("/token") {
			if r.Form.Get("grant_type") == "refresh_token" && r.Form.Get("refresh_token") == before.Refresh {
				n++
			}
		}
		return n
	}
	asked := renewals()
	next, err := launch(home.dir, scratchEnv(home.dir), "--config", home.file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := next.stop(); err != nil || t.Failed() {
			t.Errorf("the hub ended with %v\n%s", err, next.log())
		}
	})
	eventually(t, "the hub says why somebody has to sign in", func() bool {
		st := next.server(t, "s")
		return strings.Contains(st.LastError, "the sign-in has ended: ") && strings.Contains(st.LastError, "invalid_grant") &&
			strings.Contains(st.Hint, "login s --config "+home.file)
	})
	if text, code := home.run(t, "tools", "call", "mcp.s.echo"); code != exitToolError || !strings.Contains(text, "the sign-in has ended") {
		t.Errorf("a call ended with %d", code)
	}
	if n := renewals() - asked; n != 1 {
		t.Errorf("the used refresh token was sent %d times", n)
	}
	if g, ok := kept("other", other.Resource); !ok || g.Access != otherBefore.Access {
		t.Errorf("the other sign-in is lost: %+v", g)
	}
	if text, code := home.run(t, "tools", "call", "mcp.other.echo"); code != exitOK {
		t.Errorf("the other server: %s", text)
	}
	if text, code := home.run(t, "login", "s"); code != exitOK || !strings.Contains(text, "mcp.s.echo") {
		t.Errorf("login ended with %d", code)
	}
	eventually(t, "the hub takes the sign-in up", func() bool { return next.server(t, "s").State == tool.ServerReady })
	if text, code := home.run(t, "tools", "call", "mcp.s.echo"); code != exitOK {
		t.Errorf("after the next sign-in: %s", text)
	}
}
