//go:build unix

package upstream_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// guarded is a server that wants a sign-in, and a hub in front of it.
type guarded struct {
	*harness
	auth   *upstreamtest.AuthServer
	fake   *upstreamtest.Handler
	config upstream.Config
}

func newGuarded(t *testing.T, o upstreamtest.Options, change func(*upstream.ServerConfig)) *guarded {
	t.Helper()
	g := &guarded{auth: &upstreamtest.AuthServer{Lifetime: time.Hour, Scopes: []string{"read"}, Clients: map[string]string{"robot": "hunter22"}},
		fake: upstreamtest.NewHandler(o)}
	auth, resource := httptest.NewUnstartedServer(g.auth), httptest.NewUnstartedServer(g.auth.Guard(g.fake))
	g.auth.Issuer = "http://" + auth.Listener.Addr().String()
	g.auth.Resource = "http://" + resource.Listener.Addr().String() + "/mcp"
	for _, s := range []*httptest.Server{auth, resource} {
		s.Start()
		t.Cleanup(s.Close)
	}
	t.Cleanup(g.fake.Close)
	server := upstream.ServerConfig{ID: "s", Transport: upstream.StreamableHTTP, URL: g.auth.Resource}
	if o.SSE {
		server.Transport = upstream.SSE
	}
	if change != nil {
		change(&server)
	}
	g.config = upstream.Config{Servers: []upstream.ServerConfig{server, stdio("other", upstreamtest.Script{})}, SignIns: signin.Open(t.TempDir())}
	g.harness = startConfig(t, g.config)
	g.config.Version = "9.9"
	return g
}

// login signs in as a person does, and lets the hub notice.
func (g *guarded) login(t *testing.T) signin.Grant {
	t.Helper()
	l := &signin.Login{Store: g.config.SignIns, Server: g.config.Servers[0], Visit: func(address, _ string) {
		resp, err := http.Get(address)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	grant, err := l.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	g.notice(t)
	return grant
}

func (g *guarded) notice(t *testing.T) {
	t.Helper()
	if err := g.Apply(g.config); err != nil {
		t.Fatal(err)
	}
}

func TestServerThatWantsASignIn(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]upstreamtest.Options{"streams": {}, "JSON": {JSON: true}, "2026-07-28": {Script: upstreamtest.Script{Modern: true}}, "SSE": {SSE: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t, o, nil)
			g.ready(t, "other")
			st := g.reaches(t, "s", tool.ServerNeedsAuth)
			if !strings.Contains(st.Hint, "mcp-toolhub login s") {
				t.Errorf("hint %q", st.Hint)
			}
			_, err := g.call(t.Context(), "s", "echo", `{}`)
			if f := failure(t, err); f.Class != tool.ClassSetupRequired || !strings.Contains(f.Message, "mcp-toolhub login s") {
				t.Errorf("failure %+v", f)
			}
			grant := g.login(t)
			st = g.ready(t, "s")
			if st.SignIn == nil || st.SignIn.Issuer != g.auth.Issuer || !st.SignIn.Renews || strings.Join(st.SignIn.Scopes, " ") != "read" {
				t.Errorf("status %+v", st.SignIn)
			}
			g.mustCall(t, "s", "echo", `{}`)
			text, err := json.Marshal(st)
			if err != nil || strings.Contains(string(text), grant.Access) {
				t.Errorf("the status holds the token: %s", text)
			}
			if g.status("other").Restarts != 0 {
				t.Error("another server was disturbed")
			}
			if _, _, err := g.config.SignIns.Logout(t.Context(), g.config.Servers[0]); err != nil {
				t.Fatal(err)
			}
			g.notice(t)
			g.reaches(t, "s", tool.ServerNeedsAuth)
			if n := len(g.catalog("s").Tools); n == 0 {
				t.Error("the tools of the last catalog are gone")
			}
			if got := g.catalog("s").Needs; !strings.HasPrefix(got, "a sign-in: run mcp-toolhub login s") {
				t.Errorf("needs %q", got)
			}
		})
	}
}

// TestChallengeOfACall: a server answers everything but calls to everybody. What the challenge to a call says counts at the sign-in: where the
// metadata is, and which scopes are wanted. Where that address leads nowhere, the metadata is at the well-known one.
func TestChallengeOfACall(t *testing.T) {
	t.Parallel()
	for named, at := range map[string]string{"/meta/prm": "/meta/prm", "/nowhere": "/.well-known/oauth-protected-resource/mcp"} {
		t.Run(named, func(t *testing.T) {
			t.Parallel()
			challengeOfACall(t, named, at)
		})
	}
}

func challengeOfACall(t *testing.T, named, at string) {
	t.Helper()
	auth, fake := &upstreamtest.AuthServer{Lifetime: time.Hour}, upstreamtest.NewHandler(upstreamtest.Options{JSON: true})
	t.Cleanup(fake.Close)
	issuer := httptest.NewServer(auth)
	t.Cleanup(issuer.Close)
	var resource *httptest.Server
	resource = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case r.URL.Path == at:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"resource":"%s/mcp","authorization_servers":["%s"],"scopes_supported":["other"]}`, resource.URL, issuer.URL)
		case r.URL.Path != "/mcp":
			http.NotFound(w, r)
		case bytes.Contains(body, []byte(`"method":"tools/call"`)) && r.Header.Get("Authorization") == "":
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+resource.URL+named+`", scope="special"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			fake.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(resource.Close)
	auth.Issuer, auth.Resource = issuer.URL, resource.URL+"/mcp"
	g := &guarded{auth: auth, config: upstream.Config{SignIns: signin.Open(t.TempDir()),
		Servers: []upstream.ServerConfig{{ID: "s", Transport: upstream.StreamableHTTP, URL: auth.Resource}}}}
	g.harness = startConfig(t, g.config)
	g.ready(t, "s")
	_, err := g.call(t.Context(), "s", "echo", `{}`)
	if f := failure(t, err); f.Class != tool.ClassSetupRequired {
		t.Errorf("failure %+v", f)
	}
	if grant := g.login(t); strings.Join(grant.Scopes, " ") != "special" {
		t.Errorf("granted: %q", grant.Scopes)
	}
	g.ready(t, "s")
	g.mustCall(t, "s", "echo", `{}`)
}

// TestListsWantFurtherRights: a server that wants further rights for its list of tools needs a sign-in, as one that wants them for a call.
func TestListsWantFurtherRights(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, upstreamtest.Options{Intercept: func(w http.ResponseWriter, _ *http.Request, body []byte) bool {
		if !bytes.Contains(body, []byte(`"method":"tools/list"`)) {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="list"`)
		w.WriteHeader(http.StatusForbidden)
		return true
	}}, nil)
	g.reaches(t, "s", tool.ServerNeedsAuth)
	g.login(t)
	eventually(t, "the server says what it wants", func() bool { return strings.Contains(g.status("s").LastError, "(list)") })
	if st := g.status("s"); st.State != tool.ServerNeedsAuth || !strings.Contains(st.Hint, "mcp-toolhub login s") {
		t.Errorf("status %+v", st)
	}
	if grant := g.login(t); !slices.Contains(grant.Scopes, "list") {
		t.Errorf("granted: %q", grant.Scopes)
	}
}

// signedIn returns a group whose server a person has signed in to.
func signedIn(t *testing.T, o upstreamtest.Options) *guarded {
	t.Helper()
	g := newGuarded(t, o, nil)
	g.reaches(t, "s", tool.ServerNeedsAuth)
	g.login(t)
	g.ready(t, "s")
	return g
}

// TestSignInOfAnIsolatedServer checks that connections of client sessions use the sign-in, too.
func TestSignInOfAnIsolatedServer(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, upstreamtest.Options{}, func(c *upstream.ServerConfig) { *c = isolated(*c) })
	g.reaches(t, "s", tool.ServerNeedsAuth)
	if _, err := newVisitor("1").call(t.Context(), g.harness, "raw", `{"result":{}}`); failure(t, err).Class != tool.ClassSetupRequired {
		t.Errorf("error %v", err)
	}
	g.login(t)
	for _, who := range []string{"2", "3"} {
		if _, err := newVisitor(who).call(t.Context(), g.harness, "raw", `{"result":{}}`); err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
}

// TestCallWithARefusedToken checks that a call whose token the server does not take any more is sent again with another one, and runs
// once.
func TestCallWithARefusedToken(t *testing.T) {
	t.Parallel()
	g := signedIn(t, upstreamtest.Options{})
	old := g.status("s").Restarts
	g.auth.Expire()
	g.mustCall(t, "s", "echo", `{}`)
	if st := g.status("s"); st.Restarts != old {
		t.Errorf("status %+v", st)
	}
	if n := len(g.auth.Requests("/token")); n != 2 {
		t.Errorf("%d requests for a token", n)
	}
	calls := 0
	for _, r := range g.fake.Requests() {
		if strings.Contains(string(r.Body), `"tools/call"`) {
			calls++
		}
	}
	if calls != 1 {
		t.Errorf("the call came %d times", calls)
	}
}

// TestRenewalThatFails checks that a call for which there is no token, because the authorization server fails, is not said to have been sent.
func TestRenewalThatFails(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, upstreamtest.Options{}, nil)
	var fails, hangs atomic.Bool
	asked := make(chan struct{})
	g.auth.Lifetime = 5 * time.Second // so short that the token is renewed at each use
	g.auth.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if fails.Load() && r.URL.Path == "/token" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		if hangs.Load() && r.URL.Path == "/token" {
			asked <- struct{}{}
			<-asked
		}
		return false
	}
	g.reaches(t, "s", tool.ServerNeedsAuth)
	g.login(t)
	g.ready(t, "s")
	g.mustCall(t, "s", "echo", `{}`)
	fails.Store(true)
	_, err := g.call(t.Context(), "s", "echo", `{}`)
	if f := failure(t, err); f.Code != "no_token" || f.OutcomeUnknown || !strings.Contains(f.Message, "not sent") || !strings.Contains(f.Message, "authorization server") {
		t.Errorf("failure %+v", f)
	}
	fails.Store(false)
	g.mustCall(t, "s", "echo", `{}`)

	hangs.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err = g.call(ctx, "s", "echo", `{}`)
	if f := failure(t, err); f.OutcomeUnknown {
		t.Errorf("a call that was cancelled before it was sent: %+v", f)
	}
	hangs.Store(false)
	asked <- struct{}{}
}

// TestRevokedSignIn checks that a sign-in which was ended elsewhere is forgotten, and that a person is asked for another one.
func TestRevokedSignIn(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, g *guarded) {
		g.auth.Revoke()
		_, err := g.call(t.Context(), "s", "echo", `{}`)
		if f := failure(t, err); f.Class != tool.ClassSetupRequired {
			t.Errorf("failure %+v", f)
		}
		g.reaches(t, "s", tool.ServerNeedsAuth)
		if _, ok, err := g.config.SignIns.Grant(g.config.Servers[0]); ok || err != nil {
			t.Errorf("the sign-in is kept: %v", err)
		}
		g.login(t)
		g.ready(t, "s")
		g.mustCall(t, "s", "echo", `{}`)
	})
}

// TestSignInEndedBeforeACall: a call for which there is no token any more leads to a sign-in, and is not said to have been sent.
func TestSignInEndedBeforeACall(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, g *guarded) {
		g.auth.Lifetime = 5 * time.Second // so short that the token is renewed at each use
		g.login(t)
		g.ready(t, "s")
		g.mustCall(t, "s", "echo", `{}`)
		g.auth.Revoke()
		_, err := g.call(t.Context(), "s", "echo", `{}`)
		if f := failure(t, err); f.Class != tool.ClassSetupRequired || f.OutcomeUnknown {
			t.Errorf("failure %+v", f)
		}
		g.reaches(t, "s", tool.ServerNeedsAuth)
		g.login(t)
		g.ready(t, "s")
		g.mustCall(t, "s", "echo", `{}`)
	})
}

// overBoth runs a test of a server that a person has signed in to, over both transports.
func overBoth(t *testing.T, test func(*testing.T, *guarded)) {
	t.Helper()
	for name, o := range map[string]upstreamtest.Options{"streamable": {}, "sse": {SSE: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, signedIn(t, o))
		})
	}
}

// TestFurtherRights checks that a call for which the server wants more says so, and that the next sign-in asks for all.
func TestFurtherRights(t *testing.T) {
	t.Parallel()
	overBoth(t, func(t *testing.T, g *guarded) {
		g.auth.Want("write")
		_, err := g.call(t.Context(), "s", "echo", `{}`)
		if f := failure(t, err); f.Class != tool.ClassSetupRequired || !strings.Contains(f.Message, "(write)") || !strings.Contains(f.Message, "login s") {
			t.Errorf("failure %+v", f)
		}
		if st := g.status("s"); st.State != tool.ServerReady || strings.Join(st.SignIn.Wanted, " ") != "write" {
			t.Errorf("status %+v", st)
		}
		if grant := g.login(t); strings.Join(grant.Scopes, " ") != "write read" {
			t.Errorf("scopes %q", grant.Scopes)
		}
		g.ready(t, "s")
		g.mustCall(t, "s", "echo", `{}`)
	})
}

// TestDamagedSignIns: where the sign-ins cannot be read, that is what is said, and not that the authorization server cannot be reached.
func TestDamagedSignIns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, signin.FileName), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := startConfig(t, upstream.Config{SignIns: signin.Open(dir), Servers: []upstream.ServerConfig{
		{ID: "s", Transport: upstream.StreamableHTTP, URL: "http://127.0.0.1:1/mcp", OAuth: upstream.OAuth{Scopes: []string{"read"}}}}})
	st := h.reaches(t, "s", tool.ServerBackoff)
	if !strings.Contains(st.LastError, "remove it and sign in again") || strings.Contains(st.Hint, "authorization server") {
		t.Errorf("%s; %s", st.LastError, st.Hint)
	}
}

// TestMachine checks that a hub which signs in as itself asks nobody, and gets further rights by itself.
func TestMachine(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, upstreamtest.Options{}, func(c *upstream.ServerConfig) {
		c.OAuth = upstream.OAuth{Machine: true, ClientID: "robot", ClientSecret: "hunter22"}
	})
	g.ready(t, "s")
	g.mustCall(t, "s", "echo", `{}`)
	g.auth.Want("read", "write")
	g.mustCall(t, "s", "echo", `{}`)
	all := g.auth.Requests("/token")
	if last := all[len(all)-1]; len(all) != 2 || last.Form.Get("scope") != "read write" || last.Form.Get("resource") != g.auth.Resource {
		t.Errorf("requests %+v", all)
	}
}

// TestRightsThatAreNotGranted checks that a call for which the server wants more than the authorization server grants is sent twice, and no
// more, and that the hub has asked for all once.
func TestRightsThatAreNotGranted(t *testing.T) {
	t.Parallel()
	var g *guarded
	var calls atomic.Int32
	g = newGuarded(t, upstreamtest.Options{Intercept: onCall(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="admin"`)
		w.WriteHeader(http.StatusForbidden)
	})}, func(c *upstream.ServerConfig) {
		c.OAuth = upstream.OAuth{Machine: true, ClientID: "robot", ClientSecret: "hunter22"}
	})
	g.ready(t, "s")
	before := len(g.auth.Requests("/token"))
	_, err := g.call(t.Context(), "s", "echo", `{}`)
	if f := failure(t, err); f.Class != tool.ClassSetupRequired || !strings.Contains(f.Message, "(admin)") {
		t.Errorf("failure %+v", f)
	}
	asked := g.auth.Requests("/token")[before:]
	if len(asked) != 1 || asked[0].Form.Get("scope") != "read admin" || calls.Load() != 2 {
		t.Errorf("the call came %d times, and for tokens %+v", calls.Load(), asked)
	}
}

// TestTokenStaysHome checks that no token follows a redirect to another origin, nor out of the resource that it is for.
func TestTokenStaysHome(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"elsewhere", "/elsewhere", "/mcp/%2e%2e/elsewhere", "/mcp/..%2felsewhere"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			var got []string
			note := func(r *http.Request) { got = append(got, r.URL.Path+" "+r.Header.Get("Authorization")) }
			elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { note(r) }))
			defer elsewhere.Close()
			if target == "elsewhere" {
				target = elsewhere.URL
			}
			g := newGuarded(t, upstreamtest.Options{Intercept: onCall(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/elsewhere") {
					note(r)
				}
				http.Redirect(w, r, target, http.StatusTemporaryRedirect)
			})}, nil)
			g.reaches(t, "s", tool.ServerNeedsAuth)
			g.login(t)
			g.ready(t, "s")
			_, err := g.call(t.Context(), "s", "echo", `{}`)
			if f := failure(t, err); f.Code != "redirected" || len(got) > 0 {
				t.Errorf("%s: failure %+v, and %q went there", target, f, got)
			}
		})
	}
}

// TestTokenIsSeenNowhere lets a server repeat the token that it got, in each way in which it can fail.
func TestTokenIsSeenNowhere(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 400, 401, 403, 500, -400, -401, -403, -500} { // below zero with a body that is no JSON-RPC
		g := newGuarded(t, upstreamtest.Options{Intercept: onCall(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+r.Header.Get("Authorization")+`"`)
			if status < 0 {
				w.WriteHeader(-status)
				_, _ = io.WriteString(w, r.Header.Get("Authorization")+" is bad")
				return
			}
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"`+r.Header.Get("Authorization")+` is bad"}}`)
		})}, nil)
		g.reaches(t, "s", tool.ServerNeedsAuth)
		grant := g.login(t)
		g.ready(t, "s")
		_, err := g.call(t.Context(), "s", "echo", `{}`)
		if err == nil {
			t.Fatalf("%d: no failure", status)
		}
		text := err.Error()
		if f := new(tool.Failure); errors.As(err, &f) && f.Cause != nil {
			text += f.Cause.Error()
		}
		if rpc := new(tool.RPCError); errors.As(err, &rpc) {
			text += rpc.Shown + string(rpc.ShownRaw)
		}
		if refused := new(tool.HTTPError); errors.As(err, &refused) {
			text += refused.Media + refused.Body
		} else if status < 0 {
			t.Errorf("%d: the server's words are not kept: %v", status, err)
		}
		seen, _ := json.Marshal(g.status("s"))
		for where, text := range map[string]string{"error": text, "log": g.log.String(), "status": string(seen)} {
			for _, secret := range []string{grant.Access, grant.Refresh} {
				if strings.Contains(text, secret) {
					t.Errorf("%d: the %s holds a token: %s", status, where, text)
				}
			}
		}
	}
}

// TestSignInIsRenewedWithinASession checks that what a session sends after its token has ended goes with another one, and that the session
// goes on: calls, the rest of an answer whose stream was cut, and streams that stand.
func TestSignInIsRenewedWithinASession(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]upstreamtest.Options{"streams": {}, "cut streams": {EventIDs: true, Cut: true}, "JSON": {JSON: true},
		"2026-07-28": {Script: upstreamtest.Script{Modern: true}}, "SSE": {SSE: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var g *guarded
			o.Intercept = func(_ http.ResponseWriter, _ *http.Request, body []byte) bool {
				if o.Cut && strings.Contains(string(body), `"method":"tools/call"`) {
					g.auth.Expire() // before the rest is asked for
				}
				return false
			}
			g = newGuarded(t, o, nil)
			g.reaches(t, "s", tool.ServerNeedsAuth)
			grant := g.login(t)
			before := g.ready(t, "s").Restarts
			if !o.Cut {
				g.auth.Expire()
			}
			g.mustCall(t, "s", "echo", `{}`)
			if now, _, err := g.config.SignIns.Grant(g.config.Servers[0]); err != nil || now.Access == grant.Access {
				t.Errorf("the token is the same, %v", err)
			}
			if st := g.status("s"); st.Restarts != before || st.State != tool.ServerReady {
				t.Errorf("status %+v, %d restarts before", st, before)
			}
		})
	}
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("standing, modern %v", modern), func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t, upstreamtest.Options{Script: upstreamtest.Script{Modern: modern}}, nil)
			g.reaches(t, "s", tool.ServerNeedsAuth)
			g.login(t)
			before := g.ready(t, "s").Restarts
			eventually(t, "the hub listens", func() bool { return g.fake.Listening() > 0 })
			g.auth.Expire()
			g.fake.Cut()
			g.fake.AddTool(upstreamtest.Tool("late"))
			eventually(t, "the hub hears of the new tool", func() bool {
				return slices.ContainsFunc(g.catalog("s").Tools, func(one *tool.Tool) bool { return one.Native == "late" })
			})
			if st := g.status("s"); st.Restarts != before || st.LastError != "" {
				t.Errorf("status %+v, %d restarts before", st, before)
			}
		})
	}
}
