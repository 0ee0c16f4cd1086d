package policy

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Grant is a remembered answer of a person, for one caller and one tool. A grant that allows covers
// a call if the tool still has the same input schema and every target of the call is within one of
// the grant's scopes. Without scopes it covers only calls without targets. A grant that denies
// covers a call that reaches all of its scopes, whatever else the call does and whatever the schema
// has become.
type Grant struct {
	ID      string        `json:"id"`
	Then    tool.Behavior `json:"then"` // tool.Allow or tool.Deny
	Tool    tool.Name     `json:"tool"`
	Actor   string        `json:"actor"` // tool.Actor.Ref of the caller
	Scopes  []Scope       `json:"targets,omitempty"`
	Exact   string        `json:"exact,omitempty"`  // digest of one call's arguments and targets, instead of scopes
	Schema  string        `json:"schema,omitempty"` // Version of the tool when it was granted; "" holds for any
	Says    string        `json:"says,omitempty"`   // what the person said, for the model
	By      string        `json:"by,omitempty"`     // who answered, and where
	Created time.Time     `json:"created,omitzero"`
	Expires time.Time     `json:"expires,omitzero"` // zero: never. Session grants always expire.

	session *string // the session it belongs to; nil: an always-grant
}

// Session returns the session that the grant ends with; ok is false for an always-grant. The
// session is "" where the protocol has none: then the grant lives until it expires.
func (g *Grant) Session() (id string, ok bool) {
	if g.session == nil {
		return "", false
	}
	return *g.session, true
}

func (g *Grant) expired(now time.Time) bool { return !g.Expires.IsZero() && !now.Before(g.Expires) }

// covers reports whether the grant answers r.
func (g *Grant) covers(r *Request) bool {
	if g.Actor != r.Actor.Ref() || g.expired(r.Now) || g.session != nil && *g.session != r.Actor.Session {
		return false
	}
	if g.Then == tool.Allow && g.Schema != "" && g.Schema != r.Tool.Version() {
		return false
	}
	if g.Exact != "" {
		return g.Exact == digestCall(r)
	}
	if len(g.Scopes) == 0 {
		return len(r.Targets) == 0 && (g.Then == tool.Deny || !isUnaimed(r))
	}
	if g.Then == tool.Deny {
		return g.reaches(r)
	}
	for i := range r.Targets {
		t := &r.Targets[i]
		if isUnbounded(t) {
			return false
		}
		within := slices.ContainsFunc(g.Scopes, func(s Scope) bool {
			return s.same(t, r.CWD) && (s.Write || !t.Write) &&
				(s.Under == t.Resolved || !r.isSensitive(t.Resolved))
		})
		if !within {
			return false
		}
	}
	return len(r.Targets) > 0
}

// reaches reports whether r has a target within each scope.
func (g *Grant) reaches(r *Request) bool {
	return !slices.ContainsFunc(g.Scopes, func(s Scope) bool {
		return !slices.ContainsFunc(r.Targets, func(t target.Target) bool {
			return s.same(&t, r.CWD) &&
				(t.Write || !s.Write)
		})
	})
}

// How long answers are remembered.
const (
	sessionTime     = 12 * time.Hour // the longest life of a session grant
	sessionlessTime = time.Hour      // the same where the protocol has no session
	alwaysTime      = 90 * 24 * time.Hour
)

// maxSession bounds the session grants at a time, of all sessions.
const maxSession = 10_000

// GrantOptions set where answers are remembered. The zero value keeps them in memory.
type GrantOptions struct {
	File     string // of the always-grants; "": an answer "always" holds for the session
	SetAside bool   // a File with a fault is renamed; see Grants.Lost
}

// Grants are the remembered answers. They are safe for concurrent use. A nil *Grants holds nothing.
type Grants struct {
	file *grantFile // nil without a file

	filing sync.Mutex // held from reading the file until always is set, so that no older reading comes last

	mu      sync.RWMutex
	session map[tool.Name][]*Grant
	always  map[tool.Name][]*Grant
	count   int      // in session
	lost    []string // files that were set aside
}

// ErrNoGrant is returned for an id that no grant has.
var ErrNoGrant = errors.New("no such grant: list the grants to see which there are")

// ErrTooMany is returned when so many session grants are held that no further one is kept.
var ErrTooMany = errors.New("too many answers are remembered for sessions: this one held once; revoke some")

// OpenGrants returns the grants of o.File, which need not exist. A file with a fault is an error,
// Faults, or with SetAside the same as if its answers were lost: without its denials the hub would
// allow what a person forbade.
func OpenGrants(o GrantOptions) (*Grants, error) {
	g := &Grants{session: make(map[tool.Name][]*Grant), always: make(map[tool.Name][]*Grant)}
	if o.File == "" {
		return g, nil
	}
	g.file = &grantFile{path: o.File}
	err := g.Reload()
	if _, faulty := errors.AsType[Faults](err); faulty && o.SetAside {
		if err = g.file.setAside(); err == nil {
			err = g.Reload()
		}
	}
	return g, err
}

// Lost returns the files that were set aside because of a fault, as long as they are there. Until
// then each call is asked about that an answer in them may have denied: one that was allowed before
// is asked about by itself.
func (g *Grants) Lost() []string {
	if g == nil {
		return nil
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.lost
}

// Reload reads the file again: another hub may have written it, or a person. With a fault in the file, what was read
// before still holds.
func (g *Grants) Reload() error {
	if g == nil || g.file == nil {
		return nil
	}
	g.filing.Lock()
	defer g.filing.Unlock()
	list, err := g.file.read()
	if err != nil {
		return err
	}
	g.setAlways(list)
	lost, err := filepath.Glob(g.file.path + Damaged + "*")
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lost = lost
	return err
}

func (g *Grants) setAlways(list []Grant) {
	always := make(map[tool.Name][]*Grant)
	for i := range list {
		always[list[i].Tool] = append(always[list[i].Tool], &list[i])
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.always = always
}

// find returns a grant that answers r with then, nil where there is none.
func (g *Grants) find(r *Request, then tool.Behavior) *Grant {
	if g == nil {
		return nil
	}
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, list := range [2][]*Grant{g.always[r.Tool.Name], g.session[r.Tool.Name]} {
		for _, grant := range list {
			if grant.Then == then && grant.covers(r) {
				return grant
			}
		}
	}
	return nil
}

// AddSession remembers grant until session ends or the grant expires. session is "" where the protocol has none.
func (g *Grants) AddSession(session string, grant Grant) (Grant, error) {
	now := grant.stamp()
	life := sessionTime
	if session == "" {
		life = sessionlessTime
	}
	if end := now.Add(life); grant.Expires.IsZero() || grant.Expires.After(end) {
		grant.Expires = end
	}
	grant.session = &session
	if err := grant.check(); err != nil {
		return Grant{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	list := slices.Clone(g.session[grant.Tool]) // find may have handed out the elements of the old one
	if i := slices.IndexFunc(list, func(old *Grant) bool {
		return *old.session == session &&
			grant.renews(old)
	}); i >= 0 {
		list[i], g.session[grant.Tool] = &grant, list
		return grant, nil
	}
	if g.count >= maxSession {
		if g.drop(func(old *Grant) bool { return old.expired(now) }); g.count >= maxSession {
			return Grant{}, ErrTooMany
		}
	}
	g.session[grant.Tool] = append(slices.Clone(g.session[grant.Tool]), &grant) // drop may have replaced the list
	g.count++
	return grant, nil
}

// AddAlways remembers grant in the file. Without a file it is an error.
func (g *Grants) AddAlways(grant Grant) (Grant, error) {
	if g.file == nil {
		return Grant{}, errors.New("remember an answer for good: there is no file of grants: configure one")
	}
	now := grant.stamp()
	if grant.Expires.IsZero() {
		grant.Expires = now.Add(alwaysTime)
	}
	if err := grant.check(); err != nil {
		return Grant{}, err
	}
	g.filing.Lock()
	defer g.filing.Unlock()
	list, err := g.file.change(func(list []Grant) ([]Grant, error) {
		list = slices.DeleteFunc(list, func(old Grant) bool { return old.expired(now) })
		if i := slices.IndexFunc(list, func(old Grant) bool { return grant.renews(&old) }); i >= 0 {
			list[i] = grant
			return list, nil
		}
		return append(list, grant), nil
	})
	if err != nil {
		return Grant{}, err
	}
	g.setAlways(list)
	return grant, nil
}

// renews reports whether the grant gives the same answer for the same calls as old. It then takes
// over old's id and place, so that several calls that waited for one answer leave one grant.
func (g *Grant) renews(old *Grant) bool {
	if g.Then != old.Then || g.Tool != old.Tool || g.Schema != old.Schema || g.Actor != old.Actor ||
		g.Exact != old.Exact ||
		!slices.Equal(g.Scopes, old.Scopes) {
		return false
	}
	g.ID, g.Created = old.ID, old.Created
	return true
}

// stamp gives a new grant its id and time.
func (g *Grant) stamp() time.Time {
	if g.ID == "" {
		g.ID = "grt_" + strings.ToLower(rand.Text())
	}
	if g.Created.IsZero() {
		g.Created = time.Now().UTC().Truncate(time.Second)
	}
	return g.Created
}

// check refuses grants that could cover calls that nobody meant.
func (g *Grant) check() error {
	switch {
	case g.Then != tool.Allow && g.Then != tool.Deny:
		return fmt.Errorf("grant %s: %q is no answer: write allow or deny", g.ID, string(g.Then))
	case g.Tool == "":
		return fmt.Errorf("grant %s: there is no tool: write its canonical name", g.ID)
	case strings.ContainsAny(string(g.Tool), "*?"):
		return fmt.Errorf("grant %s: a grant is for one tool: write a rule for %q", g.ID, string(g.Tool))
	case g.Actor == "":
		return fmt.Errorf("grant %s: there is no actor: write one like actor:stdio/local", g.ID)
	case g.Exact != "" && len(g.Scopes) > 0:
		return fmt.Errorf("grant %s: exact arguments and scopes exclude each other: remove one of them", g.ID)
	}
	for _, s := range g.Scopes {
		if s.Under == "" && s.Host == "" && s.Executable == "" && s.Resource == "" {
			return fmt.Errorf("grant %s: a target of kind %q names nothing: write under, host, executable or resource",
				g.ID, s.Kind)
		}
	}
	return nil
}

// List returns all grants that have not expired, always-grants first, oldest first.
func (g *Grants) List() []Grant {
	if g == nil {
		return nil
	}
	now := time.Now()
	var list []Grant
	g.mu.RLock()
	defer g.mu.RUnlock()
	for _, from := range [2]map[tool.Name][]*Grant{g.always, g.session} {
		first := len(list)
		for _, grants := range from {
			for _, grant := range grants {
				if !grant.expired(now) {
					list = append(list, *grant)
				}
			}
		}
		slices.SortFunc(list[first:], func(a, b Grant) int {
			return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
		})
	}
	return list
}

// Revoke forgets the grant with the id, from the file too. It returns ErrNoGrant where there is none.
func (g *Grants) Revoke(id string) error {
	g.mu.Lock()
	dropped := g.drop(func(grant *Grant) bool { return grant.ID == id })
	g.mu.Unlock()
	if dropped > 0 {
		return nil
	}
	if g.file == nil {
		return ErrNoGrant
	}
	g.filing.Lock()
	defer g.filing.Unlock()
	list, err := g.file.change(func(list []Grant) ([]Grant, error) {
		before := len(list)
		list = slices.DeleteFunc(list, func(grant Grant) bool { return grant.ID == id })
		if len(list) == before {
			return nil, ErrNoGrant
		}
		return list, nil
	})
	if err != nil {
		return err
	}
	g.setAlways(list)
	return nil
}

// EndSession forgets what was granted for the session. "" is no session and forgets nothing.
func (g *Grants) EndSession(session string) {
	if g == nil || session == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(func(grant *Grant) bool { return *grant.session == session })
}

// drop removes session grants. The lists are replaced, because find may have handed out their elements.
func (g *Grants) drop(gone func(*Grant) bool) (dropped int) {
	for name, list := range g.session {
		kept := slices.DeleteFunc(slices.Clone(list), gone)
		dropped += len(list) - len(kept)
		if g.session[name] = kept; len(kept) == 0 {
			delete(g.session, name)
		}
	}
	g.count -= dropped
	return dropped
}
