package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// signedOut is a server that somebody has signed in to and out of: its tools are known, and their calls need a sign-in.
type signedOut struct {
	*upstreamtest.AuthServer
	home   signInHome
	config string
}

// oauth are key and value of the server's entry, if any.
func newSignedOut(t *testing.T, more map[string]any, change func(*upstreamtest.AuthServer), oauth ...any) *signedOut {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the browser of the tests is xdg-open")
	}
	s := &signedOut{}
	s.AuthServer, _ = guardedServer(t, change)
	if more == nil {
		more = make(map[string]any)
	}
	if more["deferred"] == nil {
		more["deferred"] = map[string]any{"mode": "never"}
	}
	entry := map[string]any{"url": s.Resource}
	for i := 0; i+1 < len(oauth); i += 2 {
		entry[oauth[i].(string)] = oauth[i+1]
	}
	s.config = configText(t, map[string]any{"s": entry}, more)
	s.home = signInHome{dir: t.TempDir()}
	s.home.file = filepath.Join(s.home.dir, "hub.json")
	if err := os.WriteFile(s.home.file, []byte(s.config), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"login", "logout"} {
		if _, code := s.home.run(t, command, "s"); code != exitOK {
			t.Fatalf("%s: exit code %d", command, code)
		}
	}
	return s
}

// serve starts a hub over HTTP.
func (s *signedOut) serve(t *testing.T, args ...string) *runningHub {
	t.Helper()
	hub, err := launch(s.home.dir, scratchEnv(s.home.dir), append([]string{"--config", s.home.file}, args...)...)
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

// invitation is what a client is told of a page.
type invitation struct{ address, code string }

var (
	pageAddress = regexp.MustCompile(`https?://[^ "\\]+/sign-in/[A-Z0-9]+`)
	pageCode    = regexp.MustCompile(`[B-Z]{4}-[B-Z]{4}`)
)

func invitationIn(t *testing.T, text string) invitation {
	t.Helper()
	i := invitation{pageAddress.FindString(text), pageCode.FindString(text)}
	if i.address == "" || i.code == "" {
		t.Fatalf("no page in %s", text)
	}
	return i
}

// browser is a person's, with cookies.
type browser struct {
	*http.Client
	t      *testing.T
	origin string // that its forms name; "": that of the page
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &browser{Client: &http.Client{Jar: jar}, t: t}
}

func (b *browser) do(req *http.Request) (status int, text string, resp *http.Response) {
	b.t.Helper()
	resp, err := b.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, html.UnescapeString(string(body)), resp
}

func (b *browser) get(address string) (status int, text string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	status, text, _ = b.do(req)
	return status, text
}

// enter sends the form of a page with a code.
func (b *browser) enter(address, code string) (status int, text string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, address, strings.NewReader(url.Values{"code": {code}}.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", req.URL.Scheme+"://"+req.URL.Host)
	if b.origin != "" {
		req.Header.Set("Origin", b.origin)
	}
	status, text, _ = b.do(req)
	return status, text
}

var nextAddress = regexp.MustCompile(`<a href="([^"]+)"`)

// onward is where a page sends the browser.
func (b *browser) onward(text string) string {
	b.t.Helper()
	found := nextAddress.FindStringSubmatch(text)
	if found == nil {
		b.t.Fatalf("the page leads nowhere: %s", text)
	}
	return found[1]
}

// signIn goes all the way, and returns the last page.
func (b *browser) signIn(i invitation) string {
	b.t.Helper()
	if status, text := b.get(i.address); status != http.StatusOK || !strings.Contains(text, `name="code"`) {
		b.t.Fatalf("the page answers %d: %s", status, text)
	}
	status, text := b.enter(i.address, i.code)
	if status != http.StatusOK {
		b.t.Fatalf("the code is answered with %d: %s", status, text)
	}
	status, text = b.get(b.onward(text))
	if status != http.StatusOK || !strings.Contains(text, "You are signed in to s") {
		b.t.Fatalf("in the end there is %d: %s", status, text)
	}
	return text
}

// client is one of a hub on stdio or at url, with these capabilities.
func (s *signedOut) client(t *testing.T, url, version, can string) *wire {
	t.Helper()
	if url == "" {
		w := wireHubIn(t, s.home.dir, s.config, version)
		w.can = can
		w.open().ready("mcp.s.echo")
		return w
	}
	w := wireHTTP(t, url+"/mcp", version)
	w.can = can
	return w.open()
}

// TestSignInPage: a call fails with the address of a page and a code, somebody signs in there, and the next call succeeds.
func TestSignInPage(t *testing.T) {
	t.Parallel()
	for _, door := range []string{"http", "stdio", "joined"} {
		for _, version := range []string{rev2025, rev2026} {
			t.Run(door+" "+version, func(t *testing.T) {
				t.Parallel()
				s := newSignedOut(t, nil, nil)
				address := ""
				if door == "http" {
					address = s.serve(t).url
				}
				if door == "joined" {
					s.client(t, "", rev2025, "")
				}
				w := s.client(t, address, version, "")
				said := w.result("mcp.s.echo", `{}`, "")
				for _, has := range []string{`"error_class":"setup_required"`, "run mcp-toolhub login s", "on the machine of the hub"} {
					if !strings.Contains(said, has) {
						t.Errorf("%s is missing in %s", has, said)
					}
				}
				first := invitationIn(t, said)
				if address != "" && !strings.HasPrefix(first.address, address+"/sign-in/") {
					t.Errorf("the page is %s", first.address)
				}
				if again := invitationIn(t, w.result("mcp.s.echo", `{}`, "")); again != first {
					t.Errorf("the same client is told of %v and %v", first, again)
				}
				newBrowser(t).signIn(first)
				if said := w.result("mcp.s.echo", `{}`, ""); strings.Contains(said, "isError") {
					t.Errorf("after the sign-in: %s", said)
				}
				for _, secret := range []string{first.code, strings.ReplaceAll(first.code, "-", ""), first.address} {
					s.isNowhere(t, secret)
				}
			})
		}
	}
}

// isNowhere checks that nothing that the hub keeps holds a text.
func (s *signedOut) isNowhere(t *testing.T, text string) {
	t.Helper()
	err := filepath.WalkDir(s.home.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // a file of the store that is gone by now
		}
		held, _ := os.ReadFile(path)
		if bytes.Contains(held, []byte(text)) {
			t.Errorf("%s holds %s", path, text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const takesURLs = `{"elicitation":{"url":{}}}`

// takesAddresses is a client that takes addresses, over http or stdio, of a hub whose server nobody is signed in to.
func takesAddresses(t *testing.T, door, version string) *wire {
	t.Helper()
	s := newSignedOut(t, nil, nil)
	address := ""
	if door == "http" {
		address = s.serve(t).url
	}
	return s.client(t, address, version, takesURLs)
}

// TestSignInByElicitation: a client that takes addresses gets the page so, and the call that waits goes on by itself.
func TestSignInByElicitation(t *testing.T) {
	t.Parallel()
	for _, door := range []string{"http", "stdio"} {
		t.Run(door+" "+rev2025, func(t *testing.T) {
			t.Parallel()
			w := takesAddresses(t, door, rev2025)
			call := w.call("mcp.s.echo", `{}`, "")
			messages := w.say(call)
			asked := awaitText(t, messages, `"method":"elicitation/create"`)
			id, _ := memberOf(t, asked, "id")
			params, _ := memberOf(t, asked, "params")
			elicitation, _ := memberOf(t, params, "elicitationId")
			if !strings.Contains(params, `"mode":"url"`) || elicitation == "" {
				t.Errorf("asked with %s", params)
			}
			w.respond(`{"jsonrpc":"2.0","id":` + id + `,"result":{"action":"accept"}}`)
			newBrowser(t).signIn(invitationIn(t, params))
			var told, answered bool
			for !told || !answered {
				m := await(t, messages)
				told = told || strings.Contains(m, `"method":"notifications/elicitation/complete","params":{"elicitationId":`+elicitation+`}`)
				if strings.HasPrefix(m, `{"jsonrpc":"2.0","id":`+call.id+`,`) {
					if answered = true; strings.Contains(m, "isError") {
						t.Errorf("the call ended with %s", m)
					}
					told = told || door == "http" // on the standing stream, which this client has not opened
				}
			}
		})
		t.Run(door+" "+rev2026, func(t *testing.T) {
			t.Parallel()
			w := takesAddresses(t, door, rev2026)
			said := w.result("mcp.s.echo", `{}`, "")
			state, _ := memberOf(t, said, "requestState")
			requests, _ := memberOf(t, said, "inputRequests")
			if !strings.Contains(said, `"resultType":"input_required"`) || !strings.Contains(requests, `"mode":"url"`) ||
				strings.Contains(requests, "elicitationId") {
				t.Fatalf("the call ended with %s", said)
			}
			newBrowser(t).signIn(invitationIn(t, requests))
			retry := w.call("mcp.s.echo", `{}`, "")
			retry.params = `{"inputResponses":{"q1":{"action":"accept"}},"requestState":` + state + `,` + retry.params[1:]
			all := w.send(retry)
			if said := w.resultOf(all[len(all)-1]); strings.Contains(said, "isError") || !strings.Contains(said, `"resultType":"complete"`) {
				t.Errorf("the call ended with %s", said)
			}
		})
	}
}

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

// TestSearchWhileSignedOut: the tools that were listed last are found, and the search says that the server needs a sign-in.
func TestSearchWhileSignedOut(t *testing.T) {
	t.Parallel()
	s := newSignedOut(t, map[string]any{"deferred": map[string]any{"mode": "always"}}, nil)
	w := s.client(t, s.serve(t).url, rev2025, "")
	said := w.result("tool_search", `{"query":"echo"}`, "")
	if !strings.Contains(said, `"mcp.s.echo"`) || !strings.Contains(said, "sign-in") || !strings.Contains(said, "mcp-toolhub login s") ||
		strings.Contains(said, "moment") {
		t.Errorf("the search says %s", said)
	}
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

// TestSignInAtCallbackPort: a client that is registered beforehand comes back to the address that it is registered for. The page itself leaves
// that port to others.
func TestSignInAtCallbackPort(t *testing.T) {
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
	}, "oauth", map[string]any{"client_id": "hub", "client_secret": "its-secret", "callback_port": json.RawMessage(port)})
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
		if back := asked[len(asked)-1].Form.Get("redirect_uri"); back != "http://"+address+"/callback" {
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

// say sends a request, and returns the messages that come from then on.
func (w *wire) say(r rawRequest) <-chan string {
	w.t.Helper()
	if w.stdin == nil {
		return w.listen(w.newRequest(r))
	}
	w.write(r.text())
	return w.lines
}

// awaitText is the next message that holds a text.
func awaitText(t *testing.T, messages <-chan string, text string) string {
	t.Helper()
	for {
		if m := await(t, messages); strings.Contains(m, text) {
			return m
		}
	}
}
