//go:build e2e

package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// oidcServer is a published authorization server, oidc-provider from npm, and an MCP server "s" that takes its tokens.
type oidcServer struct {
	issuer string
	config string // of a hub with that server

	mu       sync.Mutex
	requests []oidcRequest
}

// oidcRequest is a request that it has answered.
type oidcRequest struct {
	Issuer string // of the line before the first request
	Path   string
	Params map[string]any
	Status int
	Answer struct {
		Error   string
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
		Method  string `json:"token_endpoint_auth_method"`
	}
}

// startOIDC starts both. Access tokens live for lifetime.
func startOIDC(t *testing.T, lifetime time.Duration) *oidcServer {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the browser of the tests is xdg-open")
	}
	clients := npmClients(t)
	o := &oidcServer{}
	fake := upstreamtest.NewHandler(upstreamtest.Options{JSON: true})
	t.Cleanup(fake.Close)
	server := httptest.NewUnstartedServer(nil)
	resource := "http://" + server.Listener.Addr().String() + "/mcp"
	cmd := nodeCommand(t, clients, "oidc.mjs", resource, strconv.Itoa(int(lifetime.Seconds())))
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	issuer, read := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(read)
		o.read(t, stdout, issuer)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the authorization server says: %s", &complaints)
		}
	})
	select {
	case o.issuer = <-issuer:
	case <-read:
		t.Fatalf("the authorization server ended: %s", &complaints)
	}
	server.Config.Handler = o.guard(t, resource, fake)
	server.Start()
	t.Cleanup(server.Close)
	o.config = "mcpServers:\n  s: {url: " + resource + "}\npolicy: {rules: [{match: '*', then: allow}]}\n"
	return o
}

// read reads what the authorization server prints.
func (o *oidcServer) read(t *testing.T, stdout io.Reader, issuer chan<- string) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "{") {
			continue // a notice
		}
		var r oidcRequest
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Errorf("the authorization server prints %q: %v", lines.Text(), err)
		}
		if r.Issuer != "" {
			issuer <- r.Issuer
			continue
		}
		o.mu.Lock()
		o.requests = append(o.requests, r)
		o.mu.Unlock()
	}
}

// at returns the requests to path so far.
func (o *oidcServer) at(path string) (all []oidcRequest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range o.requests {
		if r.Path == path {
			all = append(all, r)
		}
	}
	return all
}

// refreshes returns the refreshes so far. A refresh token that comes a second time, or is refused, fails the test.
func (o *oidcServer) refreshes(t *testing.T) (n int) {
	t.Helper()
	seen := make(map[any]bool)
	for _, r := range o.at("/token") {
		if r.Params["grant_type"] != "refresh_token" {
			continue
		}
		n++
		token := r.Params["refresh_token"]
		if seen[token] || r.Status != http.StatusOK {
			t.Errorf("refresh %d: used before: %v, status %d, %s", n, seen[token], r.Status, r.Answer.Error)
		}
		seen[token] = true
	}
	return n
}

// active asks the authorization server whether a token is good, as a server does (RFC 7662).
func (o *oidcServer) active(t *testing.T, token string) (active bool, audience string) {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.issuer+"/token/introspection",
		strings.NewReader(url.Values{"token": {token}}.Encode()))
	if err != nil {
		t.Error(err)
		return false, ""
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth("resource", "secret")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, "" // the test is ending
	}
	defer resp.Body.Close()
	var said struct {
		Active   bool
		Audience string `json:"aud"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
		t.Errorf("introspection answers with status %d: %v", resp.StatusCode, err)
	}
	return said.Active, said.Audience
}

// guard wraps the MCP server: it takes tokens that are good, and for it.
func (o *oidcServer) guard(t *testing.T, resource string, next http.Handler) http.Handler {
	const path = "/.well-known/oauth-protected-resource/mcp"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == path {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"resource": resource, "authorization_servers": []string{o.issuer},
				"scopes_supported": []string{"read"}})
			return
		}
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if active, audience := o.active(t, token); token == "" || !active || audience != resource {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="http://`+r.Host+path+`"`)
			http.Error(w, "sign in", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// TestAuthorizationServerFromNPM signs in, goes on with tokens that are renewed all the time, and signs out, at an authorization server
// that others wrote.
func TestAuthorizationServerFromNPM(t *testing.T) {
	t.Parallel()
	o := startOIDC(t, 5*time.Second) // so short that a token is renewed at each use
	home := newSignInHome(t, o.config)
	hub := home.hub(t)
	if st := hub.server(t, "s"); st.State != tool.ServerNeedsAuth {
		t.Fatalf("before the sign-in the server is %s", st.State)
	}
	if text, code := home.run(t, "login", "s"); code != exitOK || !strings.Contains(text, "mcp.s.echo") {
		t.Fatal("nobody is signed in")
	}
	eventually(t, "the hub takes the sign-in up", func() bool { return hub.server(t, "s").State == tool.ServerReady })
	for range 3 {
		if said := wireHTTP(t, hub.url+"/mcp", rev2026).result("mcp.s.echo", `{}`, ""); strings.Contains(said, `"isError":true`) {
			t.Errorf("a call fails: %s", said)
		}
	}

	resource := regexp.MustCompile(`http://\S+/mcp`).FindString(o.config)
	registered, asked, tokens := o.at("/reg"), o.at("/auth"), o.at("/token")
	if len(registered) != 1 || registered[0].Answer.Method != "none" || len(asked) != 1 {
		t.Fatalf("it registered %d times and asked %d times", len(registered), len(asked))
	}
	if p := asked[0].Params; p["code_challenge_method"] != "S256" || p["resource"] != resource || p["scope"] != "read offline_access" {
		t.Errorf("it asked for %v", p)
	}
	if p := tokens[0].Params; p["grant_type"] != "authorization_code" || p["code_verifier"] == "" || tokens[0].Answer.Refresh == "" {
		t.Errorf("its first request for a token was %v", p)
	}
	if n := o.refreshes(t); n < 3 {
		t.Errorf("the token was renewed %d times", n)
	}
	for _, r := range tokens {
		if r.Params["resource"] != resource {
			t.Errorf("a token was asked for with %v", r.Params)
		}
	}

	if text, code := home.run(t, "logout", "s"); code != exitOK || text != "s: signed out\n" {
		t.Error("it is not signed out")
	}
	tokens = o.at("/token")
	last := tokens[len(tokens)-1]
	for _, token := range []string{last.Answer.Access, last.Answer.Refresh} {
		if active, _ := o.active(t, token); active || token == "" {
			t.Error("a token is still good after logout")
		}
	}
	if r := o.at("/token/revocation"); len(r) != 1 || r[0].Status != http.StatusOK || r[0].Params["token"] != last.Answer.Refresh {
		t.Errorf("it revoked %v", r)
	}
	if said := wireHTTP(t, hub.url+"/mcp", rev2026).result("mcp.s.echo", `{}`, ""); !strings.Contains(said, "mcp-toolhub login s") {
		t.Errorf("a call without a sign-in says %s", said)
	}
}

// TestTwoHubsFromNPM: two hubs that share a sign-in and renew it at the same moment, 200 times, never lose it. The authorization server
// would end it if one refresh token came twice.
func TestTwoHubsFromNPM(t *testing.T) {
	t.Parallel()
	o := startOIDC(t, 5*time.Second)
	home := newSignInHome(t, o.config)
	if _, code := home.run(t, "login", "s"); code != exitOK {
		t.Fatal("nobody is signed in")
	}
	hubs := []*runningHub{home.hub(t), home.hub(t)}
	const wanted = 200
	for round := 0; round < 2*wanted && o.refreshes(t) < wanted && !t.Failed(); round++ {
		var both sync.WaitGroup
		for _, hub := range hubs {
			both.Go(func() {
				said, err := (&crasher{id: "s"}).call(hub, "echo", `{}`)
				if err != nil || strings.Contains(said, `"isError":true`) {
					t.Errorf("round %d: %v, %s", round, err, said)
				}
			})
		}
		both.Wait()
	}
	if n := o.refreshes(t); n < wanted {
		t.Errorf("the sign-in was renewed %d times", n)
	}
	ended := slices.ContainsFunc(hubs, func(h *runningHub) bool { return h.server(t, "s").State != tool.ServerReady })
	if signedIn := len(o.at("/auth")); ended || signedIn != 1 {
		t.Errorf("the sign-in is lost: %v, %d sign-ins", ended, signedIn)
	}
}
