//go:build e2e

package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestSignInDeclined: who declines has no sign-in, and the page is closed.
func TestSignInDeclined(t *testing.T) {
	t.Parallel()
	s := newSignedOut(t, nil, nil)
	w := s.client(t, "", rev2025, takesURLs)
	call := w.call("mcp.s.echo", `{}`, "")
	messages := w.say(call)
	asked := awaitText(t, messages, `"method":"elicitation/create"`)
	id, _ := memberOf(t, asked, "id")
	w.respond(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"decline"}}`)
	said := awaitText(t, messages, `"id":`+call.id+`,`)
	if !strings.Contains(said, "declined") || !strings.Contains(said, "setup_required") {
		t.Errorf("the call ended with %s", said)
	}
	address := invitationIn(t, asked).address
	if resp, err := http.Get(address); err == nil { // until the listener has closed
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("the page answers %d", resp.StatusCode)
		}
	}
}

// TestSignInRequired: a client of 2025-11-25 that says it takes addresses, and answers with an error, gets the error that sends it there.
func TestSignInRequired(t *testing.T) {
	t.Parallel()
	s := newSignedOut(t, nil, nil)
	w := s.client(t, s.serve(t).url, rev2025, takesURLs)
	call := w.call("mcp.s.echo", `{}`, "")
	messages := w.say(call)
	id, _ := memberOf(t, awaitText(t, messages, `"method":"elicitation/create"`), "id")
	w.respond(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"what?"}}`)
	said := awaitText(t, messages, `"id":`+call.id+`,`)
	if !strings.Contains(said, `"code":-32042`) || !strings.Contains(said, `"elicitations":[{"elicitationId":`) ||
		strings.Contains(said, `[s]`) {
		t.Fatalf("the call ended with %s", said)
	}
	i := invitationIn(t, said)
	newBrowser(t).signIn(i)
	if said := w.result("mcp.s.echo", `{}`, ""); strings.Contains(said, "isError") {
		t.Errorf("after the sign-in: %s", said)
	}
	s.isNowhere(t, i.code)
}

// TestSignInElsewhere: a call that waits goes on when somebody signs in by the command.
func TestSignInElsewhere(t *testing.T) {
	t.Parallel()
	s := newSignedOut(t, nil, nil)
	w := s.client(t, "", rev2025, takesURLs)
	call := w.call("mcp.s.echo", `{}`, "")
	messages := w.say(call)
	awaitText(t, messages, `"method":"elicitation/create"`)
	if _, code := s.home.run(t, "login", "s"); code != exitOK {
		t.Fatal("login failed")
	}
	if said := awaitText(t, messages, `"id":`+call.id+`,`); strings.Contains(said, "isError") {
		t.Errorf("the call ended with %s", said)
	}
}

// TestSignInPageIsGuarded: what strangers can try.
func TestSignInPageIsGuarded(t *testing.T) {
	t.Parallel()
	s := newSignedOut(t, nil, nil)
	hub := s.serve(t)
	ask := func(t *testing.T, client string) invitation {
		t.Helper()
		w := wireHTTP(t, hub.url+"/mcp", rev2025)
		status, h, _ := w.post(w.initialize(client))
		if w.session = h.Get("Mcp-Session-Id"); status != http.StatusOK {
			t.Fatal(status)
		}
		return invitationIn(t, w.result("mcp.s.echo", `{}`, ""))
	}
	refused := func(t *testing.T, status, want int, text, says string) {
		t.Helper()
		if status != want || !strings.Contains(text, says) {
			t.Errorf("%d instead of %d with %q: %s", status, want, says, text)
		}
	}
	t.Run("names", func(t *testing.T) {
		t.Parallel()
		i := ask(t, `<script>alert(1)</script>`)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, i.address, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		if bytes.Contains(text, []byte("<script")) || !bytes.Contains(text, []byte("&lt;script&gt;")) || bytes.Contains(text, []byte(i.code)) {
			t.Errorf("the page is %s", text)
		}
		csp := resp.Header.Get("Content-Security-Policy")
		for _, has := range []string{"default-src 'none'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"} {
			if !strings.Contains(csp, has) {
				t.Errorf("%q is missing in %s", has, csp)
			}
		}
	})
	t.Run("guesses", func(t *testing.T) {
		t.Parallel()
		i, b := ask(t, "x"), newBrowser(t)
		for range 4 {
			status, text := b.enter(i.address, "BBBB-BBBB")
			refused(t, status, http.StatusForbidden, text, "not the code")
		}
		status, text := b.enter(i.address, "BBBB-BBBB")
		refused(t, status, http.StatusNotFound, text, "not open")
		status, text = b.enter(i.address, i.code)
		refused(t, status, http.StatusNotFound, text, "not open")
	})
	t.Run("other site", func(t *testing.T) {
		t.Parallel()
		i, b := ask(t, "x"), newBrowser(t)
		b.origin = "https://evil.example"
		status, text := b.enter(i.address, i.code)
		refused(t, status, http.StatusForbidden, text, "did not come from the page")
		b.origin = "null"
		status, text = b.enter(i.address, i.code)
		refused(t, status, http.StatusForbidden, text, "did not come from the page")
	})
	t.Run("other host", func(t *testing.T) {
		t.Parallel()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ask(t, "x").address, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "evil.example"
		status, text, _ := newBrowser(t).do(req)
		refused(t, status, http.StatusForbidden, text, "not known under that host name")
	})
	t.Run("other browser", func(t *testing.T) {
		t.Parallel()
		i, mine, theirs := ask(t, "x"), newBrowser(t), newBrowser(t)
		_, text := mine.enter(i.address, i.code)
		next := mine.onward(text)
		status, text := theirs.enter(i.address, i.code) // the code works once
		refused(t, status, http.StatusForbidden, text, "Another browser")
		status, text = theirs.get(i.address)
		refused(t, status, http.StatusForbidden, text, "Another browser")
		status, text = theirs.get(next) // as if its person had been sent there
		refused(t, status, http.StatusForbidden, text, "Another browser")
		status, text = mine.get(strings.Replace(next, "state=", "state=x", 1))
		refused(t, status, http.StatusNotFound, text, "not open")
		status, text = mine.get(i.address) // loaded again
		refused(t, status, http.StatusOK, text, "You go on to")
		u, err := url.Parse(next)
		if err != nil || u.Scheme+"://"+u.Host+u.Path != s.Issuer+"/authorize" {
			t.Errorf("the page leads to %s", next)
		}
	})
	t.Run("refusal", func(t *testing.T) {
		t.Parallel()
		i, b := ask(t, "x"), newBrowser(t)
		_, text := b.enter(i.address, i.code)
		u, err := url.Parse(b.onward(text))
		if err != nil {
			t.Fatal(err)
		}
		q := url.Values{"state": {u.Query().Get("state")}, "iss": {s.Issuer}, "error": {"access_denied"}, "error_description": {"<b>no</b>"}}
		status, text := b.get(u.Query().Get("redirect_uri") + "?" + q.Encode())
		refused(t, status, http.StatusBadGateway, text, "access_denied")
		status, text = b.get(i.address)
		refused(t, status, http.StatusNotFound, text, "not open")
	})
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		for _, path := range []string{"/sign-in/", "/sign-in/AAAA", "/sign-in/callback", "/sign-in/callback?state=", "/sign-in/client.json"} {
			if status, text := newBrowser(t).get(hub.url + path); status != http.StatusNotFound {
				t.Errorf("%s answers %d: %s", path, status, text)
			}
		}
	})
}

// TestSignInForMoreScopes: a call for which the server wants more scopes leads to the page, which asks for all.
func TestSignInForMoreScopes(t *testing.T) {
	t.Parallel()
	s := newSignedOut(t, nil, nil)
	if _, code := s.home.run(t, "login", "s"); code != exitOK {
		t.Fatal("login failed")
	}
	w := s.client(t, s.serve(t).url, rev2025, "")
	s.Want("write")
	newBrowser(t).signIn(invitationIn(t, w.result("mcp.s.echo", `{}`, "")))
	if said := w.result("mcp.s.echo", `{}`, ""); strings.Contains(said, "isError") {
		t.Errorf("after the sign-in: %s", said)
	}
	asked := s.Requests("/authorize")
	if scope := asked[len(asked)-1].Form.Get("scope"); scope != "write read" {
		t.Errorf("asked for %q", scope)
	}
}

// TestSignInAtRedirect: a client that is registered beforehand comes back to the address that it is registered for. The page itself leaves
// that port to others.
func TestSignInAtRedirect(t *testing.T) {
	t.Parallel()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := socket.Addr().String()
	_ = socket.Close()
	_, port, _ := net.SplitHostPort(address)
	s := newSignedOut(t, nil, func(a *upstreamtest.AuthServer) {
		a.NoRegistration, a.Clients = true, map[string]string{"hub": "its-secret"}
	}, "oauth", map[string]any{"client_id": "hub", "client_secret": "its-secret", "redirect": "http://localhost:" + port + "/oauth/back"})
	for _, door := range []string{"http", "stdio"} {
		url := ""
		if door == "http" {
			url = s.serve(t).url
		}
		w := s.client(t, url, rev2025, "")
		i := invitationIn(t, w.result("mcp.s.echo", `{}`, ""))
		other, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatalf("%s: the port is in use before a browser has entered the code: %v", door, err)
		}
		if _, said := newBrowser(t).enter(i.address, i.code); !strings.Contains(said, "end the other sign-in") {
			t.Errorf("%s: while the port is in use, the page says %s", door, said)
		}
		_ = other.Close()
		newBrowser(t).signIn(invitationIn(t, w.result("mcp.s.echo", `{}`, "")))
		asked := s.Requests("/authorize")
		if back := asked[len(asked)-1].Form.Get("redirect_uri"); back != "http://localhost:"+port+"/oauth/back" {
			t.Errorf("%s: the browser comes back to %s", door, back)
		}
		if said := w.result("mcp.s.echo", `{}`, ""); strings.Contains(said, "isError") {
			t.Errorf("%s: after the sign-in: %s", door, said)
		}
		if _, code := s.home.run(t, "logout", "s"); code != exitOK {
			t.Fatal("logout failed")
		}
	}
}

// publicly puts a TLS server in front of a hub: the address is known before the hub is there.
func publicly(t *testing.T) (front *httptest.Server, hubAt func(url string)) {
	t.Helper()
	var hub atomic.Pointer[url.URL]
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(hub.Load())
		r.Out.Host = r.In.Host
	}}
	front = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hub.Load() == nil {
			http.Error(w, "no hub", http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front, func(text string) {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		hub.Store(u)
	}
}

// TestSignInAtPublicURL: the page of a hub with an https address is there, browsers come back there, and the hub is known by its document
// or registers for that address.
func TestSignInAtPublicURL(t *testing.T) {
	t.Parallel()
	for _, documents := range []bool{true, false} {
		t.Run(fmt.Sprint("documents ", documents), func(t *testing.T) {
			t.Parallel()
			front, hubAt := publicly(t)
			s := newSignedOut(t, map[string]any{"hub": map[string]any{"http": map[string]any{"public_url": front.URL + "/"}}},
				func(a *upstreamtest.AuthServer) {
					if documents {
						a.Documents = front.Client()
					}
				})
			registered := len(s.Requests("/register"))
			hub := s.serve(t)
			hubAt(hub.url)
			i := invitationIn(t, s.client(t, hub.url, rev2025, "").result("mcp.s.echo", `{}`, ""))
			if !strings.HasPrefix(i.address, front.URL+"/sign-in/") {
				t.Errorf("the page is %s", i.address)
			}
			b := newBrowser(t)
			b.Transport = front.Client().Transport
			b.signIn(i)
			asked := s.Requests("/authorize")
			last := asked[len(asked)-1].Form
			known := last.Get("client_id") == front.URL+"/sign-in/client.json"
			if last.Get("redirect_uri") != front.URL+"/sign-in/callback" || documents != known {
				t.Errorf("the authorization server is asked with %v", last)
			}
			if more := len(s.Requests("/register")) - registered; documents != (more == 0) {
				t.Errorf("the hub has registered %d times more", more)
			}
			u, _ := url.Parse(front.URL)
			cookies := 0
			for _, c := range b.Jar.Cookies(u) {
				if strings.HasPrefix(c.Name, "__Host-toolhub-sign-in-") {
					cookies++
				}
			}
			if cookies != 1 {
				t.Errorf("the browser has %v", b.Jar.Cookies(u))
			}
			s.Expire() // so that the hub renews
			if said := s.client(t, hub.url, rev2025, "").result("mcp.s.echo", `{}`, ""); strings.Contains(said, "isError") {
				t.Errorf("after the renewal: %s", said)
			}
		})
	}
}

// TestLoginAtTheHub: the command login, on a machine without the hub's config, leads to the page of the hub at an address.
func TestLoginAtTheHub(t *testing.T) {
	t.Parallel()
	const good = "a-token-of-sixteen-bytes"
	file := filepath.Join(t.TempDir(), "ann")
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSignedOut(t, map[string]any{"hub": map[string]any{"auth": map[string]any{
		"tokens": []any{map[string]any{"name": "ann", "token": "${file:" + file + "}"}}}}}, nil)
	hub := s.serve(t)
	for _, token := range []string{"", good} {
		elsewhere := signInHome{dir: t.TempDir()}
		login := elsewhere.command(t, "login", "s", "--url", hub.url)
		login.Args, login.Env = login.Args[:len(login.Args)-2], append(login.Env, "MCP_TOOLHUB_TOKEN="+token) // without --config
		var out bytes.Buffer
		login.Stdout = &out
		stderr, err := login.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := login.Start(); err != nil {
			t.Fatal(err)
		}
		said := ""
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			said += lines.Text() + "\n"
			if pageCode.MatchString(lines.Text()) {
				newBrowser(t).signIn(invitationIn(t, said))
			}
		}
		err = login.Wait()
		if token == "" && !strings.Contains(said, "wants a token") {
			t.Errorf("without a token: %v, %s", err, said)
		}
		if token != "" && (err != nil || out.String() != "s: signed in at the hub\n") {
			t.Errorf("%v, %s%s", err, said, &out)
		}
	}
}
