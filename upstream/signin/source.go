package signin

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

const (
	// A token is renewed when a fifth of its time is left, and at most earlyMost before its end. Calls
	// go on with the old one meanwhile.
	earlyPart = 5
	earlyMost = 5 * time.Minute

	skew      = 10 * time.Second // by which clocks may differ: a token that ends so soon has ended
	renewTime = 30 * time.Second // for one renewal, with the wait for another process
	// after a renewal, before the next one that is not needed, or is because the new token was refused
	renewPause = 10 * time.Second
)

// NeededError says that somebody has to sign in before a server can be used.
type NeededError struct{ Why string }

func (e *NeededError) Error() string { return e.Why }

// Source hands out the access token of one server. It renews it early, once for all who wait, and
// not bound to the request that began that. It is safe for concurrent use.
type Source struct {
	store  *Store
	server settings.Server

	mu     sync.Mutex
	flight *flight   // a renewal under way, or nil
	last   time.Time // when the last renewal ended

	// Only the renewal under way uses these.
	http     *http.Client // nil until it is needed
	unsaved  *Grant       // renewed, and could not be kept
	replaces string       // the access token that unsaved is in place of

	prover atomic.Pointer[prover] // of the latest grant with a key; nil before
}

// flight is one renewal. Its fields are set before done is closed.
type flight struct {
	done  chan struct{}
	grant Grant
	err   error
}

// Source returns the source of the tokens for server.
func (s *Store) Source(server settings.Server) *Source { return &Source{store: s, server: server} }

// Close waits for a renewal that is under way: a token that was made anew and is not kept is lost.
func (s *Source) Close() {
	s.mu.Lock()
	f := s.flight
	s.mu.Unlock()
	if f != nil {
		<-f.done
	}
}

// Token returns the access token for the server; "" where nobody has signed in. The error is a
// *NeededError where somebody has to sign in again.
func (s *Source) Token(ctx context.Context) (string, error) {
	g, err := s.current(ctx)
	return g.Access, err
}

// Authorize adds the access token to a request to the server, and returns it, as Token does. Where
// it is bound to a key, a proof for this request goes with it.
func (s *Source) Authorize(req *http.Request) (token string, err error) {
	g, err := s.current(req.Context())
	if err != nil || g.Access == "" {
		return "", err
	}
	if !g.Bound {
		req.Header.Set("Authorization", "Bearer "+g.Access)
		return g.Access, nil
	}
	p := s.prover.Load()
	if p == nil || p.text != g.Key { // while the key is the same, nonces are kept
		if p, err = proverOf(g.Key); err != nil {
			return "", err
		}
		s.prover.Store(p)
	}
	req.Header.Set("Authorization", typeDPoP+" "+g.Access)
	return g.Access, p.prove(req, g.Access)
}

// Covers reports whether the access token is for that address, too: one in the resource of the
// sign-in. Where the entry of the server says what the resource is called, its URL is the resource.
func (s *Source) Covers(u *url.URL) bool {
	g, ok, err := s.store.Grant(s.server)
	if err != nil || !ok {
		return err == nil
	}
	resource := g.Resource
	if resource == "" || s.server.OAuth.Resource != "" {
		resource = s.server.URL
	}
	return covers(resource, u)
}

// current returns the grant whose access token is to be sent now; one without a token where nobody has signed in.
func (s *Source) current(ctx context.Context) (Grant, error) {
	g, ok, err := s.store.Grant(s.server)
	if err != nil {
		return Grant{}, err
	}
	if !ok && !s.server.OAuth.Machine {
		if why := s.store.Ended(s.server); why != "" {
			return Grant{}, &NeededError{why}
		}
		return Grant{}, nil
	}
	now := time.Now()
	if ok && (g.Expires.IsZero() || now.Add(skew).Before(g.Expires)) {
		early := min(g.Expires.Sub(g.Issued)/earlyPart, earlyMost)
		if !g.Expires.IsZero() && g.Expires.Sub(now) < early && s.renewable(g) && s.mayRenew() {
			s.renew(ctx, g)
		}
		return g, nil
	}
	if !s.renewable(g) {
		return Grant{}, &NeededError{"the sign-in has ended"}
	}
	return s.wait(ctx, s.renew(ctx, g))
}

// renewable reports whether there is a way to another token without a person.
func (s *Source) renewable(g Grant) bool { return g.Refresh != "" || s.server.OAuth.Machine }

// mayRenew reports whether the last renewal is long enough ago.
func (s *Source) mayRenew() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.last) > renewPause
}

// Secrets returns the tokens in use, for whoever keeps them out of texts.
func (s *Source) Secrets() (all []string) {
	if file := s.server.OAuth.AssertionFile; file != "" {
		if token, err := readAssertion(file); err == nil {
			all = append(all, token)
		}
	}
	g, ok, err := s.store.Grant(s.server)
	if err != nil || !ok {
		return all
	}
	return append(all, g.Access, g.Refresh, g.Client.Secret)
}

// Status says how the hub is signed in; nil where it is not. Texts of others pass through show.
func (s *Source) Status(show func(string) string) *tool.SignIn {
	g, ok, err := s.store.Grant(s.server)
	if err != nil || !ok {
		return nil
	}
	return g.Status(s.renewable(g), show)
}

// Status shows a sign-in to a person. Texts of others pass through show.
func (g Grant) Status(renews bool, show func(string) string) *tool.SignIn {
	st := &tool.SignIn{Issuer: show(g.Issuer), Since: g.Since, Renews: renews, Scopes: shownTexts(g.Scopes, show),
		Wanted: shownTexts(g.Wanted, show)}
	if !g.Expires.IsZero() {
		st.Expires = &g.Expires
	}
	return st
}

func shownTexts(texts []string, show func(string) string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = show(text)
	}
	return out
}

// Refused takes note that the server has refused a request with that token, and reports whether
// there is another token now with which it is to be sent once more.
func (s *Source) Refused(req *http.Request, token string, status int, h http.Header) (again bool) {
	ctx := req.Context()
	asked, _ := challengeOf(h)
	if asked.code == nonceCode {
		p := s.prover.Load()
		return p != nil && p.learn(req.URL, h)
	}
	g, ok, err := s.store.Grant(s.server)
	switch {
	case err != nil || token == "":
		return false
	case status == http.StatusForbidden && asked.code == "insufficient_scope":
		granted := len(union(g.Scopes, asked.scopes)) == len(g.Scopes)
		if granted && ok && g.Access != token { // for another request, or by a person, since this one was sent
			return true
		}
		err := s.store.want(s.server, asked.scopes)
		if err != nil || !s.server.OAuth.Machine || granted {
			return false
		}
		g.Wanted = union(g.Wanted, asked.scopes)
	case status != http.StatusUnauthorized:
		return false
	case ok && g.Access != token:
		return true
	case !ok || !s.mayRenew(): // a token as new as that is not what is wrong
		return false
	}
	if !s.renewable(g) {
		return false
	}
	next, err := s.wait(ctx, s.renew(ctx, g))
	return err == nil && next.Access != token
}

// Challenged keeps the challenge to a call, for the next sign-in: the server may answer everything else to everybody.
func (s *Source) Challenged(h http.Header) {
	if _, ok, err := s.store.Grant(s.server); err == nil && !ok {
		_ = s.store.wantsSignIn(s.server, h) // without it, the sign-in asks the server
	}
}

// wait waits for a renewal.
func (s *Source) wait(ctx context.Context, f *flight) (Grant, error) {
	select {
	case <-f.done:
		return f.grant, f.err
	case <-ctx.Done():
		return Grant{}, ctx.Err()
	}
}

// renew begins a renewal of old, unless one is under way, and returns it.
func (s *Source) renew(ctx context.Context, old Grant) *flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight != nil {
		return s.flight
	}
	f := &flight{done: make(chan struct{})}
	s.flight = f
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewTime)
	go func() {
		defer cancel()
		f.grant, f.err = s.renewed(ctx, old)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.flight, s.last = nil, time.Now()
		close(f.done)
	}()
	return f
}

// renewed makes another token in place of old, unless another process has done so.
func (s *Source) renewed(ctx context.Context, old Grant) (Grant, error) {
	unlock, err := s.store.lock(ctx, s.server)
	if err != nil {
		return Grant{}, err
	}
	defer unlock()
	g, ok, err := s.store.Grant(s.server)
	switch {
	case err != nil:
		return Grant{}, err
	case ok && g.Access != old.Access:
		return g, nil
	case !ok && !s.server.OAuth.Machine:
		return Grant{}, &NeededError{"somebody has signed out"}
	}
	before := g.Access
	if s.replaces != before {
		s.unsaved = nil // somebody has signed in, or renewed the token, since
	}
	if s.unsaved == nil {
		if s.server.OAuth.Machine {
			g, err = s.machine(ctx, g, union(g.Scopes, old.Wanted))
		} else {
			err = s.refresh(ctx, &g)
		}
		if err != nil {
			return Grant{}, err
		}
		s.unsaved, s.replaces = &g, before
	}
	if err := s.store.put(s.server, *s.unsaved, "", Client{}); err != nil {
		return Grant{}, err
	}
	g, s.unsaved = *s.unsaved, nil
	return g, nil
}

// refresh exchanges the refresh token of g. A grant that the authorization server does not know any more is forgotten.
func (s *Source) refresh(ctx context.Context, g *Grant) error {
	if s.http == nil {
		s.http = newClient(g.Near)
	}
	a, err := s.store.asker(s.http, s.server, *g)
	if err != nil {
		return err
	}
	grant := map[string]string{"grant_type": "refresh_token", "refresh_token": g.Refresh}
	t, err := a.token(ctx, grant)
	if isRefused(err, "invalid_request", "invalid_scope") && len(g.Asked) > 0 { // Entra wants to be told the scope again
		grant["scope"] = strings.Join(g.Asked, " ")
		t, err = a.token(ctx, grant)
	}
	said := (*refusal)(nil)
	passes := errors.As(err, &said) && said.passes
	dead := isRefused(err, "invalid_client", "unauthorized_client") && s.server.OAuth.ClientID == ""
	// GitHub's word is the last one
	if !passes && (dead || isRefused(err, "invalid_grant", "invalid_token", "bad_refresh_token")) {
		why := "the sign-in has ended: " + err.Error()
		return errors.Join(&NeededError{why}, s.store.forget(s.server, g.Refresh, why, dead))
	}
	if err != nil { // also a refusal in other words: the sign-in stays, and the next renewal may succeed
		return fmt.Errorf("renew the sign-in: %w", err)
	}
	g.take(t, nil)
	return nil
}

// machine signs the hub in as itself: with client credentials, or with a token that stands for it.
func (s *Source) machine(ctx context.Context, before Grant, scopes []string) (Grant, error) {
	t, client, err := discover(ctx, s.server, nil)
	if err != nil {
		return before, &Error{StepDiscover, s.server.ID, err}
	}
	if err := s.store.checkBound(s.server, t.Issuer); err != nil {
		return before, &Error{StepRegister, s.server.ID, err}
	}
	c := preregistered(s.server.OAuth, t.TokenEndpointAuthMethodsSupported)
	g, err := t.grant(c)
	if err != nil {
		return before, err
	}
	if before.ID != "" {
		g.ID, g.Since = before.ID, before.Since
	}
	scopes = union(t.scopes, scopes)
	grant := map[string]string{"grant_type": "client_credentials", "scope": strings.Join(scopes, " ")}
	if o := s.server.OAuth; o.AssertionFile != "" {
		grant["grant_type"] = grantAssertion
		if grant["assertion"], err = readAssertion(o.AssertionFile); err != nil {
			return before, &Error{StepAssert, s.server.ID, err}
		}
		if o.Provider.Issuer != "" {
			if grant["assertion"], err = exchange(ctx, o, t, grant["assertion"], grant["scope"]); err != nil {
				return before, &Error{StepExchange, s.server.ID, err}
			}
		}
	}
	a, err := s.store.asker(client, s.server, g)
	if err != nil {
		return before, err
	}
	made, err := a.token(ctx, grant)
	if err != nil {
		return before, &Error{StepToken, s.server.ID, err}
	}
	g.take(made, scopes)
	return g, nil
}

// grant is the beginning of a sign-in under these terms.
func (t terms) grant(c Client) (g Grant, err error) {
	g = Grant{ID: rand.Text(), Issuer: t.Issuer, Resource: t.resource, TokenURL: t.TokenEndpoint,
		RevokeURL: t.RevocationEndpoint, Client: c,
		Near: t.near, Since: time.Now()}
	if t.bound {
		g.Key, err = newProofKey()
	}
	return g, err
}

// asker returns what asks for tokens of g.
func (s *Store) asker(client *http.Client, server settings.Server, g Grant) (*asker, error) {
	if server.OAuth.ClientID != "" {
		g.Client.Secret = server.OAuth.ClientSecret
	}
	a := &asker{http: client, o: server.OAuth, issuer: g.Issuer, tokenURL: g.TokenURL, resource: g.Resource,
		client: g.Client,
		lasts:  g.Expires.Sub(g.Issued)}
	if g.Key == "" {
		return a, nil
	}
	var err error
	a.prover, err = proverOf(g.Key)
	return a, err
}

// lock lets one process at a time renew the token of this server, or change who is signed in there.
// Others are not held up.
func (s *Store) lock(ctx context.Context, server settings.Server) (unlock func(), err error) {
	digest := sha256.Sum256([]byte(keyOf(server)))
	path := filepath.Join(filepath.Dir(s.file), FileName+"-"+hex.EncodeToString(digest[:8]))
	for {
		unlock, err = statefile.Lock(path)
		if err == nil || ctx.Err() != nil || errors.As(err, new(*fs.PathError)) {
			return unlock, err
		}
	}
}
