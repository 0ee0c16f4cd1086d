package namespace

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// entry is a tool with what follows from the tool alone. It is immutable, and kept from one Update to the next for as
// long as the catalog holds the same *tool.Tool.
type entry struct {
	tool        *tool.Tool
	id          identity
	safe, short string
	look        string // foldLook of the canonical name
	loose       string // foldSeparators of look
	digest      [sha256.Size]byte
	fault       *tool.Exclusion // why the tool is refused whatever else there is; nil if it is not
}

func newEntry(t *tool.Tool) *entry {
	e := &entry{tool: t, digest: sha256.Sum256(t.Declaration)}
	if r, found := hidden(string(t.Name)); found {
		e.fault = &tool.Exclusion{
			Tool: escaped(string(t.Name)), Origin: t.Server, Code: codeHidden,
			Reason: fmt.Sprintf("the name holds the invisible character %U: have the server's author remove it, "+
				"or distrust the server", r),
		}
		return e
	}
	id, ok := parseName(t.Name)
	if !ok || len(t.Name) > maxCanonical {
		e.fault = &tool.Exclusion{
			Tool: escaped(string(t.Name)), Origin: t.Server, Code: codeInvalid,
			Reason: fmt.Sprintf("the name is empty or longer than %d bytes: have the server's author change it", maxCanonical),
		}
		if len(e.fault.Tool) > maxCanonical {
			e.fault.Tool = e.fault.Tool[:maxCanonical] + "…"
		}
		return e
	}
	e.id, e.safe, e.short = id, id.safe(), id.short()
	e.look = foldLook(string(t.Name))
	e.loose = foldSeparators(e.look)
	return e
}

// escaped writes everything that is not printable ASCII as an escape.
func escaped(name string) string {
	quoted := strconv.QuoteToASCII(name)
	return quoted[1 : len(quoted)-1]
}

// refusal is an exclusion with what a profile needs to decide whether it shows it.
type refusal struct {
	server    string
	canonical string // "" where the catalog says the origin's own name only
	tool.Exclusion
}

// hub is what all origins together offer at one moment. It is immutable.
type hub struct {
	entries  []*entry // admitted, in the order of lists
	byName   map[tool.Name]*tool.Tool
	owners   map[string]*entry // by canonical, safe and short name
	refusals []refusal
	cache    map[*tool.Tool]*entry // of every tool, refused ones too
}

// admit puts catalogs together. old may be nil; what it knows of the same tools is not computed again.
func admit(catalogs []tool.Catalog, old *hub) *hub {
	catalogs = slices.Clone(catalogs)
	slices.SortStableFunc(catalogs, func(a, b tool.Catalog) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Server, b.Server))
	})
	total := 0
	for _, c := range catalogs {
		total += len(c.Tools)
	}
	h := &hub{
		byName: make(map[tool.Name]*tool.Tool, total),
		owners: make(map[string]*entry, 3*total),
		cache:  make(map[*tool.Tool]*entry, total),
	}
	candidates := make([]*entry, 0, total)
	for _, c := range catalogs {
		for _, x := range c.Excluded {
			r := refusal{server: c.Server, Exclusion: x}
			if id, ok := parseName(tool.Name(x.Tool)); ok && id.source == c.Source && (id.server == "" || id.server == c.Server) {
				r.canonical = x.Tool
			}
			h.refusals = append(h.refusals, r)
		}
		for _, t := range c.Tools {
			e := h.entry(t, old)
			if e.fault != nil {
				h.refusals = append(h.refusals, refusal{c.Server, string(t.Name), *e.fault})
				continue
			}
			candidates = append(candidates, e)
		}
	}
	h.keepApart(candidates)
	return h
}

// rank puts built-in tools before those of servers.
func rank(c tool.Catalog) int {
	if c.Source == tool.SourceMCP {
		return 1
	}
	return 0
}

func (h *hub) entry(t *tool.Tool, old *hub) *entry {
	if h.cache[t] != nil {
		return newEntry(t) // listed twice: each occurrence is an entry of its own, so that they are found to collide
	}
	var e *entry
	if old != nil {
		e = old.cache[t]
	}
	if e == nil {
		e = newEntry(t)
	}
	h.cache[t] = e
	return e
}

// pair is the first two of the entries that share a key, and the first whose origin differs from the first one's.
type pair struct{ first, second, stranger *entry }

func (p *pair) add(e *entry) {
	switch {
	case p.first == nil:
		p.first = e
		return
	case p.second == nil:
		p.second = e
	}
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
	return a.tool.Server == b.tool.Server && a.id.source == b.id.source
}

// pairs indexes entries by a key. It holds no list per key, so that a server full of twins costs no more than others.
type pairs map[string]pair

func (m pairs) add(key string, e *entry) {
	p := m[key]
	p.add(e)
	m[key] = p
}

// rivals is what is needed to find the tools that cannot stand beside each other.
type rivals struct {
	exposed pairs // by safe and short name
	loose   pairs
	name    pairs // of entries that share their loose name with another
	look    pairs // likewise
}

func findRivals(candidates []*entry) rivals {
	r := rivals{
		exposed: make(pairs, 2*len(candidates)), loose: make(pairs, len(candidates)), name: pairs{}, look: pairs{},
	}
	for _, e := range candidates {
		r.loose.add(e.loose, e)
		r.exposed.add(e.safe, e)
		if e.short != e.safe {
			r.exposed.add(e.short, e)
		}
	}
	for _, e := range candidates {
		if p := r.loose[e.loose]; p.second != nil {
			r.name.add(string(e.tool.Name), e)
			r.look.add(e.look, e)
		}
	}
	return r
}

// of returns a tool that e cannot stand beside, and the code of the exclusion that follows; nil if there is none.
//
// Within one server, names that differ in separators alone are the author's own affair: get-item and get_item are
// two tools that a person can tell apart. Across servers they are not, as git_hub may pose as git-hub.
func (r rivals) of(e *entry) (twin *entry, code string) {
	if p := r.loose[e.loose]; p.second != nil {
		name, look := r.name[string(e.tool.Name)], r.look[e.look]
		if twin = name.beside(e); twin != nil {
			return twin, codeDuplicate
		}
		if twin = look.beside(e); twin != nil {
			return twin, codeTwin
		}
		if twin = p.across(e); twin != nil {
			return twin, codeTwin
		}
	}
	// Names that the encoding made cannot meet, except by a collision of digests or where a server has the id of a
	// toolset that isToolset does not know.
	for _, name := range [...]string{e.safe, e.short} {
		p := r.exposed[name]
		if twin = p.beside(e); twin != nil {
			return twin, codeTwin
		}
	}
	return nil, ""
}

// keepApart admits the candidates that cannot be taken for one another and refuses the others, all of them: to keep
// the first of two would let whoever comes first decide.
func (h *hub) keepApart(candidates []*entry) {
	r := findRivals(candidates)
	for _, e := range candidates {
		if twin, code := r.of(e); twin != nil {
			h.refusals = append(h.refusals, refusal{e.tool.Server, string(e.tool.Name), conflictExclusion(e, twin, code)})
			continue
		}
		h.entries = append(h.entries, e)
		h.byName[e.tool.Name] = e.tool
		for _, name := range [...]string{string(e.tool.Name), e.safe, e.short} {
			h.owners[name] = e
		}
	}
}

// conflictExclusion says that e is not offered because of twin.
func conflictExclusion(e, twin *entry, code string) tool.Exclusion {
	x := tool.Exclusion{Tool: string(e.tool.Name), Origin: e.tool.Server, Code: code, Twin: twin.tool.Server}
	mine, theirs := origin(e), origin(twin)
	switch {
	case code == codeDuplicate && mine == theirs:
		x.Reason = fmt.Sprintf("%s offers %s twice: have the server's author rename one of them",
			mine, strconv.QuoteToASCII(string(e.tool.Name)))
	case code == codeDuplicate:
		x.Reason = fmt.Sprintf("%s and %s both offer %s: give each server an id of its own",
			mine, theirs, strconv.QuoteToASCII(string(e.tool.Name)))
	default:
		x.Reason = fmt.Sprintf("%s of %s and %s of %s can be taken for one another: change a server id or remove one of "+
			"the tools", strconv.QuoteToASCII(string(e.tool.Name)), mine, strconv.QuoteToASCII(string(twin.tool.Name)), theirs)
	}
	return x
}

// origin names where e comes from, for a message.
func origin(e *entry) string {
	if e.id.source == tool.SourceMCP {
		return fmt.Sprintf("server %q", e.tool.Server)
	}
	return fmt.Sprintf("toolset %q", e.tool.Server)
}
