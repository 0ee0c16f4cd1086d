package signin_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// TestPlacesOfMetadata serves the metadata of an issuer with a path at one of its places at a time.
func TestPlacesOfMetadata(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"/.well-known/oauth-authorization-server/tenant", "/.well-known/openid-configuration/tenant",
		"/tenant/.well-known/openid-configuration", "/tenant/.well-known/oauth-authorization-server"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(a *upstreamtest.AuthServer) {
				a.Issuer += "/tenant"
				a.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
					if !strings.Contains(r.URL.Path, ".well-known") {
						return false
					}
					if r.URL.Path != place {
						http.NotFound(w, r)
						return true
					}
					r.URL.Path = "/.well-known/oauth-authorization-server/tenant"
					return false
				}
			})
			if _, err := w.login(t, nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestServerOfTheOldestRevision has no metadata of its own: its origin is the authorization server, as of 2025-03-26, or names one.
func TestServerOfTheOldestRevision(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		auth := &upstreamtest.AuthServer{Lifetime: time.Hour}
		origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/mcp" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			auth.ServeHTTP(w, r)
		}))
		other := httptest.NewUnstartedServer(auth)
		auth.Issuer = "http://" + origin.Listener.Addr().String()
		auth.Resource = auth.Issuer + "/mcp"
		if named {
			auth.Issuer = "http://" + other.Listener.Addr().String()
		}
		for _, s := range []*httptest.Server{origin, other} {
			s.Start()
			defer s.Close()
		}
		w := &world{auth: auth, server: upstream.ServerConfig{ID: "s", Transport: upstream.StreamableHTTP, URL: auth.Resource}, store: signin.Open(t.TempDir())}
		if g, err := w.login(t, nil); err != nil || g.Issuer != auth.Issuer {
			t.Errorf("named elsewhere %v: %+v, %v", named, g, err)
		}
	}
}

// TestServerWithoutMetadata: where an authorization server says nothing of itself, the hub signs in only if the server's entry vouches for it.
func TestServerWithoutMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(a *upstreamtest.AuthServer) {
		a.Intercept = func(rw http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, ".well-known") {
				http.NotFound(rw, r)
				return true
			}
			return false
		}
	})
	for _, o := range []upstream.OAuth{{}, {AssumePKCE: true}, {Issuer: w.auth.Issuer}} {
		w.server.OAuth = o
		if _, err := w.login(t, nil); err == nil || !strings.Contains(err.Error(), "it has no metadata: ") || len(w.auth.Requests("/register")) > 0 {
			t.Errorf("%+v: %v", o, err)
		}
	}
	w.server.OAuth = upstream.OAuth{Issuer: w.auth.Issuer, AssumePKCE: true}
	if g, err := w.login(t, nil); err != nil || g.Issuer != w.auth.Issuer {
		t.Errorf("%+v, %v", g, err)
	}
}

// TestEntra signs in where PKCE is not announced and the parameter resource is refused.
func TestEntra(t *testing.T) {
	t.Parallel()
	w := newWorld(t, metadata("code_challenge_methods_supported", nil))
	w.server.OAuth = upstream.OAuth{AssumePKCE: true, Resource: upstream.OmitResource, ClientID: "app", ClientSecret: "app-secret", Scopes: []string{"api://x/read"}}
	w.auth.Clients = map[string]string{"app": "app-secret"}
	w.auth.NoResource = true
	g, err := w.login(t, nil)
	if err != nil || strings.Join(g.Scopes, " ") != "api://x/read" || len(w.auth.Requests("/register")) != 0 {
		t.Errorf("%+v, %v", g, err)
	}
	for _, path := range []string{"/authorize", "/token"} {
		for _, r := range w.auth.Requests(path) {
			if r.Form.Has("resource") || r.Form.Has("client_secret") {
				t.Errorf("%s got %v", path, r.Form)
			}
		}
	}
	client, resource := w.server, w.server
	client.OAuth.ClientID, resource.OAuth.Resource = "another-app", "https://another.example/mcp"
	for _, other := range []upstream.ServerConfig{client, resource} {
		if _, ok, err := w.store.Grant(other); ok || err != nil {
			t.Errorf("the sign-in is taken for that of another client or resource: %+v, %v", other.OAuth, err)
		}
	}
	if _, ok, err := w.store.Grant(w.server); !ok || err != nil {
		t.Errorf("the sign-in does not count: %v", err)
	}
}

// TestClientIsOfOneIssuer: the client that an entry names is sent to the authorization server of the first sign-in alone, until the entry says
// otherwise. A document that describes the client is for all.
func TestClientIsOfOneIssuer(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{"person": "app", "machine": "app", "document": "https://hub.example/client.json"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(a *upstreamtest.AuthServer) { a.Lifetime = time.Second }) // so short that each use renews
			w.auth.Clients = map[string]string{"app": "app-secret", "https://hub.example/client.json": ""}
			w.server.OAuth = upstream.OAuth{ClientID: id, ClientSecret: w.auth.Clients[id], Machine: name == "machine"}
			signIn := func() error {
				if !w.server.OAuth.Machine {
					_, err := w.login(t, nil)
					return err
				}
				_, err := w.store.Source(w.server).Token(t.Context())
				return err
			}
			if err := signIn(); err != nil {
				t.Fatal(err)
			}
			other := httptest.NewServer(w.auth)
			t.Cleanup(other.Close)
			asked, first := len(w.auth.Requests("/token")), w.auth.Issuer
			w.auth.Issuer = other.URL
			w.store = signin.Open(w.dir)
			err := signIn()
			if name == "document" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "names "+other.URL+" now, and oauth.client_id is of "+first) ||
				!strings.Contains(err.Error(), "set oauth: {issuer: "+other.URL+"}") {
				t.Errorf("at another authorization server: %v", err)
			}
			if n := len(w.auth.Requests("/token")); n != asked {
				t.Error("the other authorization server was sent the client")
			}
			w.server.OAuth.Issuer = other.URL
			if err := signIn(); err != nil {
				t.Errorf("with its issuer in the entry: %v", err)
			}
		})
	}
}

// TestResourceIsLeftOut checks that oauth.resource: omit holds for whatever is sent to the authorization server.
func TestResourceIsLeftOut(t *testing.T) {
	t.Parallel()
	leftOut := func(t *testing.T, w *world, paths ...string) {
		t.Helper()
		for _, path := range paths {
			all := w.auth.Requests(path)
			for _, r := range all {
				if r.Form.Has("resource") {
					t.Errorf("%s got %v", path, r.Form)
				}
			}
			if len(all) == 0 {
				t.Errorf("nothing came to %s", path)
			}
		}
	}
	omits := func(t *testing.T, change func(*upstreamtest.AuthServer)) *world {
		w := newWorld(t, change)
		w.auth.NoResource, w.server.OAuth.Resource = true, upstream.OmitResource
		return w
	}
	t.Run("browser", func(t *testing.T) {
		t.Parallel()
		w := omits(t, func(a *upstreamtest.AuthServer) { a.Lifetime = time.Second }) // so short that each use renews
		g, err := w.login(t, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token, err := w.store.Source(w.server).Token(t.Context()); err != nil || token == g.Access {
			t.Errorf("token %q after %q, %v", token, g.Access, err)
		}
		if _, revoked, err := w.store.Logout(t.Context(), w.server); !revoked || err != nil {
			t.Errorf("revoked %v, %v", revoked, err)
		}
		leftOut(t, w, "/authorize", "/token", "/revoke")
		if n := len(w.auth.Requests("/token")); n != 2 {
			t.Errorf("%d requests for a token", n)
		}
	})
	t.Run("machine", func(t *testing.T) {
		t.Parallel()
		w := omits(t, nil)
		w.auth.Clients = map[string]string{"robot": "hunter22"}
		w.server.OAuth.Machine, w.server.OAuth.ClientID, w.server.OAuth.ClientSecret = true, "robot", "hunter22"
		if _, err := w.store.Source(w.server).Token(t.Context()); err != nil {
			t.Fatal(err)
		}
		leftOut(t, w, "/token")
	})
	t.Run("device", func(t *testing.T) {
		t.Parallel()
		w := omits(t, func(a *upstreamtest.AuthServer) { a.Device = true })
		l := &signin.Login{Store: w.store, Server: w.server, Device: true, Visit: func(string, string) {}}
		if _, err := l.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		leftOut(t, w, "/device", "/token")
	})
}

// TestDeviceWithoutACode: where the authorization server's answer holds no code, nobody is sent anywhere.
func TestDeviceWithoutACode(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"device_code", "user_code"} {
		w := newWorld(t, func(a *upstreamtest.AuthServer) {
			a.Device = true
			a.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path != "/device" {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"%s":"x","verification_uri":"%s/enter","interval":1,"expires_in":60}`, code, a.Issuer)
				return true
			}
		})
		l := &signin.Login{Store: w.store, Server: w.server, Device: true, Visit: func(string, string) { t.Error("somebody is sent to the page") }}
		if _, err := l.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "holds no code") {
			t.Errorf("with %s alone: %v", code, err)
		}
	}
}

// TestSignedClient signs in as a machine with each kind of key.
func TestSignedClient(t *testing.T) {
	t.Parallel()
	ec, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	long, _ := rsa.GenerateKey(rand.Reader, 2048)
	_, ed, _ := ed25519.GenerateKey(rand.Reader)
	for _, pair := range []struct{ public, private any }{{ec.Public(), ec}, {long.Public(), long}, {ed.Public(), ed}} {
		pkcs8, err := x509.MarshalPKCS8PrivateKey(pair.private)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, nil)
		w.auth.Clients = map[string]string{"robot": ""}
		w.server.OAuth = upstream.OAuth{Machine: true, ClientID: "robot",
			ClientKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))}
		if token, err := w.store.Source(w.server).Token(t.Context()); err != nil || token == "" {
			t.Fatalf("token %q, %v", token, err)
		}
		asked := w.auth.Requests("/token")
		claims := &jwt.RegisteredClaims{}
		_, err = jwt.ParseWithClaims(asked[0].Form.Get("client_assertion"), claims, func(*jwt.Token) (any, error) { return pair.public, nil },
			jwt.WithAudience(w.auth.Issuer), jwt.WithSubject("robot"), jwt.WithIssuer("robot"), jwt.WithExpirationRequired())
		if err != nil || len(claims.Audience) != 1 || claims.ID == "" {
			t.Errorf("%T: %v, %+v", pair.public, err, claims)
		}
	}
}
