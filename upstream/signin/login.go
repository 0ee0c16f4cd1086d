package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// Steps of a sign-in, as an Error names them.
const (
	StepDiscover = "find the authorization server"
	StepRegister = "register the hub there"
	StepListen   = "listen for the browser"
	StepAnswer   = "take the browser's answer"
	StepDevice   = "wait for the other device"
	StepAssert   = "read the token that stands for the hub"
	StepExchange = "exchange that token at the identity provider"
	StepToken    = "get a token"
	StepStore    = "keep the sign-in"
)

// Error says at which step a sign-in failed. Its text is fit to be shown.
type Error struct {
	Step   string
	Server string
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("sign in to %q: %s: %v", e.Server, e.Step, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Login is one sign-in by a person.
type Login struct {
	Store  *Store
	Server settings.Server
	Scopes []string // besides those that the server asks for

	// Visit shows the person an address to open. code is what is to be entered there; "" for nothing.
	Visit func(address, code string)

	// Ask asks the person for a client that they register by hand, with that redirect address; "" is
	// none. Nil: nobody can be asked.
	Ask func(ctx context.Context, issuer, redirect string) (id, secret string, err error)

	Device bool          // with a code, on another device, where the authorization server offers that
	Pasted <-chan string // the address that the browser ended at, where the person pastes it; or nil

	// where the browser comes back to; nil: to a listener on loopback that lasts as long as the
	// sign-in
	Callback *Callback
}

// Callback is a page to which browsers come back from the authorization server.
type Callback struct {
	Address string
	Answer  <-chan url.Values // the query that the browser of the sign-in has brought, once

	// Fixed says that the address stays the same, so that the client that is registered for it is kept
	// beside that of others.
	Fixed bool

	// Document is the address of a Client ID Metadata Document that names this page; "" where there is none.
	Document string
}

// attempt is a Login under way.
type attempt struct {
	*Login
	http *http.Client
	terms
	client   Client
	step     string
	redirect string // that the browser comes back to; "" for a sign-in on another device
	state    string // that it brings back
	answer   <-chan url.Values
	close    func() // ends the waiting for the browser

	// client was registered for this sign-in, or one before that failed: it is kept with the first
	// that does not
	registered bool
	fresh      bool // client was registered by this attempt
}

// Run signs in. It returns when that is done and kept, has failed, or ctx ends. With an error nothing is kept.
func (l *Login) Run(ctx context.Context) (Grant, error) {
	a := &attempt{Login: l}
	g, err := a.run(ctx)
	if err != nil {
		return Grant{}, &Error{a.step, l.Server.ID, err}
	}
	return g, nil
}

func (a *attempt) run(ctx context.Context) (g Grant, err error) {
	a.step = StepStore
	if err := a.Store.check(); err != nil {
		return g, err
	}
	a.step = StepDiscover
	if a.terms, a.http, err = discover(ctx, a.Server, a.Store.challenge(a.Server)); err != nil {
		return g, err
	}
	before, _, err := a.Store.Grant(a.Server)
	if err != nil {
		return g, err
	}
	a.scopes = union(union(a.scopes, before.Wanted), a.Scopes)
	if len(before.Wanted) > 0 { // what was granted before is still needed
		a.scopes = union(a.scopes, before.Scopes)
	}
	if slices.Contains(a.ScopesSupported, "offline_access") && len(a.scopes) > 0 {
		a.scopes = union(a.scopes, []string{"offline_access"}) // to be renewed without a person
	}
	a.Device = a.Device && a.DeviceEndpoint != ""
	a.close = func() {}
	defer func() { a.close() }()
	g, token, err := a.token(ctx)
	if errors.Is(err, errNoDevice) && a.AuthorizationEndpoint != "" {
		a.Device = false
		g, token, err = a.token(ctx)
	}
	if err != nil {
		return g, err
	}
	g.take(token, a.scopes)
	a.step = StepStore
	unlock, err := a.Store.lock(ctx, a.Server) // a renewal under way would put the sign-in before in its place
	if err != nil {
		return g, err
	}
	defer unlock()
	if !a.registered {
		return g, a.Store.put(a.Server, g, "", Client{})
	}
	return g, a.Store.put(a.Server, g, a.clientKey(), a.client)
}

// token gets a token, and the grant that it belongs to.
func (a *attempt) token(ctx context.Context) (g Grant, token *oauth2.Token, err error) {
	if !a.Device {
		if a.AuthorizationEndpoint == "" {
			return g, nil, fmt.Errorf("authorization server %s has no authorization_endpoint", shownText(a.Issuer))
		}
		a.step = StepListen
		if err := a.awaitBrowser(ctx); err != nil {
			return g, nil, err
		}
	}
	a.step = StepRegister
	if a.client, err = a.identity(ctx); err != nil {
		return g, nil, err
	}
	if g, err = a.grant(a.client); err != nil {
		return g, nil, err
	}
	if a.Device {
		token, err = a.byDevice(ctx, g)
	} else {
		token, err = a.byBrowser(ctx, g)
	}
	// An authorization server that has forgotten the client may show a page that leads nowhere: then no answer comes.
	abandoned := errors.Is(err, errNoAnswer) && !a.fresh && a.RegistrationEndpoint != ""
	refused := isRefused(err, "invalid_client", "unauthorized_client") &&
		(a.RegistrationEndpoint != "" || !errors.Is(err, errNoDevice))
	if (abandoned || refused) && a.Server.OAuth.ClientID == "" {
		err = errors.Join(err, a.Store.dismiss(a.clientKey()))
	}
	return g, token, err
}

// awaitBrowser makes the browser's answer come in until a.close is called.
func (a *attempt) awaitBrowser(ctx context.Context) error {
	a.state = rand.Text()
	if c := a.Callback; c != nil {
		a.redirect, a.answer = c.Address, c.Answer
		return nil
	}
	known, _, _ := a.Store.client(a.Issuer)
	answer := make(chan url.Values, 1)
	l, err := listen(a.Server.OAuth.Redirect, known.Redirect, a.state, answer)
	if err != nil {
		return err
	}
	a.redirect, a.answer = cmp.Or(a.Server.OAuth.Redirect, l.Address+CallbackPath), answer
	a.close = func() { l.Close(context.WithoutCancel(ctx)) }
	return nil
}

// clientKey is the key under which the client of this sign-in is kept. A listener's port changes,
// and the client with it.
func (a *attempt) clientKey() string {
	if c := a.Callback; c != nil && c.Fixed {
		return a.Issuer + clientMark + c.Address
	}
	return a.Issuer
}

// identity finds out as whom the hub signs in: as the entry says, by its Client ID Metadata
// Document, as it was registered before, or as it registers now, otherwise as the person says. It
// registers again for more scopes than before: "scope values that the client can use when
// requesting access tokens" (RFC 7591, section 2).
func (a *attempt) identity(ctx context.Context) (Client, error) {
	if a.Server.OAuth.ClientID != "" {
		return preregistered(a.Server.OAuth, a.TokenEndpointAuthMethodsSupported),
			a.Store.checkBound(a.Server, a.Issuer)
	}
	if c := a.Callback; c != nil && c.Document != "" && a.redirect != "" && a.ClientIDMetadataDocumentSupported {
		return Client{ID: c.Document, Method: methodNone, Redirect: a.redirect}, nil
	}
	redirect := a.redirect
	known, unused, ok := a.Store.client(a.clientKey())
	scopes := union(known.Scopes, a.scopes)
	if ok && (redirect == "" || known.Redirect == redirect) &&
		(len(scopes) == len(known.Scopes) || a.RegistrationEndpoint == "") {
		a.registered = unused
		return known, nil
	}
	if a.RegistrationEndpoint == "" {
		return a.asked(ctx)
	}
	meta := &oauthex.ClientRegistrationMetadata{ClientName: "mcp-toolhub", ApplicationType: "native",
		TokenEndpointAuthMethod: methodNone,
		GrantTypes:              []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		Scope: strings.Join(scopes, " ")}
	if a.Device {
		meta.GrantTypes = append(meta.GrantTypes, grantDevice)
	}
	meta.RedirectURIs = []string{cmp.Or(redirect, "http://127.0.0.1/callback")}
	if strings.HasPrefix(redirect, "https:") {
		meta.ApplicationType = "web" // "native" is for loopback addresses alone
	}
	if offered := a.TokenEndpointAuthMethodsSupported; len(offered) > 0 && !slices.Contains(offered, methodNone) {
		meta.TokenEndpointAuthMethod = preregistered(settings.OAuth{ClientSecret: "x"}, offered).Method
	}
	made, err := oauthex.RegisterClient(ctx, a.RegistrationEndpoint, meta, a.http)
	if err != nil {
		return Client{}, fmt.Errorf("%w; if it registers only clients that it knows, %s; or, if the server takes a "+
			"fixed token, give that in headers of its entry", shown(err), a.byHand())
	}
	c := Client{ID: made.ClientID, Secret: made.ClientSecret, Method: meta.TokenEndpointAuthMethod, Redirect: redirect,
		Until: made.ClientSecretExpiresAt, Scopes: scopes}
	if made.TokenEndpointAuthMethod != "" {
		c.Method = made.TokenEndpointAuthMethod
	}
	a.registered, a.fresh = true, true
	a.Store.remember(a.clientKey(), c)
	return c, nil
}

// asked returns the client that the person names. Like one that has registered itself, it is kept
// for the authorization server.
func (a *attempt) asked(ctx context.Context) (c Client, err error) {
	var o settings.OAuth
	if a.Ask != nil && a.redirect != "" {
		o.ClientID, o.ClientSecret, err = a.Ask(ctx, shownText(a.Issuer), a.redirect)
	}
	if err == nil && o.ClientID == "" {
		err = fmt.Errorf("%s lets no client register itself: %s", shownText(a.Issuer), a.byHand())
	}
	if err != nil {
		return c, err
	}
	c = preregistered(o, a.TokenEndpointAuthMethodsSupported)
	c.Redirect, c.ByHand, a.registered = a.redirect, true, true
	return c, nil
}

// byHand says how a person registers the hub, and where to enter what comes of it.
func (a *attempt) byHand() string {
	redirect, port := a.redirect, ""
	if a.Server.OAuth.Redirect == "" && !strings.HasPrefix(redirect, "https:") {
		if u, err := url.Parse(redirect); err == nil && u.Path == CallbackPath {
			port = u.Port()
		} else { // of a page that is elsewhere at the next start, or of no browser at all
			redirect, port = "http://127.0.0.1:PORT"+CallbackPath+" (any free port)", "PORT"
		}
		port = ", callback_port: " + port
	}
	return fmt.Sprintf("register an application there by hand, with the redirect address %s; then set oauth: "+
		"{client_id: …, client_secret: …%s} in mcpServers.%s of the config (no secret where you got none), and "+
		"sign in again",
		redirect, port, a.Server.ID)
}

// errNoAnswer means that nothing came back from the browser.
var errNoAnswer = errors.New("nobody has signed in")

// byBrowser lets the person sign in in a browser, which comes back with a code.
func (a *attempt) byBrowser(ctx context.Context, g Grant) (*oauth2.Token, error) {
	verifier := oauth2.GenerateVerifier()
	c := oauth2.Config{ClientID: a.client.ID, RedirectURL: a.redirect, Scopes: a.scopes,
		Endpoint: oauth2.Endpoint{AuthURL: a.AuthorizationEndpoint}}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier)}
	if a.resource != "" {
		options = append(options, oauth2.SetAuthURLParam("resource", a.resource))
	}
	if slices.Contains(a.scopes, "offline_access") {
		// OpenID Connect: without it there is no offline access
		options = append(options, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	a.step = StepAnswer
	a.Visit(c.AuthCodeURL(a.state, options...), "")
	var answer url.Values
	select {
	case answer = <-a.answer:
	case pasted := <-a.Pasted:
		u, err := url.Parse(strings.Trim(pasted, " \t\r\n\"'<>"))
		if err != nil || u.RawQuery == "" {
			return nil,
				errors.New("that is not the address that the browser ended at: copy it whole, with all that follows " +
					"the question mark")
		}
		answer = u.Query()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errNoAnswer, context.Cause(ctx))
	}
	code, err := a.codeIn(answer)
	if err != nil {
		return nil, err
	}
	a.step = StepToken
	asker, err := a.Store.asker(a.http, a.Server, g)
	if err != nil {
		return nil, err
	}
	return asker.token(ctx, map[string]string{"grant_type": "authorization_code", "code": code,
		"redirect_uri": a.redirect, "code_verifier": verifier})
}

// codeIn checks what the browser came back with, and returns the code. Nothing in an answer counts
// that is not from the authorization server that was asked: "clients MUST compare iss" (RFC 9207).
func (a *attempt) codeIn(answer url.Values) (string, error) {
	iss := answer.Get("iss")
	switch {
	case answer.Get("state") != a.state:
		return "", errors.New("the answer belongs to no sign-in that is under way here (unknown state): sign in " +
			"again, and open only the address that is shown")
	case iss == "" && a.AuthorizationResponseIssParameterSupported:
		return "", errors.New("the answer does not say who gave it (no iss), although the authorization server " +
			"promises that: sign in again")
	case iss != "" && iss != a.Issuer:
		return "", fmt.Errorf("the answer is from %q instead of %q: it is not used", shownText(iss),
			shownText(a.Issuer))
	case answer.Get("error") != "":
		return "", &refusal{code: answer.Get("error"), description: answer.Get("error_description")}
	case answer.Get("code") == "":
		return "", errors.New("the answer holds no code: sign in again")
	}
	return answer.Get("code"), nil
}

// byDevice shows the person a code to be entered on any device, and waits until that is done (RFC 8628).
func (a *attempt) byDevice(ctx context.Context, g Grant) (*oauth2.Token, error) {
	a.step = StepDevice
	asker, err := a.Store.asker(a.http, a.Server, g)
	if err != nil {
		return nil, err
	}
	params, err := asker.params()
	if err != nil {
		return nil, err
	}
	var options []oauth2.AuthCodeOption
	for name := range params {
		options = append(options, oauth2.SetAuthURLParam(name, params.Get(name)))
	}
	c := oauth2.Config{ClientID: a.client.ID, ClientSecret: a.client.Secret, Scopes: a.scopes,
		Endpoint: oauth2.Endpoint{DeviceAuthURL: a.DeviceEndpoint, TokenURL: a.TokenEndpoint, AuthStyle: asker.style()}}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, asker.sender())
	asked, err := c.DeviceAuth(ctx, options...)
	if err = shown(err); errors.As(err, new(*refusal)) {
		return nil, fmt.Errorf("%w: %w", errNoDevice, err)
	}
	if err != nil {
		return nil, err
	}
	if asked.DeviceCode == "" || asked.UserCode == "" {
		return nil, errors.New("the authorization server's answer holds no code")
	}
	if err := checkAddress(asked.VerificationURI); err != nil {
		return nil, fmt.Errorf("verification_uri: %w", err)
	}
	a.Visit(asked.VerificationURI, shownText(asked.UserCode))
	return asker.poll(ctx, asked)
}

// poll asks for the token of a device's code until the person has entered that. The client signs
// each request anew, which oauth2 does not.
func (a *asker) poll(ctx context.Context, asked *oauth2.DeviceAuthResponse) (*oauth2.Token, error) {
	if !asked.Expiry.IsZero() {
		limited, cancel := context.WithDeadline(ctx, asked.Expiry)
		defer cancel()
		ctx = limited
	}
	const slower = 5 * time.Second
	interval := cmp.Or(time.Duration(asked.Interval)*time.Second, slower)
	for {
		select {
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return nil, errCodeExpired
			}
			return nil, context.Cause(ctx)
		case <-time.After(interval):
		}
		t, err := a.token(ctx, map[string]string{"grant_type": grantDevice, "device_code": asked.DeviceCode})
		switch {
		case isRefused(err, "authorization_pending") || ctx.Err() != nil:
		case isRefused(err, "slow_down") || mayPass(err): // "the client MUST unilaterally reduce its polling frequency"
			interval += slower
		case isRefused(err, "expired_token"):
			return nil, errCodeExpired
		default:
			return t, err
		}
	}
}

// errNoDevice means that this client may not use device authorization. The metadata says only that others may.
var errNoDevice = errors.New("no code for another device")

var errCodeExpired = errors.New("nobody has entered the code before it expired: sign in again, and enter the code " +
	"that is shown then")

const grantDevice = "urn:ietf:params:oauth:grant-type:device_code"

// Logout forgets the sign-in to server and the client that the hub has registered for it, and
// revokes it where the authorization server can do that. revoked says whether it did. The sign-in
// is forgotten even if that fails, which err says then.
func (s *Store) Logout(ctx context.Context, server settings.Server) (was, revoked bool, err error) {
	g, ok, err := s.Grant(server)
	if err == nil && !ok {
		err = s.forget(server, "", "", false)
	}
	if err != nil || !ok {
		return false, false, err
	}
	unlock, err := s.lock(ctx, server) // a renewal under way would put the sign-in back
	if err != nil {
		return true, false, err
	}
	if g, _, err = s.Grant(server); err == nil {
		err = s.forget(server, "", "", !g.Client.ByHand)
	}
	unlock()
	if err != nil {
		return true, false, err
	}
	if g.RevokeURL == "" {
		return true, false, nil
	}
	g.Key = "" // to revoke a token takes no proof
	a, err := s.asker(newClient(g.Near), server, g)
	if err != nil {
		return true, false, err
	}
	if err := a.revoke(ctx, g.RevokeURL, cmp.Or(g.Refresh, g.Access)); err != nil {
		return true, false, fmt.Errorf("revoke the sign-in: %w", err)
	}
	return true, true, nil
}
