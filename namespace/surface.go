package namespace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// styles are the concrete styles, each with a surface of its own.
var styles = [...]Style{StyleCanonical, StyleSafe, StyleShort, StyleNative}

// view is what one profile shows of one hub. Its surfaces are built when first asked for and never change.
type view struct {
	profile  *profile
	owners   map[string]*entry // the hub's
	visible  []*entry
	dresses  []dress // of visible, by index
	excluded []tool.Exclusion
	digest   [sha256.Size]byte // of all from which surfaces are made, other than the profile

	mu    sync.Mutex // held while a surface is built
	built [len(styles)]atomic.Pointer[built]
}

// built is a surface, with what the next one can take over.
type built struct {
	surface *tool.Surface
	rows    map[*entry]row
}

// row is one line of a tools/list.
type row struct {
	shown       string
	declaration json.RawMessage
	digest      [sha256.Size]byte // of declaration
}

// newView selects what p shows of h.
func newView(p *profile, h *hub) *view {
	v := &view{profile: p, owners: h.owners}
	offered := make(map[string]bool)
	offers := func(server string) bool {
		ok, asked := offered[server]
		if !asked {
			ok = p.offers(server)
			offered[server] = ok
		}
		return ok
	}
	sum := sha256.New()
	var size [8]byte
	for _, e := range h.entries {
		if !offers(e.tool.Server) {
			continue
		}
		d, ok := p.selects(string(e.tool.Name))
		if !ok {
			continue
		}
		v.visible, v.dresses = append(v.visible, e), append(v.dresses, d)
		binary.BigEndian.PutUint64(size[:], uint64(len(e.tool.Name)))
		sum.Write(size[:])
		sum.Write([]byte(e.tool.Name))
		sum.Write(e.digest[:])
	}
	sum.Sum(v.digest[:0])
	for _, r := range h.refusals {
		if !offers(r.server) {
			continue
		}
		if _, ok := p.selects(r.canonical); r.canonical == "" || ok {
			v.excluded = append(v.excluded, r.Exclusion)
		}
	}
	return v
}

// surface returns the surface in style, which is one of styles.
func (v *view) surface(style Style) *tool.Surface {
	i := styleIndex(style)
	if b := v.built[i].Load(); b != nil {
		return b.surface
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if b := v.built[i].Load(); b != nil {
		return b.surface
	}
	b := v.build(style, nil)
	v.built[i].Store(b)
	return b.surface
}

// follow builds the surfaces that somebody asked the previous view of the same profile for, so that the next request
// does not wait. The view is not published yet.
func (v *view) follow(old *view) {
	for i := range styles {
		if b := old.built[i].Load(); b != nil {
			v.built[i].Store(v.build(styles[i], b.rows))
		}
	}
}

func styleIndex(style Style) int {
	for i, s := range styles {
		if s == style {
			return i
		}
	}
	return 0
}

// build makes the surface in style. rows are those of the previous surface in that style; nil is fine.
func (v *view) build(style Style, rows map[*entry]row) *built {
	b := &built{rows: make(map[*entry]row, len(v.visible))}
	shown := make([]string, len(v.visible))
	for i, e := range v.visible {
		shown[i] = v.shownIn(style, i, e)
	}
	refused := v.refuse(style, shown)
	excluded := append([]tool.Exclusion(nil), v.excluded...)
	listed := make([]tool.Listed, 0, len(v.visible))
	names := newNaming(len(v.visible))
	sum := sha256.New()
	for i, e := range v.visible {
		if x, ok := refused[i]; ok {
			excluded = append(excluded, x)
			continue
		}
		r, ok := rows[e]
		if !ok || r.shown != shown[i] {
			declaration, err := declare(e.tool, shown[i], v.dresses[i])
			if err != nil {
				excluded = append(excluded, tool.Exclusion{
					Tool: string(e.tool.Name), Origin: e.tool.Server, Code: codeDeclaration,
					Reason: fmt.Sprintf("the declaration cannot be written (%v): have the server's author mend it", err),
				})
				continue
			}
			r = row{shown: shown[i], declaration: declaration, digest: sha256.Sum256(declaration)}
		}
		b.rows[e] = r
		names.add(len(listed), e, shown[i], v.dresses[i])
		listed = append(listed, tool.Listed{Name: r.shown, Tool: e.tool, Declaration: r.declaration})
		// The declaration holds the shown name, so its digest covers both.
		sum.Write(r.digest[:])
	}
	digest := hex.EncodeToString(sum.Sum(nil))
	id := tool.SurfaceID("srf_" + digest[:26])
	b.surface = tool.NewSurface(id, v.profile.Name, string(style), digest, listed, excluded, names.resolvable())
	return b
}

// shownIn is the name under which visible[i] would be listed.
func (v *view) shownIn(style Style, i int, e *entry) string {
	if name := v.dresses[i].name; name != "" {
		return e.id.renamed(name).in(style)
	}
	switch style {
	case StyleSafe:
		return e.safe
	case StyleShort:
		return e.short
	case StyleNative:
		return e.id.tool
	default:
		return string(e.tool.Name)
	}
}

func (id identity) renamed(name string) identity {
	id.tool = name
	return id
}

// refuse finds the shown names that cannot stand on one surface, and returns an exclusion for each, by index.
//
// Canonical, safe and short names are kept apart for the whole hub already; what is left are native names and those
// that a profile gives. Such a name never takes a tool's own one: a server that calls its tool tool_search or
// github__search cannot push the bearer of that name off the surface. Of tools that would look alike otherwise, the
// one that was not renamed stays; where that does not decide, none does.
func (v *view) refuse(style Style, shown []string) map[int]tool.Exclusion {
	suspect := style == StyleNative
	for _, d := range v.dresses {
		suspect = suspect || d.name != ""
	}
	if !suspect {
		return nil
	}
	index := make(map[*entry]int, len(v.visible))
	for i, e := range v.visible {
		index[e] = i
	}
	refused := make(map[int]tool.Exclusion)
	alike := make(map[string][]int, len(shown))
	for i, e := range v.visible {
		if owner := v.owners[shown[i]]; owner != nil && owner != e {
			if j, ok := index[owner]; ok {
				refused[i] = v.clash(style, i, j, codeDuplicate)
				continue
			}
		}
		look := foldLook(shown[i])
		alike[look] = append(alike[look], i)
	}
	for _, group := range alike {
		if len(group) < 2 {
			continue
		}
		keep := v.keeper(group, shown)
		for at, i := range group {
			if i == keep {
				continue
			}
			twin := keep
			if twin < 0 {
				twin = group[(at+1)%len(group)]
			}
			code := codeTwin
			if shown[twin] == shown[i] {
				code = codeDuplicate
			}
			refused[i] = v.clash(style, i, twin, code)
		}
	}
	return refused
}

// keeper returns the one of group, whose shown names look alike, that has a better right to its name than all others,
// or -1: its canonical, safe or short name before its native one, and that before a name which the profile gives.
func (v *view) keeper(group []int, shown []string) int {
	best, strength, shared := -1, 0, false
	for _, i := range group {
		right := 1
		switch {
		case v.owners[shown[i]] == v.visible[i]:
			right = 3
		case v.dresses[i].name == "":
			right = 2
		}
		switch {
		case right > strength:
			best, strength, shared = i, right, false
		case right == strength:
			shared = true
		}
	}
	if shared {
		return -1
	}
	return best
}

// clash is the exclusion of visible[i] because of visible[j].
func (v *view) clash(style Style, i, j int, code string) tool.Exclusion {
	e, twin := v.visible[i], v.visible[j]
	return tool.Exclusion{
		Tool: string(e.tool.Name), Origin: e.tool.Server, Code: code, Twin: twin.tool.Server,
		Reason: fmt.Sprintf("in profile %q, style %s, it would be shown as %s, which can be taken for %s of %s: rename or "+
			"hide one of them in the profile, or choose another style", v.profile.Name, style,
			strconv.QuoteToASCII(v.shownIn(style, i, e)), strconv.QuoteToASCII(string(twin.tool.Name)), origin(twin)),
	}
}

// declare returns t's declaration with the shown name and the overrides in place; every other byte is the origin's.
func declare(t *tool.Tool, shown string, d dress) (json.RawMessage, error) {
	// A name that stays is not written anew: its escapes are the origin's too.
	name, ok := rawjson.Get(t.Declaration, "name")
	if text, isString := rawjson.String(name); !ok || !isString || text != shown {
		name = rawjson.Quote(shown)
	}
	out, err := rawjson.Set(t.Declaration, "name", name)
	if err == nil && d.title != "" {
		out, err = rawjson.Set(out, "title", rawjson.Quote(d.title))
	}
	if err == nil && d.description != "" {
		out, err = rawjson.Set(out, "description", rawjson.Quote(d.description))
	}
	return out, err
}

// naming collects the names that resolve on a surface. A claim is the stronger the smaller it is; of two equally
// strong ones on the same name neither holds, and weaker ones do not inherit.
type naming struct{ claims map[string]claim }

type claim struct {
	index    int32
	strength uint8
	disputed bool
}

const (
	byCanonical uint8 = iota // what records and policy know the tool by
	byExposed                // safe, short, and as listed: never shared by two tools of a surface
	byRenaming               // the other forms of a name that the profile gives
	byBare                   // the origin's own name, or the profile's, with nothing before it
)

func newNaming(tools int) naming { return naming{make(map[string]claim, 4*tools)} }

// add enters the names of the tool at index.
func (n naming) add(index int, e *entry, shown string, d dress) {
	n.claim(index, byCanonical, string(e.tool.Name))
	n.claim(index, byExposed, e.safe)
	n.claim(index, byExposed, e.short)
	n.claim(index, byExposed, shown)
	if d.name != "" {
		id := e.id.renamed(d.name)
		n.claim(index, byRenaming, id.canonical())
		n.claim(index, byRenaming, id.safe())
		n.claim(index, byRenaming, id.short())
		n.claim(index, byBare, id.tool)
	}
	n.claim(index, byBare, e.id.tool)
}

func (n naming) claim(index int, strength uint8, name string) {
	c, taken := n.claims[name]
	switch {
	case !taken || strength < c.strength:
		n.claims[name] = claim{index: int32(index), strength: strength}
	case strength == c.strength && c.index != int32(index):
		c.disputed = true
		n.claims[name] = c
	}
}

// resolvable returns the undisputed names.
func (n naming) resolvable() map[string]int {
	names := make(map[string]int, len(n.claims))
	for name, c := range n.claims {
		if !c.disputed {
			names[name] = int(c.index)
		}
	}
	return names
}
