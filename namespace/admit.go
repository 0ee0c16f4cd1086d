package namespace

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Codes of exclusions that this package makes.
const (
	codeDuplicate   = "duplicate_name"
	codeTwin        = "unsafe_twin"
	codeHidden      = "hidden_unicode"
	codeInvalid     = "invalid_name"
	codeDeclaration = "invalid_declaration"
)

// maxCanonical bounds a canonical name, in bytes. Clients stop at 128; the bound is for work that grows with the name.
const maxCanonical = 1024

// subject is a tool or a prompt of an origin.
type subject struct {
	name        tool.Name
	server      string
	native      string
	declaration json.RawMessage
	tool        *tool.Tool // nil for a prompt
}

// entry is a subject with the values that are computed from it alone. It is immutable, and kept
// from one Update to the next for as long as the catalog holds the same list.
type entry struct {
	subject
	id          identity
	safe, short string
	look        string // foldLook of the canonical name
	loose       string // foldSeparators of look
	page        string // URI of the resource that is the tool's user interface; "" where it has none
	digest      [sha256.Size]byte
	fault       *tool.Exclusion // why the subject is refused whatever else there is; nil if it is not
}

func newEntry(s subject) *entry {
	e := &entry{subject: s}
	if s.tool != nil {
		e.digest = s.tool.DeclarationDigest
	}
	if e.digest == [sha256.Size]byte{} {
		e.digest = sha256.Sum256(s.declaration)
	}
	id, ok := parseName(s.name)
	if ok {
		e.id, e.safe, e.short = id, id.safe(), id.short()
	}
	if s.tool != nil {
		e.page = pageOf(s.declaration)
	}
	if r, found := findHidden(string(s.name)); found {
		e.fault = &tool.Exclusion{Tool: escaped(string(s.name)), Origin: s.server, Code: codeHidden,
			Reason: fmt.Sprintf(
				"the name holds the invisible character %U: have the server's author remove it, or distrust the server",
				r)}
		return e
	}
	if !ok || len(s.name) > maxCanonical {
		e.fault = &tool.Exclusion{Tool: escaped(string(s.name)), Origin: s.server, Code: codeInvalid,
			Reason: fmt.Sprintf(
				"the name is empty or longer than %d bytes: have the server's author change it", maxCanonical)}
		if len(e.fault.Tool) > maxCanonical {
			e.fault.Tool = e.fault.Tool[:maxCanonical] + "…"
		}
		return e
	}
	e.look = foldLook(string(s.name))
	e.loose = foldSeparators(e.look)
	return e
}

// escaped writes everything that is not printable ASCII as an escape.
func escaped(name string) string {
	quoted := strconv.QuoteToASCII(name)
	return quoted[1 : len(quoted)-1]
}

// refusal is an exclusion with the values by which a profile decides whether to show it.
type refusal struct {
	server    string
	canonical string // "" where the catalog says the origin's own name only
	here      bool   // not by the catalog
	tool.Exclusion
}

// space holds all tools, or all prompts, of all origins. It is immutable.
type space struct {
	entries []*entry // admitted, in the order of lists
	// by canonical, safe and short name; of two of the same name, as twins may have, one
	owners   func() map[string]*entry
	twins    []*entry  // refused because of one another
	refusals []refusal // by catalogs, then by admit
	judged   []*entry  // by admit: all
	found    []refusal // by admit
}

// pair is the first two of the entries that share a key, and the first whose origin differs from the first one's.
type pair struct{ first, second, stranger *entry }

func (p *pair) add(e *entry) {
	if p.first == nil {
		p.first = e
		return
	}
	p.second = cmp.Or(p.second, e)
	if p.stranger == nil && !sameOrigin(p.first, e) {
		p.stranger = e
	}
}

// beside returns another entry with the key of e, or nil.
func (p *pair) beside(e *entry) *entry {
	if p.first != e {
		return p.first
	}
	return p.second
}

// across returns an entry with the key of e that comes from elsewhere, or nil.
func (p *pair) across(e *entry) *entry {
	if !sameOrigin(p.first, e) {
		return p.first
	}
	return p.stranger
}

func sameOrigin(a, b *entry) bool {
	return a.server == b.server && a.id.source == b.id.source
}

// pairs indexes entries by a key. It holds no list per key, so that a server full of twins costs no more than others.
type pairs map[string]pair

func (m pairs) add(key string, e *entry) {
	p := m[key]
	p.add(e)
	m[key] = p
}

// rivals finds the tools that cannot stand beside each other.
type rivals struct {
	look    pairs
	loose   pairs
	exposed pairs // by safe and short name
}

func findRivals(candidates []*entry) rivals {
	r := rivals{look: make(pairs, len(candidates)), loose: make(pairs, len(candidates)),
		exposed: make(pairs, 2*len(candidates))}
	for _, e := range candidates {
		r.look.add(e.look, e)
		r.loose.add(e.loose, e)
		r.exposed.add(e.safe, e)
		if e.short != e.safe {
			r.exposed.add(e.short, e)
		}
	}
	return r
}

// of returns a tool that e cannot stand beside; nil if there is none.
//
// Within one server, names that differ in separators alone are the author's own affair: get-item and get_item are
// two tools that a person can tell apart. Across servers they are not, as git_hub may pose as git-hub.
//
// Names that the encoding made cannot meet, except by a collision of digests or where a server has the id of a
// toolset that isToolset does not know.
func (r rivals) of(e *entry) *entry {
	look, loose, safe, short := r.look[e.look], r.loose[e.loose], r.exposed[e.safe], r.exposed[e.short]
	return cmp.Or(look.beside(e), loose.across(e), safe.beside(e), short.beside(e))
}

// admit refuses the entries with a fault. Of the others it admits those that cannot be taken for
// one another, and refuses all that can: to keep the first of two would let whoever comes first
// decide. Where old has judged the same, so it stays.
func (sp *space) admit(all []*entry, old *space) {
	if sp.judged = all; slices.Equal(all, old.judged) && old.owners != nil {
		sp.entries, sp.owners, sp.twins, sp.found = old.entries, old.owners, old.twins, old.found
		sp.refusals = append(sp.refusals, sp.found...)
		return
	}
	candidates := make([]*entry, 0, len(all))
	for _, e := range all {
		if e.fault != nil {
			sp.found = append(sp.found, refusal{e.server, string(e.name), true, *e.fault})
			continue
		}
		candidates = append(candidates, e)
	}
	r := findRivals(candidates)
	sp.entries = make([]*entry, 0, len(candidates))
	for _, e := range candidates {
		if twin := r.of(e); twin != nil {
			sp.found = append(sp.found, refusal{e.server, string(e.name), true, conflictExclusion(e, twin)})
			sp.twins = append(sp.twins, e)
			continue
		}
		sp.entries = append(sp.entries, e)
	}
	// twins keep their names: that one appears must not turn a name over to a third
	named := slices.Concat(sp.twins, sp.entries)
	sp.owners = sync.OnceValue(func() map[string]*entry {
		owners := make(map[string]*entry, 3*len(named))
		for _, e := range named {
			for _, name := range [...]string{string(e.name), e.safe, e.short} {
				owners[name] = e
			}
		}
		return owners
	})
	sp.refusals = append(sp.refusals, sp.found...)
}

// conflictExclusion says that e is not offered because of twin.
func conflictExclusion(e, twin *entry) tool.Exclusion {
	kind := "tools"
	if e.tool == nil {
		kind = "prompts"
	}
	return tool.Exclusion{Tool: string(e.name), Origin: e.server, Code: codeTwin, Twin: twin.server,
		Reason: fmt.Sprintf("%s of %s and %s of %s can be taken for one another: change a server id or remove one of "+
			"the %s", strconv.QuoteToASCII(string(e.name)), originOf(e), strconv.QuoteToASCII(string(twin.name)),
			originOf(twin), kind)}
}

// originOf names where e comes from, for a message.
func originOf(e *entry) string {
	if e.id.source == tool.SourceMCP {
		return fmt.Sprintf("server %q", e.server)
	}
	return fmt.Sprintf("toolset %q", e.server)
}
