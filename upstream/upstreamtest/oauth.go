package upstreamtest

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// AuthServer is an authorization server that approves whoever asks. It rotates refresh tokens, and
// ends a sign-in when one is used twice. It protects the resource whose handler Guard wraps. Set
// the fields before it serves.
type AuthServer struct {
	Issuer   string // its own address
	Named    string // the address that the resource names; "" for Issuer
	Resource string // of the protected resource; what tokens must be asked for
	Lifetime time.Duration
	Scopes   []string // that the resource wants

	NoRegistration bool
	NoResource     bool   // refuses the parameter resource
	Assertion      string // that it takes for the grant jwt-bearer; "" for none
	Device         bool
	Metadata       map[string]any    // replaces members of its metadata; nil leaves one out
	Clients        map[string]string // secrets by id, of clients that are registered

	Bound bool   // tokens are bound to a key (DPoP), at the resource, too
	Nonce string // begins the nonces that proofs have to hold; "" for none

	// Documents reads Client ID Metadata Documents. Nil: there are none.
	Documents *http.Client

	// Intercept sees each request to the authorization server first, and returns true if it has answered.
	Intercept func(w http.ResponseWriter, r *http.Request) bool

	mu       sync.Mutex
	requests []AuthRequest
	codes    map[string]url.Values // what was asked for, by code
	grants   map[string]*authGrant // by access token
	refresh  map[string]*authGrant // by refresh token, used ones too
	devices  map[string]url.Values
	allowed  map[string]string // scopes by client, of those that have registered themselves
	failures int
	proofs   map[string]bool // that were used, by id
	nonces   int
	faults   []string
}

// AuthRequest is a request that an AuthServer has got.
type AuthRequest struct {
	Path string
	Form url.Values
}

type authGrant struct {
	scope    string
	resource string
	current  string // refresh token
	ends     time.Time
	revoked  bool
	key      string // that it is bound to
}

// Requests returns the requests to path so far.
func (a *AuthServer) Requests(path string) (all []AuthRequest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.requests {
		if r.Path == path {
			all = append(all, r)
		}
	}
	return all
}

// Failures counts the tokens that were refused with invalid_grant.
func (a *AuthServer) Failures() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.failures
}

// Revoke ends all sign-ins.
func (a *AuthServer) Revoke() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range a.grants {
		g.revoked = true
	}
}

// Expire makes all access tokens useless; refresh tokens stay.
func (a *AuthServer) Expire() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.grants)
}

func (a *AuthServer) metadata() map[string]any {
	m := map[string]any{"issuer": a.Issuer, "authorization_endpoint": a.Issuer + "/authorize",
		"token_endpoint":      a.Issuer + "/token",
		"revocation_endpoint": a.Issuer + "/revoke", "code_challenge_methods_supported": []string{"S256"},
		"authorization_response_iss_parameter_supported": true}
	if !a.NoRegistration {
		m["registration_endpoint"] = a.Issuer + "/register"
	}
	if a.Documents != nil {
		m["client_id_metadata_document_supported"] = true
	}
	if a.Bound {
		m["dpop_signing_alg_values_supported"] = []string{"ES256"}
	}
	if a.Device {
		m["device_authorization_endpoint"] = a.Issuer + "/device"
	}
	for name, value := range a.Metadata {
		if m[name] = value; value == nil {
			delete(m, name)
		}
	}
	return m
}

func (a *AuthServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	a.mu.Lock()
	a.requests = append(a.requests, AuthRequest{r.URL.Path, r.Form})
	a.mu.Unlock()
	if a.Intercept != nil && a.Intercept(w, r) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	issuer, _ := url.Parse(a.Issuer)
	switch strings.TrimPrefix(r.URL.Path, issuer.Path) {
	case "/.well-known/oauth-authorization-server" + issuer.Path, "/.well-known/oauth-authorization-server":
		answer(w, http.StatusOK, a.metadata())
	case "/authorize":
		a.authorize(w, r)
	case "/register":
		a.register(w, r)
	case "/device":
		code := rand.Text()
		put(&a.devices, code, r.Form)
		answer(w, http.StatusOK, map[string]any{"device_code": code, "user_code": "ABCD-EFGH",
			"verification_uri": a.Issuer + "/enter", "interval": 1, "expires_in": 600})
	case "/token":
		a.token(w, r)
	case "/revoke":
		if g := a.refresh[r.Form.Get("token")]; g != nil {
			g.revoked = true
		}
	default:
		http.NotFound(w, r)
	}
}

func put[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = v
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func (a *AuthServer) refuse(w http.ResponseWriter, code, why string) {
	if code == "invalid_grant" {
		a.failures++
	}
	answer(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": why})
}

func (a *AuthServer) register(w http.ResponseWriter, r *http.Request) {
	var asked map[string]any
	_ = json.NewDecoder(r.Body).Decode(&asked)
	id := "client-" + rand.Text()[:6]
	put(&a.Clients, id, "")
	scope, _ := asked["scope"].(string)
	put(&a.allowed, id, scope)
	asked["client_id"] = id
	answer(w, http.StatusCreated, asked)
}

func (a *AuthServer) authorize(w http.ResponseWriter, r *http.Request) {
	back, err := url.Parse(r.Form.Get("redirect_uri"))
	if a.Documents != nil && strings.HasPrefix(r.Form.Get("client_id"), "https://") {
		a.readDocument(r.Form.Get("client_id"), r.Form.Get("redirect_uri"))
	}
	if _, known := a.Clients[r.Form.Get("client_id")]; err != nil || !known ||
		r.Form.Get("code_challenge_method") != "S256" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	if allowed, registered := a.allowed[r.Form.Get("client_id")]; registered {
		for _, scope := range strings.Fields(r.Form.Get("scope")) {
			if !slices.Contains(strings.Fields(allowed), scope) {
				back.RawQuery = url.Values{"error": {"invalid_scope"}, "state": {r.Form.Get("state")},
					"iss": {a.Issuer}}.Encode()
				http.Redirect(w, r, back.String(), http.StatusFound)
				return
			}
		}
	}
	code := rand.Text()
	put(&a.codes, code, r.Form)
	back.RawQuery = url.Values{"code": {code}, "state": {r.Form.Get("state")}, "iss": {a.Issuer}}.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

// readDocument makes the client known that a document describes, if it has that id and comes back to that address.
func (a *AuthServer) readDocument(id, redirect string) {
	resp, err := a.Documents.Get(id)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	var said struct {
		ID        string   `json:"client_id"`
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	if json.NewDecoder(resp.Body).Decode(&said) == nil && said.ID == id && said.Method == "none" &&
		slices.Contains(said.Redirects, redirect) {
		put(&a.Clients, id, "")
	}
}

// client checks who asks for a token.
func (a *AuthServer) client(r *http.Request) bool {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.Form.Get("client_id"), r.Form.Get("client_secret")
	}
	want, known := a.Clients[id]
	return known && (secret == want || r.Form.Get("client_assertion") != "")
}

func (a *AuthServer) token(w http.ResponseWriter, r *http.Request) {
	form := r.Form
	if !a.client(r) {
		a.refuse(w, "invalid_client", "who are you?")
		return
	}
	if form.Get("resource") != a.Resource && !a.NoResource || a.NoResource && form.Has("resource") {
		a.refuse(w, "invalid_target", "resource "+form.Get("resource"))
		return
	}
	key := ""
	if a.Bound {
		var err error
		if key, err = a.proof(r, a.Issuer+"/token", ""); err != nil {
			a.unproved(w, a.Issuer+"/token", err)
			code := "invalid_dpop_proof"
			if errors.Is(err, errNonce) {
				code = err.Error()
			}
			a.refuse(w, code, "")
			return
		}
	}
	g := &authGrant{scope: form.Get("scope"), resource: form.Get("resource"), key: key}
	switch form.Get("grant_type") {
	case "authorization_code":
		asked, ok := a.codes[form.Get("code")]
		delete(a.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if !ok || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) ||
			asked.Get("redirect_uri") != form.Get("redirect_uri") ||
			asked.Get("resource") != form.Get("resource") {
			a.refuse(w, "invalid_grant", "the code is not valid")
			return
		}
		g.scope = asked.Get("scope")
	case "refresh_token":
		if g = a.refresh[form.Get("refresh_token")]; g == nil || g.revoked || g.current != form.Get("refresh_token") ||
			g.key != key {
			if g != nil {
				g.revoked = true // somebody has used it twice
			}
			a.refuse(w, "invalid_grant", "the refresh token is not valid")
			return
		}
	case "urn:ietf:params:oauth:grant-type:device_code":
		asked, ok := a.devices[form.Get("device_code")]
		if !ok {
			a.refuse(w, "authorization_pending", "")
			return
		}
		g.scope = asked.Get("scope")
	case "client_credentials":
	case "urn:ietf:params:oauth:grant-type:jwt-bearer":
		if form.Get("assertion") == "" || form.Get("assertion") != a.Assertion {
			a.refuse(w, "invalid_grant", "the assertion "+form.Get("assertion")+" is not valid")
			return
		}
	default:
		a.refuse(w, "unsupported_grant_type", "")
		return
	}
	made := map[string]any{"access_token": "access-" + rand.Text(), "token_type": "Bearer", "scope": g.scope}
	if a.Bound {
		made["token_type"] = "DPoP"
	}
	if a.Lifetime > 0 {
		g.ends = time.Now().Add(a.Lifetime)
		made["expires_in"] = int(a.Lifetime.Seconds())
	}
	if kind := form.Get("grant_type"); kind != "client_credentials" && !strings.HasSuffix(kind, "jwt-bearer") {
		g.current = "refresh-" + rand.Text()
		put(&a.refresh, g.current, g)
		made["refresh_token"] = g.current
	}
	put(&a.grants, made["access_token"].(string), g)
	answer(w, http.StatusOK, made)
}

// Guard wraps the protected resource. Its metadata is at the well-known path.
func (a *AuthServer) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin := "http://" + r.Host
		if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
			answer(w, http.StatusOK, map[string]any{"resource": a.Resource,
				"authorization_servers": []string{cmp.Or(a.Named, a.Issuer)},
				"scopes_supported":      a.Scopes})
			return
		}
		a.mu.Lock()
		g, challenge := a.grants[a.bearer(r)], "Bearer "
		if a.Bound {
			challenge = "DPoP "
		}
		if a.Bound && g != nil {
			if key, err := a.proof(r, origin+r.URL.Path, a.bearer(r)); err != nil || key != g.key {
				a.unproved(w, origin+r.URL.Path, cmp.Or(err, errors.New("the proof has another key than the token")))
				if g = nil; errors.Is(err, errNonce) {
					challenge += `error="use_dpop_nonce", `
				}
			}
		}
		good := g != nil && !g.revoked && (g.ends.IsZero() || time.Now().Before(g.ends))
		missing := good && slices.ContainsFunc(a.Scopes,
			func(s string) bool { return !slices.Contains(strings.Fields(g.scope), s) })
		wanted := strings.Join(a.Scopes, " ")
		a.mu.Unlock()
		switch {
		case !good:
			w.Header().Set("WWW-Authenticate",
				challenge+`resource_metadata="`+origin+`/.well-known/oauth-protected-resource/mcp", scope="`+wanted+`"`)
			http.Error(w, "sign in", http.StatusUnauthorized)
		case missing:
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+wanted+`"`)
			http.Error(w, "more", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// Want makes the resource want these scopes from now on.
func (a *AuthServer) Want(scopes ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.Scopes = scopes
}

// Approve returns the code of a device at which somebody has signed in.
func (a *AuthServer) Approve(scope string) (deviceCode string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	deviceCode = rand.Text()
	put(&a.devices, deviceCode, url.Values{"scope": {scope}})
	return deviceCode
}

// ForgetClients makes all clients unknown.
func (a *AuthServer) ForgetClients() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.Clients)
}
