package tool

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Listed is a tool as one surface shows it.
type Listed struct {
	Name string // the name shown, in the surface's style
	Tool *Tool  // never nil

	// Changed is the declaration, if more than its name differs from the tool's own; nil otherwise.
	Changed json.RawMessage

	// Page is the URI of the tool's user interface in Changed, if the hub has replaced the server's
	// own, which another server claims, too; "" otherwise.
	Page string
}

// Declaration returns Tool.Declaration with the shown name and the profile's overrides; all else is
// byte for byte the tool's own. Where only the name differs, each call makes it anew: of most tools
// nobody asks for it.
func (l Listed) Declaration() json.RawMessage {
	if l.Changed != nil || l.Name == l.Tool.Native {
		return l.Unnamed()
	}
	named, _ := rawjson.Set(l.Tool.Declaration, "name", rawjson.Quote(l.Name)) // it is an object
	return named
}

// Unnamed is Declaration, but the name may be the tool's own. It makes nothing anew.
func (l Listed) Unnamed() json.RawMessage {
	if l.Changed != nil {
		return l.Changed
	}
	return l.Tool.Declaration
}

// DirectPrefix begins the names of direct views. A direct view shows one server as it is, and holds
// nothing back. No profile of a config has such a name, because those hold no slash.
const DirectPrefix = "s/"

// Surface is the set of tools that one kind of caller sees, at one moment. It is immutable, apart
// from Give, and safe for concurrent use.
type Surface struct {
	ID       SurfaceID // changes whenever its record does, and so with Digest
	Profile  string
	Style    string
	Digest   string // of all that tools/list shows
	Listed   []Listed
	Excluded []Exclusion
	Features *Features // what it offers besides tools; nil: nothing

	// ForClient says that another client may see something else in this place.
	ForClient bool

	// Deferred holds tools that can be found and called but are not listed, in the order of a list.
	Deferred []Listed

	// Audience differs between surfaces of one profile and style if the policy hides other tools;
	// "" where it hides none.
	Audience string

	// Results are the rules for results of calls; nil where there are none. ResultsKey differs
	// between rules that differ.
	Results    *ResultRules
	ResultsKey string

	Habits Habits // of the client

	// ListsFound says that the list of a session grows by the deferred tools whose declarations it is given.
	ListsFound bool

	DeferredTokens int // see Split

	names    func() map[string]*Listed // made when first asked for: nobody resolves a name of most surfaces
	withheld map[Name]*Tool            // the hub's own tools that the policy leaves out
	full     *Surface                  // before the policy left tools out; nil where it leaves none out
	hidden   map[Name]string           // what keeps each of those out
	own      map[string]*Listed        // the hub's own tools
	ownFirst bool                      // own goes before names
	deferred map[Name]*Listed
	given    *atomic.Bool   // nil where nothing was split from it
	record   *SurfaceRecord // nil: it has none
	created  Event          // of record
}

// StandingKey implements Standing.
func (s *Surface) StandingKey() string { return string(s.ID) }

// StandingRecords implements Standing.
func (s *Surface) StandingRecords() []Record {
	if s.record == nil {
		return nil
	}
	return []Record{*s.record, s.created}
}

// KeepRecord keeps the record of the surface and the event that it is there, for calls that name it.
// It is called before others know of the surface.
func (s *Surface) KeepRecord(r *SurfaceRecord, created Event) { s.record, s.created = r, created }

// NewSurface returns the surface of listed, which it keeps. names maps every name that resolves (shown, canonical and
// those of the other styles) to an index in listed; a name that stands for two tools is left out of it.
func NewSurface(id SurfaceID, profile, style, digest string, listed []Listed, excluded []Exclusion,
	names map[string]int) *Surface {
	return NewSurfaceNamed(id, profile, style, digest, listed, excluded, func() map[string]int { return names })
}

// NewSurfaceNamed is NewSurface with names that are made when the first of them is resolved, at most once.
func NewSurfaceNamed(id SurfaceID, profile, style, digest string, listed []Listed, excluded []Exclusion,
	names func() map[string]int) *Surface {
	resolve := func() map[string]*Listed {
		indexes := names()
		all := make(map[string]*Listed, len(indexes))
		for name, i := range indexes {
			all[name] = &listed[i]
		}
		return all
	}
	return &Surface{ID: id, Profile: profile, Style: style, Digest: digest, Listed: listed, Excluded: excluded,
		names: sync.OnceValue(resolve)}
}

// CodePolicyBlocked is the Exclusion.Code of tools that the policy leaves out.
const CodePolicyBlocked = "policy_blocked"

// Without returns s, which is not split yet, without the hidden tools. own are the hub's own tools that With would add.
// hidden says by canonical name what keeps each out: the reason stands in Excluded, which no client sees.
func (s *Surface) Without(hidden map[Name]string, own ...*HubTool) *Surface {
	out := *s
	out.record = nil
	out.Listed = make([]Listed, 0, len(s.Listed))
	out.Excluded = append([]Exclusion(nil), s.Excluded...)
	out.withheld, out.full, out.hidden = make(map[Name]*Tool), s, hidden
	at := make(map[Name]int, len(s.Listed))
	text, names := []byte(s.Digest), []byte(nil)
	hide := func(name Name, origin string) {
		names = append(append(names, '\n'), name...)
		out.Excluded = append(out.Excluded, Exclusion{Tool: string(name), Origin: origin, Code: CodePolicyBlocked,
			Reason: "the policy never allows it (" + hidden[name] + "): change that if it is to be offered"})
	}
	for _, l := range s.Listed {
		if _, ok := hidden[l.Tool.Name]; ok {
			hide(l.Tool.Name, l.Tool.Server)
			continue
		}
		at[l.Tool.Name] = len(out.Listed)
		out.Listed = append(out.Listed, l)
	}
	for _, t := range own {
		if _, ok := hidden[t.Name]; ok {
			out.withheld[t.Name] = &Tool{Name: t.Name, Server: OwnServer, Native: string(t.Name), Hub: t}
			hide(t.Name, OwnServer)
		}
	}
	out.Digest = Digest(append(text, names...))
	out.Audience = Digest(names) // the same while other tools come and go
	out.ID = SurfaceID("srf_" + out.Digest[:26])
	out.names = s.namesIn(out.Listed, at)
	return &out
}

// namesIn are the names of s, for those of its tools that are in listed. at says where each is.
func (s *Surface) namesIn(listed []Listed, at map[Name]int) func() map[string]*Listed {
	return sync.OnceValue(func() map[string]*Listed {
		names := make(map[string]*Listed, len(s.names()))
		for name, l := range s.names() {
			if i, ok := at[l.Tool.Name]; ok {
				names[name] = &listed[i]
			}
		}
		return names
	})
}

// Resolve returns the tool that name stands for on this surface, by any of its names. Of the
// canonical name of a server's tool the "mcp." may be missing.
func (s *Surface) Resolve(name string) (*Listed, bool) {
	own, isOwn := s.own[name]
	if isOwn && s.ownFirst {
		return own, true
	}
	if l, ok := s.names()[name]; ok {
		return l, true
	}
	if l, ok := s.names()[SourceMCP+"."+name]; ok && !isOwn {
		return l, true
	}
	return own, isOwn
}

// NamesOf returns all names of the tool of that canonical name on this surface, sorted.
func (s *Surface) NamesOf(tool Name) []string {
	var names []string
	for name, l := range s.names() {
		if l.Tool.Name == tool {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Split says which tools of a surface are deferred, and which tools of the hub it has.
type Split struct {
	ID     SurfaceID
	Digest string

	// Listed holds what the list shows: tools of the surface, and those of Own that belong there.
	// Deferred are the others.
	Listed, Deferred []Listed

	Habits     Habits // see Surface
	ListsFound bool   // likewise

	// DeferredTokens is about how many tokens of tools a list leaves out because they are deferred.
	DeferredTokens int

	// Own are the hub's own tools, by name. With OwnFirst a name resolves to them even if another
	// tool has it; otherwise only if no other tool has it.
	Own      map[string]*Listed
	OwnFirst bool
}

// With returns s split in this way. What a name of a tool stands for stays the same, but for the names in Own.
func (s *Surface) With(split Split) *Surface {
	out := *s
	out.ID, out.Digest, out.Listed, out.Deferred = split.ID, split.Digest, split.Listed, split.Deferred
	out.Habits, out.ListsFound, out.DeferredTokens = split.Habits, split.ListsFound, split.DeferredTokens
	out.given, out.record = new(atomic.Bool), nil
	out.own, out.ownFirst, out.deferred = split.Own, split.OwnFirst, make(map[Name]*Listed, len(split.Deferred))
	for i := range split.Deferred {
		out.deferred[split.Deferred[i].Tool.Name] = &split.Deferred[i]
	}
	return &out
}

// Give notes that a client is given what Listed shows.
func (s *Surface) Give() {
	if s.given != nil {
		s.given.Store(true)
	}
}

// IsGiven reports whether a client was given what Listed shows.
func (s *Surface) IsGiven() bool { return s.given != nil && s.given.Load() }

// Withholds reports whether the policy leaves out that tool of the hub's own.
func (s *Surface) Withholds(name Name) bool { return s.withheld[name] != nil }

// Hidden returns the tool that name stands for where the policy leaves it out, and what keeps it
// out. Only records say so.
func (s *Surface) Hidden(name string) (t *Tool, by string, ok bool) {
	if s.full == nil {
		return nil, "", false
	}
	if l, there := s.full.Resolve(name); there {
		by, ok = s.hidden[l.Tool.Name]
		return l.Tool, by, ok
	}
	t = s.withheld[Name(name)]
	return t, s.hidden[Name(name)], t != nil
}

// IsDeferred reports whether the tool of that canonical name is one of Deferred.
func (s *Surface) IsDeferred(name Name) bool { return s.deferred[name] != nil }

// HeldBack returns the one of Deferred that has that canonical name, as it would be listed.
func (s *Surface) HeldBack(name Name) (*Listed, bool) {
	l := s.deferred[name]
	return l, l != nil
}

// Reader returns the name of the listed tool of the hub that reads stored results; "" where none is listed.
func (s *Surface) Reader() Name {
	for _, l := range s.Listed {
		if l.Tool.Hub != nil && l.Tool.Hub.Reads {
			return l.Tool.Name
		}
	}
	return ""
}

// Finder returns the name of the listed tool of the hub that finds deferred tools; "" where none is listed.
func (s *Surface) Finder() Name {
	for _, l := range s.Listed {
		if l.Tool.Hub != nil && l.Tool.Hub.Finds {
			return l.Tool.Name
		}
	}
	return ""
}
