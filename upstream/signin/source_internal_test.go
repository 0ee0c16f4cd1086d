package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// direct answers requests with a handler, without a network, so that time can be that of the test.
type direct struct{ handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, req)
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// renewal is a server with a sign-in, whose token ends an hour later.
type renewal struct {
	auth   *upstreamtest.AuthServer
	store  *Store
	source *Source
	first  Grant
}

// newRenewal signs in. each sees the requests to the token endpoint.
func newRenewal(t *testing.T, each func(http.ResponseWriter, *http.Request) bool) *renewal {
	t.Helper()
	r := &renewal{store: Open(t.TempDir()), auth: &upstreamtest.AuthServer{Issuer: "https://auth.example", Resource: "https://s.example/mcp",
		Lifetime: time.Hour, Clients: map[string]string{"hub": ""}}}
	server := settings.Server{ID: "s", Transport: settings.StreamableHTTP, URL: r.auth.Resource}
	r.source = r.store.Source(server)
	r.source.http = &http.Client{Transport: bounded{direct{r.auth}}, Timeout: answerTime}
	g := Grant{ID: "1", Issuer: r.auth.Issuer, Resource: r.auth.Resource, TokenURL: r.auth.Issuer + "/token", Client: Client{ID: "hub", Method: methodNone}}
	a, err := r.store.asker(r.source.http, server, g)
	if err != nil {
		t.Fatal(err)
	}
	code, _ := a.token(t.Context(), map[string]string{"grant_type": deviceGrant, "device_code": r.auth.Approve("read")})
	if code == nil {
		t.Fatal("no token")
	}
	g.take(code, nil)
	if err := r.store.put(server, g, "", Client{}); err != nil {
		t.Fatal(err)
	}
	r.first, r.auth.Intercept = g, each
	return r
}

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

func (r *renewal) token(t *testing.T) string {
	t.Helper()
	token, err := r.source.Token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// refreshes returns how often a refresh token was sent.
func (r *renewal) refreshes() (n int) {
	for _, one := range r.auth.Requests("/token") {
		if one.Form.Get("grant_type") == "refresh_token" {
			n++
		}
	}
	return n
}

// TestTokenIsRenewedEarly checks that calls go on with the old token while a new one is made, which takes long.
func TestTokenIsRenewedEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenewal(t, func(http.ResponseWriter, *http.Request) bool { time.Sleep(10 * time.Second); return false })
		time.Sleep(54 * time.Minute)
		if r.token(t) != r.first.Access || r.refreshes() != 0 {
			t.Error("renewed too early")
		}
		time.Sleep(2 * time.Minute)
		began := time.Now()
		for range 20 {
			if r.token(t) != r.first.Access {
				t.Error("another token")
			}
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("a call waited for %s", took)
		}
		time.Sleep(11 * time.Second)
		if got := r.token(t); got == r.first.Access || r.refreshes() != 1 {
			t.Errorf("token %q after %d refreshes", got, r.refreshes())
		}
		for _, one := range r.auth.Requests("/token") {
			if one.Form.Get("resource") != r.auth.Resource {
				t.Errorf("a request for resource %q", one.Form.Get("resource"))
			}
		}
	})
}

// TestRenewalThatDoesNotSayHowLongItLasts: the new token lasts as long as the one before. It and its refresh token are kept.
func TestRenewalThatDoesNotSayHowLongItLasts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenewal(t, nil)
		r.auth.Lifetime = 0
		for i := range 3 {
			time.Sleep(2 * time.Hour)
			began, before := time.Now(), r.first
			if r.token(t) == before.Access || r.refreshes() != i+1 {
				t.Fatalf("renewal %d: %d refreshes", i, r.refreshes())
			}
			g, _, err := r.store.Grant(r.source.server)
			if err != nil || g.Refresh == before.Refresh || g.Expires.Sub(began).Round(time.Second) != time.Hour {
				t.Errorf("%+v, %v", g, err)
			}
			r.first = g
		}
	})
}

// TestRenewalOfATokenWithoutExpiry: what is stored without an end is renewed without one.
func TestRenewalOfATokenWithoutExpiry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenewal(t, nil)
		r.auth.Lifetime = 0
		first := r.first
		first.Expires = time.Time{}
		if err := r.store.put(r.source.server, first, "", Client{}); err != nil {
			t.Fatal(err)
		}
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, r.auth.Resource, nil)
		if !r.source.Refused(request, r.token(t), http.StatusUnauthorized, nil) {
			t.Error("not renewed")
		}
		g, _, err := r.store.Grant(r.source.server)
		if err != nil || g.Access == first.Access || g.Refresh == first.Refresh || !g.Expires.IsZero() {
			t.Errorf("%+v, %v", g, err)
		}
	})
}

// TestOneRenewalForAll checks that callers share a renewal, and that it outlives the one that began it.
func TestOneRenewalForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenewal(t, func(http.ResponseWriter, *http.Request) bool { time.Sleep(10 * time.Second); return false })
		time.Sleep(2 * time.Hour)
		began := time.Now()
		first, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.source.Token(first); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first: %v", err)
		}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if r.token(t) == r.first.Access {
					t.Error("the old token")
				}
			})
		}
		all.Wait()
		if n, took := r.refreshes(), time.Since(began); n != 1 || took != 10*time.Second {
			t.Errorf("%d refreshes in %s", n, took)
		}
	})
}

// TestWhatEndsASignIn checks that only the authorization server's word ends a sign-in.
func TestWhatEndsASignIn(t *testing.T) {
	t.Parallel()
	refuseWith := func(status int, code string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"error":"` + code + `"}`))
			return true
		}
	}
	refuse := func(code string) func(http.ResponseWriter, *http.Request) bool {
		return refuseWith(http.StatusBadRequest, code)
	}
	for name, c := range map[string]struct {
		each func(http.ResponseWriter, *http.Request) bool
		kept bool
	}{
		"invalid_grant":  {refuse("invalid_grant"), false},
		"invalid_client": {refuse("invalid_client"), false},
		"other refusal":  {refuse("temporarily_unavailable"), true},
		"unknown word":   {refuse("refresh_blocked_by_policy"), true},
		"busy":           {refuseWith(http.StatusTooManyRequests, "Too many requests"), true},
		"down":           {refuseWith(http.StatusServiceUnavailable, "Service Unavailable"), true},
		"failure": {func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}, true},
		"page": {func(w http.ResponseWriter, _ *http.Request) bool {
			_, _ = w.Write([]byte("<html>"))
			return true
		}, true},
		"silence": {func(_ http.ResponseWriter, r *http.Request) bool {
			<-r.Context().Done()
			return true
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRenewal(t, c.each)
				time.Sleep(2 * time.Hour)
				_, err := r.source.Token(t.Context())
				var needed *NeededError
				if err == nil || errors.As(err, &needed) == c.kept {
					t.Errorf("error %v", err)
				}
				g, ok, err := r.store.Grant(r.source.server)
				if ok != c.kept || err != nil || ok && g.Refresh != r.first.Refresh {
					t.Errorf("kept %v: %+v, %v", ok, g, err)
				}
				if r.auth.Intercept = nil; c.kept && r.token(t) == r.first.Access {
					t.Error("the next attempt does not get a token")
				}
			})
		})
	}
}

// TestPollingABusyServer: an authorization server that is busy, or fails, while it is asked whether the code was entered is asked again, slower.
func TestPollingABusyServer(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"json": `{"error":"Service Unavailable"}`, "page": "<html>"} {
		for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusBadRequest} {
			t.Run(fmt.Sprint(name, status), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					asked := 0
					r := newRenewal(t, func(w http.ResponseWriter, _ *http.Request) bool {
						if asked++; asked > 1 {
							return false
						}
						w.Header().Set("Content-Type", map[string]string{"json": "application/json"}[name])
						w.WriteHeader(status)
						_, _ = w.Write([]byte(body))
						return true
					})
					a, err := r.store.asker(r.source.http, r.source.server, r.first)
					if err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					token, err := a.poll(t.Context(), &oauth2.DeviceAuthResponse{DeviceCode: r.auth.Approve("read"), Interval: 1})
					if passes := status != http.StatusBadRequest; passes != (err == nil && token.AccessToken != "") || passes && time.Since(began) != 7*time.Second {
						t.Errorf("after %s: %v", time.Since(began), err)
					}
				})
			})
		}
	}
}

// TestRenewedTokenIsKeptFirst checks that a token which cannot be kept is not handed out, and is not lost either.
func TestRenewedTokenIsKeptFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenewal(t, nil)
		time.Sleep(2 * time.Hour)
		file := r.store.file
		r.auth.Intercept = func(http.ResponseWriter, *http.Request) bool { // the disk is full as soon as the token is there
			r.store.file = file + "/no/directory"
			return false
		}
		if token, err := r.source.Token(t.Context()); err == nil {
			t.Errorf("token %q", token)
		}
		r.store.file = file
		if token := r.token(t); token == r.first.Access || r.refreshes() != 1 {
			t.Errorf("token %q after %d refreshes", token, r.refreshes())
		}
	})
}

// TestSignInAfterUnkeptToken checks that a token which could not be kept does not replace what somebody has signed in for since.
func TestSignInAfterUnkeptToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenewal(t, nil)
		time.Sleep(2 * time.Hour)
		r.source.unsaved, r.source.replaces = &Grant{Access: "lost"}, r.first.Access
		again := newRenewal(t, nil)
		r.source.store, r.source.http = again.store, again.source.http
		time.Sleep(2 * time.Hour)
		if token := r.token(t); token == "lost" || again.refreshes() != 1 {
			t.Errorf("token %q after %d refreshes", token, again.refreshes())
		}
	})
}

// TestLogoutDuringRenewal checks that a renewal which is under way does not put a sign-in back that is ended meanwhile.
func TestLogoutDuringRenewal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenewal(t, nil)
		time.Sleep(2 * time.Hour)
		ended := make(chan error, 1)
		r.auth.Intercept = func(http.ResponseWriter, *http.Request) bool {
			go func() {
				_, _, err := r.store.Logout(t.Context(), r.source.server)
				ended <- err
			}()
			time.Sleep(10 * time.Second)
			return false
		}
		if r.token(t) == r.first.Access {
			t.Error("the old token")
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if g, ok, err := r.store.Grant(r.source.server); ok || err != nil {
			t.Errorf("signed in again: %+v, %v", g, err)
		}
	})
}

func TestRefusedToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRenewal(t, nil)
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, r.auth.Resource, nil)
		if !r.source.Refused(request, r.first.Access, http.StatusUnauthorized, nil) || r.refreshes() != 1 {
			t.Error("a token that is refused is not renewed")
		}
		if !r.source.Refused(request, r.first.Access, http.StatusUnauthorized, nil) || r.refreshes() != 1 {
			t.Error("there is another token already")
		}
		if r.source.Refused(request, r.token(t), http.StatusUnauthorized, nil) || r.refreshes() != 1 {
			t.Error("the new token is refused, and renewed again")
		}
		more := http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="write admin"`}}
		if r.source.Refused(request, r.token(t), http.StatusForbidden, more) {
			t.Error("nobody has granted more")
		}
		if g, _, _ := r.store.Grant(r.source.server); len(g.Wanted) != 2 {
			t.Errorf("wanted %q", g.Wanted)
		}
		old := r.token(t)
		if err := r.store.put(r.source.server, Grant{ID: "2", Access: "wider", Scopes: []string{"write", "admin", "read"}}, "", Client{}); err != nil {
			t.Fatal(err)
		}
		if !r.source.Refused(request, old, http.StatusForbidden, more) {
			t.Error("a call on its way while somebody granted more is not sent again")
		}
		if g, _, _ := r.store.Grant(r.source.server); len(g.Wanted) != 0 {
			t.Errorf("wanted %q, which are granted", g.Wanted)
		}
		if r.source.Refused(request, "wider", http.StatusForbidden, more) {
			t.Error("a call is sent again with the same token")
		}
	})
}

// TestSilentServer checks that a server which says nothing ends the wait for it.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Timeout: answerTime, Transport: direct{http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}}
		began := time.Now()
		_, _, _, err := ask(t.Context(), client, settings.Server{ID: "s", Transport: settings.StreamableHTTP, URL: "https://s.example/mcp"})
		if err == nil || err.Error() != "s.example did not answer in time" || time.Since(began) != answerTime {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}

func TestAddressesOfThisNetwork(t *testing.T) {
	t.Parallel()
	for address, inside := range map[string]bool{"127.0.0.1": true, "10.1.2.3": true, "8.8.8.8": false, "::1": true, "::ffff:10.0.0.1": true,
		"2606:4700::1": false, "64:ff9b::a00:1": true, "169.254.169.254": true, "192.0.0.8": true, "198.18.0.1": true, "240.0.0.1": true,
		"fec0::1": true, "2001:0:0:0:0:0:f5ff:fffe": true} {
		if isInside(netip.MustParseAddr(address)) != inside {
			t.Errorf("%s: inside is %v", address, !inside)
		}
	}
	reached := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer server.Close()
	if err := getJSON(t.Context(), newClient(false), server.URL, nil); err == nil || reached > 0 {
		t.Errorf("a server of the Internet makes the hub ask %s: %v", server.URL, err)
	}
	behind, proxy := newClient(false), server.Listener.Addr().String()
	behind.Transport.(bounded).next.(*http.Transport).Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})
	if err := getJSON(t.Context(), behind, "http://localhost:1/x", new(any)); err == nil || reached != 1 {
		t.Errorf("a proxy in this network is not used: %v", err)
	}
	behind.Transport.(bounded).next.(*http.Transport).Proxy = func(req *http.Request) (*url.URL, error) {
		if req.URL.Hostname() == "127.0.0.1" {
			return nil, nil // as ProxyFromEnvironment does
		}
		return &url.URL{Scheme: "http", Host: "127.0.0.1:1"}, nil
	}
	if err := getJSON(t.Context(), behind, server.URL, new(any)); err == nil || reached != 1 {
		t.Errorf("a server of the Internet makes a hub with a proxy ask %s: %v", server.URL, err)
	}
	_, _, near, err := ask(t.Context(), newClient(true), settings.Server{Transport: settings.StreamableHTTP, URL: server.URL})
	if !near || err != nil || reached != 2 {
		t.Errorf("a server on this machine: near %v, %v", near, err)
	}
}

// A server may offer both kinds of tokens, in either order.
func TestChallengesOfBothKinds(t *testing.T) {
	t.Parallel()
	bearer, bound := `Bearer resource_metadata="https://s.example/meta", scope="read write"`, `DPoP error="use_dpop_nonce"`
	for _, all := range [][]string{{bearer, bound}, {bound, bearer}, {bound + ", " + bearer}} {
		c, found := challengeOf(http.Header{"Www-Authenticate": all})
		if !found || !c.bearer || !c.bound || c.code != nonceCode || c.metadata != "https://s.example/meta" || len(c.scopes) != 2 {
			t.Errorf("%q: %+v", all, c)
		}
	}
	if c, found := challengeOf(http.Header{"Www-Authenticate": {`Basic realm="x"`}}); found || c.bearer || c.bound {
		t.Errorf("Basic: %+v", c)
	}
}

// TestResourceWithAQuery: a token for one tenant is for no other one.
func TestResourceWithAQuery(t *testing.T) {
	t.Parallel()
	for resource, at := range map[string]map[string]bool{
		"https://s.example/mcp?tenant=1": {"https://s.example/mcp?tenant=1": true, "https://s.example/mcp/?tenant=1": true,
			"https://s.example/mcp?tenant=2": false, "https://s.example/mcp": false},
		"https://s.example/mcp": {"https://s.example/mcp?tenant=1": true},
	} {
		for address, want := range at {
			u, err := url.Parse(address)
			if err != nil {
				t.Fatal(err)
			}
			if covers(resource, u) != want {
				t.Errorf("%s covers %s: %t", resource, address, !want)
			}
		}
	}
}
