//go:build e2e

package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestLoginAndLogout goes through a sign-in as a person does, with a hub that runs all the time.
func TestLoginAndLogout(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the browser of the tests is xdg-open")
	}
	auth, config := guardedServer(t, nil)
	home := newSignInHome(t, config)
	hub := home.hub(t)
	check := func(text string, code, wanted exitCode, has ...string) {
		t.Helper()
		for _, one := range has {
			if !strings.Contains(text, one) {
				t.Errorf("%q is missing in:\n%s", one, text)
			}
		}
		if code != wanted {
			t.Errorf("exit code %d", code)
		}
	}
	text, code := home.run(t, "servers")
	check(text, code, exitNotReady, "needs sign-in", "run mcp-toolhub login s")
	text, code = home.run(t, "doctor", "s")
	check(text, code, exitNotReady, "FAILS", "run mcp-toolhub login s")

	text, code = home.run(t, "login", "s")
	check(text, code, exitOK, "The browser opens", "s: signed in at "+auth.Issuer, "renewed by itself, scopes: read", " tools\n", "  mcp.s.echo\n")
	ready := regexp.MustCompile(`"msg":"server is ready".*"server":"s"|"server":"s".*"msg":"server is ready"`)
	if err := hub.waitFor(ready); err != nil {
		t.Fatal(err)
	}
	text, code = home.run(t, "servers")
	check(text, code, exitOK, "s: signed in at "+auth.Issuer+" since ", ", until ", ", renewed by itself, scopes: read")
	text, code = home.run(t, "doctor", "s")
	check(text, code, exitOK, "answered", "signed in at "+auth.Issuer+" since ", ", until ", ", renewed by itself, scopes: read")

	text, code = home.run(t, "logout", "s")
	check(text, code, exitOK, "s: signed out\n")
	if err := hub.waitFor(regexp.MustCompile(`needs_auth`)); err != nil {
		t.Fatal(err)
	}
	text, code = home.run(t, "servers")
	check(text, code, exitNotReady, "needs sign-in")
	text, _ = home.run(t, "tools", "list")
	check(text, 0, 0, "mcp.s.echo")
	text, code = home.run(t, "tools", "call", "mcp.s.echo")
	check(text, code, exitToolError, "run mcp-toolhub login s")
	text, code = home.run(t, "login", "s", "--url", hub.url, "--scope", "write")
	check(text, code, exitUsage, "leave --scope out")
	text, code = home.run(t, "login", "demo")
	check(text, code, exitUsage, "signs in by itself")
}

// TestLoginWithoutABrowser pastes the address that a browser elsewhere ended at; then it enters a code on another device; then it pastes, because
// the authorization server offers codes to other clients alone.
func TestLoginWithoutABrowser(t *testing.T) {
	t.Parallel()
	for _, way := range []struct{ offered, device bool }{{false, false}, {true, true}, {true, false}} {
		device := way.device
		auth, config := guardedServer(t, func(a *upstreamtest.AuthServer) {
			a.Device = way.offered
			a.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/device" || device {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, `{"error":"unauthorized_client"}`)
				return true
			}
		})
		cmd := newSignInHome(t, config).command(t, "login", "s", "--no-browser")
		var out bytes.Buffer
		cmd.Stdout = &out
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			line := lines.Text()
			if strings.HasPrefix(line, "http") {
				client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
				resp, err := client.Get(line)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				_, _ = io.WriteString(in, ` "`+resp.Header.Get("Location")+"\"\n") // as some browsers copy it
			}
			if strings.Contains(line, "enter the code ABCD-EFGH") && len(auth.Requests("/device")) != 1 {
				t.Errorf("%q without a device", line)
			}
		}
		if err := cmd.Wait(); err != nil || !strings.Contains(out.String(), "mcp.s.echo") || way.offered != (len(auth.Requests("/device")) == 1) ||
			device != (len(auth.Requests("/authorize")) == 0) {
			t.Errorf("%+v: %v\n%s", way, err, &out)
		}
	}
}

// TestLoginOverSSE signs in to a server that speaks the oldest transport, and goes on when its token has ended.
func TestLoginOverSSE(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the browser of the tests is xdg-open")
	}
	auth, config := guardedServerOver(t, upstreamtest.Options{SSE: true}, nil)
	home := newSignInHome(t, config)
	hub := home.hub(t)
	if _, code := home.run(t, "login", "s"); code != exitOK {
		t.Fatal("nobody is signed in")
	}
	eventually(t, "the hub takes the sign-in up", func() bool { return hub.server(t, "s").State == tool.ServerReady })
	for renewals := range 2 {
		said := wireHTTP(t, hub.url+"/mcp", rev2026).result("mcp.s.echo", `{}`, "")
		if n := len(auth.Requests("/token")); strings.Contains(said, `"isError":true`) || n != 1+renewals {
			t.Errorf("after %d tokens a call says %s", n, said)
		}
		auth.Expire()
	}
}

// hub starts a hub, which the test ends at the latest.
func (h signInHome) hub(t *testing.T) *runningHub {
	t.Helper()
	hub, err := launch(h.dir, scratchEnv(h.dir), "--config", h.file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := hub.stop(); err != nil || t.Failed() {
			t.Errorf("the hub ended with %v\n%s", err, hub.log())
		}
	})
	return hub
}
