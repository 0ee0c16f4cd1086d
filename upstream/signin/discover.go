package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// metadata is that of an authorization server.
type metadata struct {
	oauthex.AuthServerMeta
	DeviceEndpoint string   `json:"device_authorization_endpoint"`
	ProofAlgs      []string `json:"dpop_signing_alg_values_supported"`
}

// terms say where the hub signs in to a server, and what for.
type terms struct {
	metadata
	resource string   // the value of the parameter of that name; "" leaves it out
	scopes   []string // nil leaves them to the authorization server
	near     bool     // the server is in this network, so its authorization server may be, too
	bound    bool     // tokens are to be bound to a key (DPoP)
}

// challenge is what a server says where it wants to know who calls.
type challenge struct {
	metadata string   // resource_metadata
	scopes   []string // scope
	code     string   // error
	bearer   bool     // it takes tokens that whoever has them can use
	bound    bool     // it takes tokens that are bound to a key
}

// Bounds of what a server can make the hub remember, and ask for.
const (
	maxScopes = 100
	maxScope  = 200 // bytes
)

// challengeOf reads WWW-Authenticate.
func challengeOf(h http.Header) (c challenge, found bool) {
	all, err := oauthex.ParseWWWAuthenticate(h.Values("WWW-Authenticate"))
	for _, one := range all {
		switch one.Scheme {
		case "bearer":
			c.bearer = true
		case "dpop":
			c.bound = true
		default:
			continue
		}
		found = err == nil
		c.metadata, c.code = cmp.Or(c.metadata, one.Params["resource_metadata"]), cmp.Or(c.code, one.Params["error"])
		if scopes := scopesIn(one.Params["scope"]); len(c.scopes) == 0 {
			c.scopes = slices.DeleteFunc(scopes[:min(len(scopes), maxScopes)],
				func(scope string) bool { return len(scope) > maxScope })
		}
	}
	return c, found
}

// MissingScopes returns the scopes for lack of which a server has refused a request; "" where that is not what it says.
func MissingScopes(h http.Header) string {
	if c, _ := challengeOf(h); c.code == "insufficient_scope" {
		return cmp.Or(strings.Join(c.scopes, " "), c.code)
	}
	return ""
}

// ask sends the server a request without a token, and returns its challenge, if there is one. ping
// changes nothing at the server. near says whether the server is in this network: the connection
// that brought the answer tells. What its name resolves to may be different each time.
func ask(ctx context.Context, client *http.Client, server settings.Server) (c challenge, found, near bool, err error) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	method, body := http.MethodPost, strings.NewReader(ping)
	if server.Transport == settings.SSE {
		method, body = http.MethodGet, strings.NewReader("")
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		at, err := netip.ParseAddrPort(c.Conn.RemoteAddr().String())
		near = err == nil && isInside(at.Addr())
	}})
	req, err := http.NewRequestWithContext(ctx, method, server.URL, body)
	if err != nil {
		return c, false, false, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range server.Headers {
		req.Header.Set(name, value)
	}
	asker := *client
	// as calls do: many servers send /mcp to /mcp/
	asker.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if req.Method != method {
			return notFollowed(req)
		}
		return sameOrigin(req, via)
	}
	resp, err := asker.Do(req)
	if err != nil {
		return c, false, false, shown(err)
	}
	defer resp.Body.Close()
	c, found = challengeOf(resp.Header)
	return c, found, near, nil
}

// discover finds out where to sign in to the server, and returns the client for that. before is the
// challenge to an earlier request: some servers answer all but calls to everybody.
func discover(
	ctx context.Context, server settings.Server, before http.Header,
) (t terms, client *http.Client, err error) {
	if err := checkAddress(server.URL); err != nil {
		return t, nil, fmt.Errorf("the server's url: %w", err)
	}
	asked, found, near, err := ask(ctx, newClient(true), server) // the entry names the server, wherever it is
	if err != nil {
		return t, nil, err
	}
	if !found {
		asked, _ = challengeOf(before)
	}
	client = newClient(near)
	resource, err := resourceOf(ctx, client, server.URL, asked.metadata)
	if err != nil {
		return t, nil, err
	}
	issuers, legacy := resource.AuthorizationServers, false
	if len(issuers) == 0 { // revision 2025-03-26: the server's own origin
		u, _ := url.Parse(server.URL)
		issuers, legacy = []string{u.Scheme + "://" + u.Host}, true
	}
	named := issuers[:min(len(issuers), 4)]
	if server.OAuth.Issuer != "" {
		issuers, legacy = []string{server.OAuth.Issuer}, false
	}
	var faults []error
	for _, issuer := range issuers[:min(len(issuers), 4)] {
		t.metadata, err = issuerAt(ctx, client, issuer, legacy)
		for i := 0; i < len(named) && errors.Is(err, errNoMetadata) && server.OAuth.Issuer != ""; i++ {
			if at, fault := metadataOf(ctx, client, named[i], issuer); fault == nil { // the entry vouches for the pair
				t.metadata, err = at, nil
			}
		}
		if errors.Is(err, errNoMetadata) && server.OAuth.Issuer != "" && server.OAuth.AssumePKCE {
			t.metadata, err = oldest(issuer), nil
		}
		if err == nil {
			err = check(t.metadata, server.OAuth.AssumePKCE || server.OAuth.Machine) // a machine has no code to protect
		}
		if err == nil {
			break
		}
		faults = append(faults, err)
	}
	if err != nil {
		return t, nil, errors.Join(faults...)
	}
	if must := resource.DPOPBoundAccessTokensRequired || !asked.bearer; asked.bound ||
		resource.DPOPBoundAccessTokensRequired {
		if t.bound = slices.Contains(t.ProofAlgs, proofAlg); must && !t.bound {
			return t, nil,
				fmt.Errorf("the server wants tokens that are bound to a key (DPoP), and authorization server %s "+
					"does not say that it makes them with %s", shownText(t.Issuer), proofAlg)
		}
	}
	t.near, t.resource, t.scopes = near, resource.Resource, resource.ScopesSupported
	if len(asked.scopes) > 0 {
		t.scopes = asked.scopes
	}
	if len(server.OAuth.Scopes) > 0 {
		t.scopes = server.OAuth.Scopes
	}
	switch server.OAuth.Resource {
	case "":
	case settings.OmitResource:
		t.resource = ""
	default:
		t.resource = server.OAuth.Resource
	}
	return t, client, nil
}

// resourceOf reads what the server says of itself as a protected resource (RFC 9728), at the
// address that its challenge names, otherwise at the well-known ones. A server of 2025-03-26 says
// nothing.
func resourceOf(
	ctx context.Context, client *http.Client, server, named string,
) (oauthex.ProtectedResourceMetadata, error) {
	u, err := url.Parse(server)
	if err != nil {
		return oauthex.ProtectedResourceMetadata{}, err
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	origin := u.Scheme + "://" + u.Host
	places := []string{origin + wellKnown + strings.TrimSuffix(u.EscapedPath(), "/"), origin + wellKnown}
	if named != "" {
		places = append([]string{named}, places...)
	}
	var fault error // of the address in the challenge
	for _, place := range slices.Compact(places) {
		var m oauthex.ProtectedResourceMetadata
		err := getJSON(ctx, client, place, &m)
		switch {
		case err != nil && place == named && checkAddress(place) == nil && !errors.Is(err, errAbsent):
			return m, fmt.Errorf("the server's metadata: %w", err)
		case err != nil && place == named: // it leads nowhere
			fault = fmt.Errorf("the server's metadata: %w", err)
			continue
		case err != nil:
			continue // many servers answer unknown paths with a page
		case !covers(m.Resource, u):
			return m,
				fmt.Errorf("the metadata at %s is for another resource, %q: a token for that one is not for this server",
					secret.URL(place), shownText(m.Resource))
		}
		return m, nil
	}
	if fault == nil {
		fault = ctx.Err()
	}
	return oauthex.ProtectedResourceMetadata{Resource: origin + u.EscapedPath()}, fault
}

// covers reports whether the server at u is the resource, or a part of it. A query in the resource
// is one that the server has, too.
func covers(resource string, u *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || r.Scheme != u.Scheme || !strings.EqualFold(r.Host, u.Host) ||
		r.RawQuery != "" && r.RawQuery != u.RawQuery {
		return false
	}
	within, of := path.Clean("/"+u.Path), path.Clean("/"+r.Path)
	return within == of || of == "/" || strings.HasPrefix(within, of+"/")
}

// errNoMetadata: an authorization server says nothing of itself.
var errNoMetadata = errors.New("it has no metadata: if the server takes a fixed token, give that in headers of its " +
	"entry; if its authorization server is elsewhere, set oauth.issuer; if you know that it is there, and takes PKCE, " +
	"set oauth: {issuer: …, pkce: assume}")

// oldest is an authorization server without metadata whose entry vouches for it: "MCP clients MUST
// use the following default endpoint paths relative to the authorization base URL" (2025-03-26).
func oldest(issuer string) (m metadata) {
	u, _ := url.Parse(issuer) // issuerAt has read it
	origin := u.Scheme + "://" + u.Host
	m.Issuer, m.AuthorizationEndpoint, m.TokenEndpoint, m.RegistrationEndpoint = issuer, origin+"/authorize",
		origin+"/token", origin+"/register"
	return m
}

// issuerAt reads the metadata of an authorization server (RFC 8414, OpenID Connect Discovery). It
// counts only if it names that issuer itself. legacy: the server's origin stands in for an issuer,
// and may name another one, which is then asked itself.
func issuerAt(ctx context.Context, client *http.Client, issuer string, legacy bool) (metadata, error) {
	m, err := metadataOf(ctx, client, issuer, issuer)
	var other *otherIssuerError
	if !legacy || !errors.As(err, &other) {
		return m, err
	}
	m, fault := issuerAt(ctx, client, other.named, false)
	if errors.Is(fault, errNoMetadata) {
		fault = err
	}
	return m, fault
}

// otherIssuerError says that the metadata of an authorization server names another issuer.
type otherIssuerError struct{ place, named string }

func (e *otherIssuerError) Error() string {
	return fmt.Sprintf("%s is the metadata of another issuer, %q: if the documentation of the server says that this is "+
		"right, set oauth: {issuer: %q} in its entry", secret.URL(e.place), shownText(e.named), shownText(e.named))
}

// metadataOf reads the metadata of the authorization server at an address, which has to name this issuer.
func metadataOf(ctx context.Context, client *http.Client, address, issuer string) (metadata, error) {
	u, err := url.Parse(address)
	if err != nil || checkAddress(address) != nil {
		return metadata{}, fmt.Errorf("authorization server %q: %w", shownText(address),
			errors.Join(err, checkAddress(address)))
	}
	origin, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	const oauth, openid = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
	places := []string{origin + oauth + path, origin + openid + path}
	if path != "" {
		places = append(places, origin+path+openid, origin+path+oauth)
	}
	var fault error
	for _, place := range places {
		var m metadata
		err := getJSON(ctx, client, place, &m)
		switch {
		case err != nil:
		case sameIssuer(m.Issuer, issuer):
			return m, nil
		case m.Issuer == "":
			err = fmt.Errorf("the metadata at %s names no issuer", secret.URL(place))
		default:
			err = &otherIssuerError{place, m.Issuer}
		}
		if ctx.Err() != nil {
			return m, ctx.Err()
		}
		if errors.Is(err, errSilent) { // the other addresses are its own, too
			fault = err
			break
		}
		if fault == nil || errors.Is(fault, errAbsent) || errors.As(err, new(*otherIssuerError)) {
			fault = err
		}
	}
	if errors.Is(fault, errAbsent) {
		fault = errNoMetadata
	}
	return metadata{}, fmt.Errorf("authorization server %s: %w", hidden.Line(secret.URL(address)), fault)
}

// check refuses metadata that cannot be used safely.
func check(m metadata, assumePKCE bool) error {
	methods := m.CodeChallengeMethodsSupported
	switch {
	case len(methods) == 0 && !assumePKCE:
		return fmt.Errorf("authorization server %s does not say that it takes PKCE, which protects the code: "+
			"if its documentation says so, set oauth: {pkce: assume}", shownText(m.Issuer))
	case len(methods) > 0 && !slices.Contains(methods, "S256"):
		return fmt.Errorf("authorization server %s takes PKCE only with %s, and the hub uses nothing weaker than S256",
			shownText(m.Issuer), shownText(strings.Join(methods, ", ")))
	}
	var faults []error
	for _, e := range []struct{ name, address string }{{"token_endpoint", m.TokenEndpoint},
		{"authorization_endpoint", m.AuthorizationEndpoint},
		{"registration_endpoint", m.RegistrationEndpoint}, {"revocation_endpoint", m.RevocationEndpoint},
		{"device_authorization_endpoint", m.DeviceEndpoint}} {
		if e.address == "" && e.name != "token_endpoint" {
			continue
		}
		if err := checkAddress(e.address); err != nil {
			faults = append(faults, fmt.Errorf("%s of %s: %w", e.name, shownText(m.Issuer), err))
		}
	}
	return errors.Join(faults...)
}
