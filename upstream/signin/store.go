package signin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// FileName is the name of a store's file in the state directory. Its key stands beside it, with ".key" added.
const FileName = "sign-ins"

// Store keeps sign-ins in one sealed file, which the hubs of a state directory share. It reads the
// file again when another process has written it. It is safe for concurrent use.
type Store struct {
	file string

	mu   sync.Mutex
	ring *ring       // where the key is; nil: beside the file
	info fs.FileInfo // of the file when it was read; nil where there was none
	held *contents   // nil before the first reading; never changed

	unused map[string]Client // registered for sign-ins that have not succeeded yet, as contents.Clients
}

// contents is what the file holds.
type contents struct {
	Grants  map[string]Grant  `json:"grants"`  // by keyOf
	Clients map[string]Client `json:"clients"` // that the hub has registered, by issuer; see clientMark

	// Ended says, by keyOf, why there is no sign-in any more where an authorization server has ended it.
	Ended map[string]string `json:"ended,omitempty"`

	// Asked has, by keyOf, the WWW-Authenticate of the last call that wanted a sign-in where there was none.
	Asked map[string][]string `json:"asked,omitempty"`

	// Bound has the issuers of clients that entries name, by boundKey.
	Bound map[string]string `json:"bound,omitempty"`
}

// newContents returns what an empty file holds.
func newContents() *contents {
	return &contents{Grants: make(map[string]Grant), Clients: make(map[string]Client), Ended: make(map[string]string),
		Asked: make(map[string][]string), Bound: make(map[string]string)}
}

// Client is what the hub is to an authorization server.
type Client struct {
	ID       string    `json:"id"`
	Secret   string    `json:"secret,omitempty"`
	Method   string    `json:"method"`             // of signing in at the token endpoint, as metadata has it
	Redirect string    `json:"redirect,omitempty"` // registered for; "" for a client that the entry names
	ByHand   bool      `json:"by_hand,omitempty"`  // a person has registered and entered it
	Until    time.Time `json:"until,omitzero"`     // when the secret ends
	Scopes   []string  `json:"scopes,omitempty"`   // registered for
}

// StoreError says that the sign-ins on this machine cannot be read. Its text is fit to be shown, and says what to do.
type StoreError struct{ Err error }

func (e *StoreError) Error() string { return e.Err.Error() }

func (e *StoreError) Unwrap() error { return e.Err }

// Grant is one sign-in to one server.
type Grant struct {
	ID        string `json:"id"` // another one after each sign-in; the same after a refresh
	Issuer    string `json:"issuer"`
	Resource  string `json:"resource,omitempty"`
	TokenURL  string `json:"token_url"`
	RevokeURL string `json:"revoke_url,omitempty"`
	Near      bool   `json:"near,omitempty"` // see terms
	Client    Client `json:"client"`         // without the secret of one that the entry names
	Access    string `json:"access"`
	Refresh   string `json:"refresh,omitempty"`
	// private, with which requests for tokens are proved: PKCS #8 in base64; "" for none
	Key     string    `json:"key,omitempty"`
	Bound   bool      `json:"bound,omitempty"` // Access is bound to Key
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires,omitzero"` // zero: the authorization server does not say
	Since   time.Time `json:"since"`            // somebody signed in
	Scopes  []string  `json:"scopes,omitempty"`
	Wanted  []string  `json:"wanted,omitempty"` // scopes that the server has asked for since
	Asked   []string  `json:"asked,omitempty"`  // scopes that the hub has asked for
}

// Open returns the store of a state directory. It makes no file before there is something to keep.
func Open(dir string) *Store { return &Store{file: filepath.Join(dir, FileName)} }

// File returns the path of the file, for those who watch it.
func (s *Store) File() string { return s.file }

// keyOf is the key of a server's grant. A server of the same id at another address has another one,
// and so has each person where each caller signs in: a sign-in that was made for one person never
// becomes that of all, nor the other way round.
func keyOf(server settings.Server) string {
	key := server.ID + " " + server.URL
	if server.OAuth.PerCaller {
		key += personMark + cmp.Or(server.Person, tool.Local)
	}
	return key
}

// personMark stands before the person in a key. No URL holds it.
const personMark = "\n"

// People returns who is signed in to a server that each caller signs in to, sorted.
func (s *Store) People(server settings.Server) ([]string, error) {
	c, err := s.contents()
	if err != nil || !server.OAuth.PerCaller {
		return nil, err
	}
	all, _, _ := strings.Cut(keyOf(server), personMark)
	var people []string
	for key := range c.Grants {
		if person, ok := strings.CutPrefix(key, all+personMark); ok {
			people = append(people, person)
		}
	}
	slices.Sort(people)
	return people, nil
}

// Grant returns the sign-in to server, if there is one. One that was made with another client, at
// another authorization server or for another resource than the entry now names does not count.
func (s *Store) Grant(server settings.Server) (g Grant, ok bool, err error) {
	c, err := s.contents()
	if err != nil {
		return g, false, err
	}
	g, ok = c.Grants[keyOf(server)]
	o := server.OAuth
	if ok && (o.ClientID != "" && o.ClientID != g.Client.ID || o.Issuer != "" && !sameIssuer(o.Issuer, g.Issuer) ||
		o.Resource != "" && o.Resource != cmp.Or(g.Resource, settings.OmitResource)) {
		return Grant{}, false, nil
	}
	return g, ok, nil
}

// Mark returns a text that changes when somebody signs in to server or out; "" where nobody is signed in, or has to.
func (s *Store) Mark(server settings.Server) string {
	if server.OAuth.Machine {
		return ""
	}
	g, _, _ := s.Grant(server) // what cannot be read counts as none, and is reported where a token is needed
	return g.ID
}

// clientMark stands between the issuer and the fixed address of a Callback in the key of a client. No URL holds it.
const clientMark = " "

// Ports returns the ports of loopback listeners that clients are registered for, sorted. Whoever
// listens at one of them need not register again.
func (s *Store) Ports() (ports []int) {
	kept, err := s.contents()
	if err != nil {
		return nil
	}
	for key, c := range kept.Clients {
		u, err := url.Parse(c.Redirect)
		if err != nil || strings.Contains(key, clientMark) || u.Hostname() != "127.0.0.1" {
			continue
		}
		if port, err := strconv.Atoi(u.Port()); err == nil {
			ports = append(ports, port)
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

// client returns the client that the hub has registered, if there is one. unused says that nobody
// has signed in with it yet, so that it is not kept.
func (s *Store) client(key string) (c Client, unused, ok bool) {
	kept, err := s.contents()
	if err != nil {
		return Client{}, false, false
	}
	if c, ok = kept.Clients[key]; !ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		c, unused = s.unused[key]
	}
	return c, unused, (ok || unused) && (c.Until.IsZero() || time.Now().Before(c.Until))
}

// put keeps a sign-in to server, and under key the client that the hub has registered for it; "" for none.
func (s *Store) put(server settings.Server, g Grant, key string, client Client) error {
	if server.OAuth.ClientID != "" {
		g.Client.Secret = "" // stands in the entry
	}
	err := s.change(func(c *contents) bool {
		c.Grants[keyOf(server)] = g
		delete(c.Ended, keyOf(server))
		delete(c.Asked, keyOf(server))
		if server.OAuth.ClientID != "" {
			c.Bound[boundKey(server)] = g.Issuer
		}
		if key != "" {
			c.Clients[key] = client
		}
		return true
	})
	if err == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.unused, key)
	}
	return err
}

// boundKey is the key of the client that the entry of a server names.
func boundKey(server settings.Server) string { return server.URL + clientMark + server.OAuth.ClientID }

// checkBound fails where the client that the entry of server names belongs to another authorization
// server than issuer: clients "MUST associate those credentials with the specific authorization
// server that issued them". The server says which that is at the first sign-in, and nobody but the
// entry can say otherwise later. A Client ID Metadata Document is for all.
func (s *Store) checkBound(server settings.Server, issuer string) error {
	o := server.OAuth
	if o.Issuer != "" || strings.HasPrefix(o.ClientID, "https://") {
		return nil
	}
	c, err := s.contents()
	if err != nil {
		return err
	}
	if bound := c.Bound[boundKey(server)]; bound != "" && bound != issuer {
		return fmt.Errorf("the server names %s now, and oauth.client_id is of %s: nothing is sent to the new one; if "+
			"the server has moved there, register the hub there and set oauth: {issuer: %s} in its entry",
			shownText(issuer),
			shownText(bound), shownText(issuer))
	}
	return nil
}

// remember notes a client that was registered for a sign-in which has not succeeded yet, for the
// next attempt of this process.
func (s *Store) remember(key string, client Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unused == nil {
		s.unused = make(map[string]Client)
	}
	s.unused[key] = client
}

// dismiss forgets a client that the authorization server does not know any more.
func (s *Store) dismiss(key string) error {
	s.mu.Lock()
	delete(s.unused, key)
	s.mu.Unlock()
	return s.change(func(c *contents) bool {
		_, ok := c.Clients[key]
		delete(c.Clients, key)
		return ok
	})
}

// want notes scopes that the server asks for, for the next sign-in.
func (s *Store) want(server settings.Server, scopes []string) error {
	return s.change(func(c *contents) bool {
		g, ok := c.Grants[keyOf(server)]
		before := len(g.Wanted)
		g.Wanted = union(g.Wanted, scopes)
		c.Grants[keyOf(server)] = g
		return ok && len(g.Wanted) > before && len(g.Wanted) <= maxScopes
	})
}

// wantsSignIn notes the challenge of a server to a call without a token.
func (s *Store) wantsSignIn(server settings.Server, h http.Header) error {
	said := h.Values("WWW-Authenticate")
	if c, found := challengeOf(h); !found || c.metadata == "" && len(c.scopes) == 0 ||
		len(strings.Join(said, "")) > maxChallenge {
		return nil
	}
	return s.change(func(c *contents) bool {
		known := slices.Equal(c.Asked[keyOf(server)], said)
		c.Asked[keyOf(server)] = said
		return !known
	})
}

// maxChallenge bounds the bytes of a challenge that is kept.
const maxChallenge = 4 << 10

// challenge returns what wantsSignIn has noted.
func (s *Store) challenge(server settings.Server) http.Header {
	c, err := s.contents()
	if err != nil {
		return nil
	}
	return http.Header{"Www-Authenticate": c.Asked[keyOf(server)]}
}

// Ended returns why there is no sign-in to server any more, where its authorization server has ended it; otherwise "".
func (s *Store) Ended(server settings.Server) string {
	c, err := s.contents()
	if err != nil {
		return ""
	}
	return c.Ended[keyOf(server)]
}

// forget removes the sign-in to server, unless it is not the one with that refresh token any more;
// "" removes any. why is kept in its place, unless it is "". With client it removes the
// registration, too.
func (s *Store) forget(server settings.Server, refresh, why string, client bool) error {
	return s.change(func(c *contents) bool {
		g, ok := c.Grants[keyOf(server)]
		if _, ended := c.Ended[keyOf(server)]; !ok && ended && why == "" {
			delete(c.Ended, keyOf(server))
			return true
		}
		if !ok || refresh != "" && g.Refresh != refresh {
			return false
		}
		delete(c.Grants, keyOf(server))
		if why != "" {
			c.Ended[keyOf(server)] = why
		}
		if client {
			maps.DeleteFunc(c.Clients, func(key string, one Client) bool {
				issuer, _, _ := strings.Cut(key, clientMark)
				return issuer == g.Issuer && one.ID == g.Client.ID
			})
		}
		return true
	})
}

// change lets f change what the file holds. Other processes wait meanwhile. Where f returns false nothing is written.
func (s *Store) change(f func(*contents) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	unlock, err := statefile.Lock(s.file)
	if err != nil {
		return fmt.Errorf("keep the sign-in: %w", err)
	}
	defer unlock()
	s.held = nil
	if err := s.read(); err != nil {
		return err
	}
	next := s.held
	s.held = nil // f changes it, and what is read next is what was written
	if !f(next) {
		return nil
	}
	box, err := s.box()
	if err != nil {
		return err
	}
	plain, err := json.Marshal(next)
	if err == nil {
		err = statefile.Write(s.file, []byte(box.Seal(plain)))
	}
	if err != nil {
		return fmt.Errorf("keep the sign-in: %w", err)
	}
	return nil
}

// box seals the file. s.mu is held.
func (s *Store) box() (*seal.Box, error) {
	key, err := []byte(nil), error(nil)
	if s.ring != nil {
		key, err = s.ring.load()
	} else {
		key, err = seal.LoadKey(s.file + ".key")
	}
	if err != nil {
		return nil, err
	}
	return seal.New(key, "sign-ins")
}

// check reports why the keyring takes no key, before a person signs in for nothing.
func (s *Store) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ring == nil {
		return nil
	}
	unlock, err := statefile.Lock(s.file)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = s.box()
	return err
}

// contents returns what the file holds now. The caller does not change it.
func (s *Store) contents() (*contents, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.read()
	return s.held, err
}

// read reads the file if it has changed since. s.mu is held.
func (s *Store) read() error {
	if err := s.readFile(); err != nil {
		return &StoreError{err}
	}
	return nil
}

func (s *Store) readFile() error {
	info, err := os.Stat(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		s.info, s.held = nil, newContents()
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the sign-ins: %w", err)
	}
	if s.held != nil && s.info != nil && os.SameFile(info, s.info) && info.Size() == s.info.Size() &&
		info.ModTime().Equal(s.info.ModTime()) {
		return nil
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return fmt.Errorf("read the sign-ins: %w", err)
	}
	box, err := s.box()
	if err != nil {
		return err
	}
	plain, err := box.Open(string(text))
	c := newContents()
	if err == nil {
		err = json.Unmarshal(plain, c)
	}
	if err != nil {
		return fmt.Errorf("read the sign-ins: %q: %w: remove it and sign in again", s.file, err)
	}
	s.info, s.held = info, c
	return nil
}

// union returns the words of both, each once.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, word := range b {
		if !slices.Contains(all, word) {
			all = append(all, word)
		}
	}
	return all
}
