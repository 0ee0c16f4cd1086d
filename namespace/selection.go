package namespace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/mcp-toolhub/mcp-toolhub/internal/parallel"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// selection holds the tools, or the prompts, that a profile shows.
type selection struct {
	profile   *Profile
	direct    bool                     // of a direct view: names are the server's own affair
	owners    func() map[string]*entry // the hub's
	visible   []*entry
	overrides []toolOverride // of visible, by index
	twins     []*entry       // refused, but nobody else gets their names
	excluded  []tool.Exclusion
	digest    [sha256.Size]byte // of all from which lists are made, other than the style
	pages     map[string]bool   // looks of the disputed user interfaces
}

// take selects from sp.
func (s *selection) take(sp *space, offers func(server string) bool, selects func(canonical string) (toolOverride,
	bool)) {
	s.visible, s.overrides = make([]*entry, 0, len(sp.entries)), make([]toolOverride, 0, len(sp.entries))
	for _, e := range sp.entries {
		if !offers(e.server) {
			continue
		}
		if d, ok := selects(string(e.name)); ok {
			s.visible, s.overrides = append(s.visible, e), append(s.overrides, d)
		}
	}
	for _, e := range sp.twins {
		if _, ok := selects(string(e.name)); ok && offers(e.server) {
			s.twins = append(s.twins, e)
		}
	}
	for _, r := range sp.refusals {
		if !offers(r.server) {
			continue
		}
		if _, ok := selects(r.canonical); r.canonical == "" || ok {
			s.excluded = append(s.excluded, r.Exclusion)
		}
	}
	s.sum()
}

// sum computes the digest.
func (s *selection) sum() {
	sum, text := sha256.New(), []byte(nil)
	for i, e := range s.visible {
		d := s.overrides[i]
		text = appendTexts(append(text[:0], e.digest[:]...), string(e.name), d.name, d.title, d.description)
		sum.Write(text)
	}
	for _, e := range s.twins { // in style native they keep others from being listed
		fmt.Fprintf(sum, "\x00%q", e.name)
	}
	sum.Sum(s.digest[:0])
}

// appendTexts appends texts so that no others give the same bytes.
func appendTexts(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// markDisputed makes tools name the pages of these looks in the hub's form. The digest covers that.
func (s *selection) markDisputed(pages map[string]bool) {
	if len(pages) == 0 {
		return
	}
	s.pages = pages
	sum := sha256.New()
	sum.Write(s.digest[:])
	for _, e := range s.visible {
		if s.pageIn(e) != "" {
			fmt.Fprintf(sum, "%q", e.name)
		}
	}
	sum.Sum(s.digest[:0])
}

// pageIn returns the page that e's declaration names here; "" if it stays unchanged.
func (s *selection) pageIn(e *entry) string {
	if e.page == "" || !s.pages[keyOf(e.page, normalURI(e.page))] {
		return ""
	}
	return hubPage(e.server, e.page)
}

// same reports whether s shows and refuses exactly what old does.
func (s *selection) same(old *selection) bool {
	return slices.Equal(s.visible, old.visible) && slices.Equal(s.excluded, old.excluded) &&
		maps.Equal(s.pages, old.pages)
}

// row is one entry of a tools/list.
type row struct {
	shown       string
	page        string          // named by the declaration in place of the origin's; "" if it is the origin's
	declaration json.RawMessage // nil where it is a tool's own but for its name
}

// styledSelection is a selection in one style.
type styledSelection struct {
	entries  []*entry
	rows     []row // of entries, by index
	excluded []tool.Exclusion
	names    func() map[string]int // the names that resolve
	digest   string
}

// inStyle gives every subject its name in style.
func (s *selection) inStyle(style Style) styledSelection {
	shown := make([]string, len(s.visible))
	for i, e := range s.visible {
		shown[i] = s.shownIn(style, i, e)
	}
	refused := s.refuse(style, shown)
	at := make([]int, len(s.visible)) // in the list
	l := styledSelection{excluded: append([]tool.Exclusion(nil), s.excluded...),
		names:   func() map[string]int { return s.named(shown, at) },
		entries: make([]*entry, 0, len(s.visible)), rows: make([]row, 0, len(s.visible))}
	made, faults := make([]row, len(s.visible)), make([]error, len(s.visible))
	parallel.Do(len(s.visible), parallel.Few, func(i int) {
		if _, ok := refused[i]; !ok {
			made[i], faults[i] = s.row(i, shown[i])
		}
	})
	sum, text := sha256.New(), []byte(nil)
	for i, e := range s.visible {
		if x, ok := refused[i]; ok {
			l.excluded, at[i] = append(l.excluded, x), nobody
			continue
		}
		if err := faults[i]; err != nil {
			l.excluded = append(l.excluded, tool.Exclusion{Tool: string(e.name), Origin: e.server,
				Code:   codeDeclaration,
				Reason: fmt.Sprintf("the declaration cannot be written (%v): have the server's author mend it", err)})
			at[i] = nameless
			continue
		}
		at[i], l.entries, l.rows = len(l.entries), append(l.entries, e), append(l.rows, made[i])
		text = appendTexts(append(text[:0], e.digest[:]...), shown[i], s.overrides[i].title, s.overrides[i].description,
			made[i].page)
		sum.Write(text) // all that the declaration is made from
	}
	l.digest = hex.EncodeToString(sum.Sum(nil))
	return l
}

// row returns how visible[i] is listed under the name shown.
func (s *selection) row(i int, shown string) (row, error) {
	e := s.visible[i]
	page := s.pageIn(e)
	if d := s.overrides[i]; e.tool != nil && page == "" && d.title == "" && d.description == "" {
		return row{shown: shown}, rawjson.Members(e.declaration, func(rawjson.Member) bool { return true })
	}
	declaration, err := declare(e, shown, s.overrides[i])
	if err == nil && page != "" {
		declaration, err = repaged(declaration, page)
	}
	return row{shown: shown, page: page, declaration: declaration}, err
}

// shownIn returns the name under which visible[i] would be listed.
func (s *selection) shownIn(style Style, i int, e *entry) string {
	if name := s.overrides[i].name; name != "" {
		return e.id.renamed(name).in(style)
	}
	switch {
	case style == StyleSafe:
		return e.safe
	case style == StyleShort:
		return e.short
	case style == StyleNative && s.direct:
		return e.native
	case style == StyleNative:
		return e.id.tool
	}
	return string(e.name)
}

func (id identity) renamed(name string) identity {
	id.tool = name
	return id
}

// refuse finds the shown names that cannot stand on one surface, and returns an exclusion for each, by index.
//
// Canonical, safe and short names are kept apart for the whole hub already; what is left are native names and those
// that a profile gives. Such a name never takes a tool's own one: a server that calls its tool like one of the hub, or
// github__search cannot push the bearer of that name off the surface. Of tools that would look alike otherwise, the
// one that was not renamed stays; where that does not decide, none does.
func (s *selection) refuse(style Style, shown []string) map[int]tool.Exclusion {
	if s.direct {
		return s.repeated()
	}
	if len(s.visible) == 0 || style != StyleNative &&
		!slices.ContainsFunc(s.overrides, func(d toolOverride) bool { return d.name != "" }) {
		return nil
	}
	owners, present := s.owners(), make(map[*entry]bool, len(s.visible)+len(s.twins))
	for _, e := range slices.Concat(s.visible, s.twins) {
		present[e] = true
	}
	refused := make(map[int]tool.Exclusion)
	kept := make(map[string]*entry, len(s.twins)) // looks that stay the twins'
	for _, e := range s.twins {
		kept[foldLook(e.id.in(style))] = e
	}
	alike := make(map[string][]int, len(shown))
	for i, e := range s.visible {
		if owner := owners[shown[i]]; owner != e && present[owner] {
			refused[i] = s.clash(style, i, owner, codeDuplicate)
			continue
		}
		look := foldLook(shown[i])
		if twin := kept[look]; twin != nil && owners[shown[i]] != e {
			refused[i] = s.clash(style, i, twin, codeTwin)
			continue
		}
		alike[look] = append(alike[look], i)
	}
	for _, group := range alike {
		if len(group) < 2 {
			continue
		}
		keep := s.keeper(group, shown)
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
			refused[i] = s.clash(style, i, s.visible[twin], code)
		}
	}
	return refused
}

// repeated finds what a direct view cannot show: a name that its server lists more than once stands for nothing, and
// neither does an empty one.
func (s *selection) repeated() map[int]tool.Exclusion {
	refused := make(map[int]tool.Exclusion)
	first := make(map[string]int, len(s.visible))
	for i, e := range s.visible {
		j, again := first[e.native]
		switch {
		case e.native == "" && e.fault != nil:
			refused[i] = *e.fault
		case again:
			refused[j], refused[i] = conflictExclusion(s.visible[j], e), conflictExclusion(e, s.visible[j])
		default:
			first[e.native] = i
		}
	}
	return refused
}

// keeper returns the one of group, whose shown names look alike, that has a better right to its name than all others,
// or -1: its canonical, safe or short name before its native one, and that before a name which the profile gives.
func (s *selection) keeper(group []int, shown []string) int {
	owners, best, strength, shared := s.owners(), -1, 0, false
	for _, i := range group {
		right := 1
		switch {
		case owners[shown[i]] == s.visible[i]:
			right = 3
		case s.overrides[i].name == "":
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

// clash returns the exclusion of visible[i] because of twin.
func (s *selection) clash(style Style, i int, twin *entry, code string) tool.Exclusion {
	e := s.visible[i]
	return tool.Exclusion{
		Tool: string(e.name), Origin: e.server, Code: code, Twin: twin.server,
		Reason: fmt.Sprintf("in profile %q, style %s, it would be shown as %s, which can be taken for %s of %s: "+
			"rename or "+
			"exclude one of them in the profile, or choose another style", s.profile.Name, style,
			strconv.QuoteToASCII(s.shownIn(style, i, e)), strconv.QuoteToASCII(string(twin.name)), originOf(twin)),
	}
}

// declare returns the declaration of e with the shown name and the overrides in place; every other
// byte is the origin's.
func declare(e *entry, shown string, d toolOverride) (json.RawMessage, error) {
	out, err := renamed(e.declaration, "name", e.native, shown)
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
	byListing   uint8 = iota // as the one server of a direct view lists it
	byCanonical              // what records and policy know the tool by
	byExposed                // safe, short, and as listed: never shared by two tools of a surface
	byRenaming               // the other forms of a name that the profile gives
	byBare                   // the origin's own name, or the profile's, with nothing before it
)

// Indexes of what is not on the surface: a name that nobody claims stands for nothing, and the nameless claim none.
const (
	nobody   = -1
	nameless = -2
)

// named returns the names that resolve where visible is shown under these names, at these places.
func (s *selection) named(shown []string, at []int) map[string]int {
	n := naming{make(map[string]claim, 4*len(s.visible))}
	for i, e := range s.visible {
		switch {
		case at[i] == nobody:
			n.add(nobody, e, string(e.name), toolOverride{})
		case at[i] >= 0:
			n.add(at[i], e, shown[i], s.overrides[i])
			if s.direct {
				n.claim(at[i], byListing, shown[i])
			}
		}
	}
	for _, e := range s.twins {
		n.add(nobody, e, string(e.name), toolOverride{})
	}
	return n.resolvable()
}

// add enters the names of the tool at index.
func (n naming) add(index int, e *entry, shown string, d toolOverride) {
	n.claim(index, byCanonical, string(e.name))
	if e.safe != "" { // a name without its parts has no other forms
		n.claim(index, byExposed, e.safe)
		n.claim(index, byExposed, e.short)
	}
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
		if !c.disputed && c.index != nobody {
			names[name] = int(c.index)
		}
	}
	return names
}
