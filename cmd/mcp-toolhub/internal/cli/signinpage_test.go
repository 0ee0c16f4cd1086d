package cli

import (
	"bytes"
	"html"
	"io"
	"io/fs"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
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
