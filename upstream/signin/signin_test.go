package signin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// world is a server, its authorization server, and a state directory.
type world struct {
	auth   *upstreamtest.AuthServer
	server upstream.ServerConfig
	dir    string
	store  *signin.Store
}

// newWorld makes a world. change may change the authorization server before it serves.
func newWorld(t *testing.T, change func(*upstreamtest.AuthServer)) *world {
	t.Helper()
	w := &world{auth: &upstreamtest.AuthServer{Lifetime: time.Hour, Scopes: []string{"read"}}, dir: t.TempDir()}
	authServer := httptest.NewUnstartedServer(w.auth)
	resource := httptest.NewUnstartedServer(w.auth.Guard(http.NotFoundHandler()))
	w.auth.Issuer = "http://" + authServer.Listener.Addr().String()
	w.auth.Resource = "http://" + resource.Listener.Addr().String() + "/mcp"
	w.server = upstream.ServerConfig{ID: "s", Transport: upstream.StreamableHTTP, URL: w.auth.Resource}
	if change != nil {
		change(w.auth)
	}
	for _, s := range []*httptest.Server{authServer, resource} {
		s.Start()
		t.Cleanup(s.Close)
	}
	w.store = signin.Open(w.dir)
	return w
}

// login signs in. visit stands for the browser; nil is one that goes where it is sent.
func (w *world) login(t *testing.T, visit func(address string)) (signin.Grant, error) {
	t.Helper()
	if visit == nil {
		visit = func(address string) { browse(t, address) }
	}
	l := &signin.Login{Store: w.store, Server: w.server, Visit: func(address, _ string) { visit(address) }}
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("the test waits no longer"))
	defer cancel()
	return l.Run(ctx)
}

// at makes an Intercept for one path of an authorization server.
func at(path string, f http.HandlerFunc) func(*upstreamtest.AuthServer) {
	return func(a *upstreamtest.AuthServer) {
		a.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasPrefix(r.URL.Path, path) {
				return false
			}
			f(w, r)
			return true
		}
	}
}

// browse goes to an address as a browser does.
func browse(t *testing.T, address string) {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Errorf("browse: %v", err)
		return
	}
	defer resp.Body.Close()
	if page, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Logf("browse: %s: %s", resp.Status, page)
	}
}

// stored reports whether anything is kept of a sign-in.
func (w *world) stored(t *testing.T) bool {
	t.Helper()
	_, ok, err := signin.Open(w.dir).Grant(w.server)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

func TestLoginInABrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	g, err := w.login(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := w.store.Source(w.server).Token(t.Context())
	if err != nil || token != g.Access || strings.Join(g.Scopes, " ") != "read" {
		t.Errorf("token %q of %+v: %v", token, g, err)
	}
	for _, path := range []string{"/authorize", "/token"} {
		for _, r := range w.auth.Requests(path) {
			if r.Form.Get("resource") != w.server.URL {
				t.Errorf("%s asks for resource %q", path, r.Form.Get("resource"))
			}
		}
	}
	for _, name := range []string{signin.FileName, signin.FileName + ".key"} {
		info, err := os.Stat(filepath.Join(w.dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		text, _ := os.ReadFile(filepath.Join(w.dir, name))
		if strings.Contains(string(text), "access-") || strings.Contains(string(text), "issuer") {
			t.Errorf("%s can be read", name)
		}
	}
	// A later sign-in takes the client that is registered, at the same port, unless another program has that port by then.
	for registered := 0; len(w.auth.Requests("/register")) != registered; {
		if registered = len(w.auth.Requests("/register")); registered > 5 {
			t.Fatalf("%d registrations", registered)
		}
		if _, err := w.login(t, nil); err != nil {
			t.Fatal(err)
		}
	}
	other := w.server
	other.URL += "/elsewhere"
	if token, err := w.store.Source(other).Token(t.Context()); token != "" || err != nil {
		t.Errorf("a server of the same id at another address gets %q, %v", token, err)
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	g, err := w.login(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	was, revoked, err := w.store.Logout(t.Context(), w.server)
	if !was || !revoked || err != nil || w.stored(t) {
		t.Errorf("logout: %v, %v, %v", was, revoked, err)
	}
	if got := w.auth.Requests("/revoke"); len(got) != 1 || got[0].Form.Get("token") != g.Refresh {
		t.Errorf("revoked %+v", got)
	}
	if was, _, err := w.store.Logout(t.Context(), w.server); was || err != nil {
		t.Errorf("again: %v, %v", was, err)
	}
}

func metadata(name string, value any) func(*upstreamtest.AuthServer) {
	return func(a *upstreamtest.AuthServer) { a.Metadata = map[string]any{name: value} }
}

// answering lets the browser come back with another answer than the authorization server's.
func answering(change func(url.Values)) func(*testing.T) func(string) {
	return func(t *testing.T) func(string) {
		return func(address string) {
			client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			resp, err := client.Get(address)
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
			back, _ := resp.Location()
			query := back.Query()
			change(query)
			back.RawQuery = query.Encode()
			browse(t, back.String())
		}
	}
}

// TestUnknownStateIsIgnored: every program of this machine can bring an answer to the address that the browser comes back to. One without the
// state of the sign-in is refused, and the sign-in goes on.
func TestUnknownStateIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if _, err := w.login(t, func(address string) {
		u, err := url.Parse(address)
		if err != nil {
			t.Error(err)
			return
		}
		for _, query := range []string{"", "?code=x", "?code=x&state=guessed", "?error=access_denied&state="} {
			resp, err := http.Get(u.Query().Get("redirect_uri") + query)
			if err != nil {
				t.Error(err)
				continue
			}
			if resp.Body.Close(); resp.StatusCode != http.StatusBadRequest {
				t.Errorf("%q is answered %s", query, resp.Status)
			}
		}
		browse(t, address)
	}); err != nil {
		t.Error(err)
	}
}

// TestRegisteredByHand: where the hub cannot register itself, what it says to do makes the next sign-in succeed.
func TestRegisteredByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(a *upstreamtest.AuthServer) {
		a.NoRegistration, a.Clients = true, map[string]string{"by-hand": "its-secret"}
	})
	_, err := w.login(t, nil)
	said := regexp.MustCompile(`redirect address (\S+); then set oauth: {client_id: …, client_secret: …, callback_port: (\d+)} in mcpServers.s `).
		FindStringSubmatch(fmt.Sprint(err))
	if said == nil {
		t.Fatal(err)
	}
	w.server.OAuth.ClientID, w.server.OAuth.ClientSecret = "by-hand", "its-secret"
	w.server.OAuth.Redirect = fmt.Sprintf("http://127.0.0.1:%s/callback", said[2])
	if _, err := w.login(t, nil); err != nil {
		t.Error(err)
	}
	if asked := w.auth.Requests("/authorize"); len(asked) != 1 || asked[0].Form.Get("redirect_uri") != said[1] {
		t.Errorf("registered for %s, asked %+v", said[1], asked)
	}
	w.server.OAuth = upstream.OAuth{}
	l := &signin.Login{Store: w.store, Server: w.server, Callback: &signin.Callback{Address: "https://hub.example/sign-in/callback", Fixed: true}}
	if _, err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "https://hub.example/sign-in/callback; then set oauth: {client_id: …, client_secret: …} in") {
		t.Errorf("a page elsewhere: %v", err)
	}
	l.Callback.Address = "http://127.0.0.1:8808/sign-in/callback"
	if _, err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "http://127.0.0.1:PORT/callback (any free port)") {
		t.Errorf("a page here: %v", err)
	}
}

// TestTokenWithoutExpiry: a token that does not say when it ends is used until the server refuses it.
func TestTokenWithoutExpiry(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(a *upstreamtest.AuthServer) { a.Lifetime = 0 })
	g, err := w.login(t, nil)
	if err != nil || !g.Expires.IsZero() {
		t.Fatalf("%+v, %v", g, err)
	}
	if token, err := w.store.Source(w.server).Token(t.Context()); token != g.Access || err != nil {
		t.Errorf("token %q, %v", token, err)
	}
}

// TestTokenThatIsAJWT: a JWT without expires_in ends when it says so itself.
func TestTokenThatIsAJWT(t *testing.T) {
	t.Parallel()
	ends := time.Now().Add(time.Hour).Truncate(time.Second)
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.RegisteredClaims{ExpiresAt: jwt.NewNumericDate(ends)}).SignedString([]byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(a *upstreamtest.AuthServer) {
		a.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/token" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer"}`, text)
			return true
		}
	})
	if g, err := w.login(t, nil); err != nil || !g.Expires.Equal(ends) {
		t.Errorf("%+v, %v", g, err)
	}
}

// TestSignInsOfPeople checks that each person's sign-in is theirs alone, and none of them is that of all.
func TestSignInsOfPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	shared := w.server
	w.server.OAuth.PerCaller = true
	own, all := w.server, make(map[string]string)
	for _, person := range []string{"ann", "bob", tool.Local} {
		w.server = own.For(person)
		g, err := w.login(t, nil)
		if err != nil {
			t.Fatal(err)
		}
		all[person] = g.Access
	}
	for person, access := range all {
		if token, err := w.store.Source(own.For(person)).Token(t.Context()); token != access || err != nil {
			t.Errorf("%s: token %q instead of %q, %v", person, token, access, err)
		}
	}
	if people, err := w.store.People(own); strings.Join(people, " ") != "ann bob local" || err != nil {
		t.Errorf("people %q, %v", people, err)
	}
	for _, server := range []upstream.ServerConfig{shared, shared.For("ann"), own.For("carl")} {
		if token, err := w.store.Source(server).Token(t.Context()); token != "" || err != nil {
			t.Errorf("%q of %+v gets %q, %v", server.Person, server.OAuth, token, err)
		}
	}
	if token, _ := w.store.Source(own).Token(t.Context()); token != all[tool.Local] {
		t.Errorf("without a person: token %q", token)
	}
	if was, revoked, err := w.store.Logout(t.Context(), own.For("bob")); !was || !revoked || err != nil {
		t.Errorf("logout: %v, %v, %v", was, revoked, err)
	}
	if people, _ := w.store.People(own); strings.Join(people, " ") != "ann local" {
		t.Errorf("people %q", people)
	}
}

// TestRegistrationOfAFailedSignIn checks that a client which was registered for a sign-in that failed is not kept on the disk, and is used
// by the next attempt all the same; and that one which the authorization server has forgotten is not used again.
func TestRegistrationOfAFailedSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.server.OAuth.Redirect = fmt.Sprintf("http://127.0.0.1:%d/callback", freePort(t))
	registered := func() int { return len(w.auth.Requests("/register")) }
	if _, err := w.login(t, answering(func(q url.Values) { q.Set("code", "old") })(t)); err == nil || w.stored(t) {
		t.Fatalf("signed in: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, signin.FileName)); err == nil {
		t.Error("something is kept")
	}
	if g, err := w.login(t, nil); err != nil || registered() != 1 {
		t.Errorf("%d registrations: %+v, %v", registered(), g, err)
	}
	if g, err := w.login(t, nil); err != nil || registered() != 1 {
		t.Errorf("%d registrations: %+v, %v", registered(), g, err)
	}
	w.auth.ForgetClients()
	if _, err := w.login(t, func(address string) {
		u, _ := url.Parse(address)
		browse(t, u.Query().Get("redirect_uri")+"?code=x&iss="+url.QueryEscape(w.auth.Issuer)+"&state="+u.Query().Get("state"))
	}); err == nil || !strings.Contains(err.Error(), "invalid_client") {
		t.Errorf("error %v", err)
	}
	if g, err := w.login(t, nil); err != nil || registered() != 2 {
		t.Errorf("%d registrations: %+v, %v", registered(), g, err)
	}
	w.auth.ForgetClients() // and now the browser shows a page that leads nowhere
	ctx, cancel := context.WithCancel(t.Context())
	nowhere := &signin.Login{Store: w.store, Server: w.server, Visit: func(_, _ string) { cancel() }}
	if _, err := nowhere.Run(ctx); err == nil || !strings.Contains(err.Error(), "nobody has signed in") {
		t.Errorf("error %v", err)
	}
	if g, err := w.login(t, nil); err != nil || registered() != 3 {
		t.Errorf("%d registrations: %+v, %v", registered(), g, err)
	}
	w.auth.ForgetClients()
	if was, _, err := w.store.Logout(t.Context(), w.server); err != nil || !was {
		t.Errorf("signed out: %t, %v", was, err)
	}
	if g, err := w.login(t, nil); err != nil || registered() != 4 {
		t.Errorf("%d registrations: %+v, %v", registered(), g, err)
	}
	other := newWorld(t, nil) // nobody has signed in with the client before it is forgotten
	other.server.OAuth.Redirect = fmt.Sprintf("http://127.0.0.1:%d/callback", freePort(t))
	for i, want := range []int{1, 1, 2} {
		ctx, cancel := context.WithCancel(t.Context())
		l := &signin.Login{Store: other.store, Server: other.server, Visit: func(_, _ string) { cancel() }}
		if _, err := l.Run(ctx); err == nil || len(other.auth.Requests("/register")) != want {
			t.Errorf("sign-in %d that nobody has finished: %d registrations, %v", i, len(other.auth.Requests("/register")), err)
		}
		other.auth.ForgetClients()
	}
}

// freePort returns a port that nobody has, and that systems give to nobody who asks for any.
func freePort(t *testing.T) int {
	t.Helper()
	for {
		port := 20000 + rand.IntN(10000)
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			_ = l.Close()
			return port
		}
	}
}

// TestClientsOfAddresses: the client that is registered for a page of the hub stays beside that of loopback ports, and another address takes
// another one.
func TestClientsOfAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.server.OAuth.Redirect = fmt.Sprintf("http://127.0.0.1:%d/callback", freePort(t))
	back := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for i, want := range []struct {
		address string // "" is loopback
		clients int
	}{{"", 1}, {"https://hub.example/back", 2}, {"", 2}, {"https://hub.example/back", 2}, {"https://new.example/back", 3}} {
		answer := make(chan url.Values, 1)
		l := &signin.Login{Store: w.store, Server: w.server, Visit: func(address, _ string) { browse(t, address) }}
		if want.address != "" {
			l.Callback = &signin.Callback{Address: want.address, Answer: answer, Fixed: true}
			l.Visit = func(address, _ string) {
				resp, err := back.Get(address)
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
				if u, err := resp.Location(); err != nil || u.Scheme+"://"+u.Host+u.Path != want.address {
					t.Errorf("the browser is sent to %v, %v", u, err)
				} else {
					answer <- u.Query()
				}
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := l.Run(ctx)
		cancel()
		if got := len(w.auth.Requests("/register")); err != nil || got != want.clients {
			t.Fatalf("%d: %d registrations instead of %d, %v", i, got, want.clients, err)
		}
	}
	if ports := w.store.Ports(); len(ports) != 1 {
		t.Errorf("registered for the ports %v", ports)
	}
}
