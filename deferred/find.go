package deferred

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// maxNearest bounds how many names are offered in place of an unknown one.
const maxNearest = 3

// search executes a call of the search on the call's surface.
func (l *Loader) search(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
	reply := tool.Reply{Mapping: mapping(SearchName)}
	q, err := readQuery(e.Arguments)
	if err != nil {
		return reply, err
	}
	f := &found{loader: l, refs: l.signer(), query: q, surface: e.Surface, scope: l.scopeOf(e.Surface), actor: e.Actor,
		people: e.Actor.Client.Habits().TakesAll}
	f.pending, f.down = l.waits(e.Surface, e.Session)
	f.find(ctx, l.searched())
	f.noteServers()
	f.fit()
	if ctx.Err() != nil {
		return reply, &tool.Failure{Class: tool.ClassCanceled, Message: "the search was canceled"}
	}
	if reply.Result, err = f.result(); err != nil {
		return reply, fmt.Errorf("search tools: %w", err)
	}
	f.record(e)
	return reply, nil
}

// hit is a tool that was found.
type hit struct {
	listed   *tool.Listed
	deferred bool
	score    float64
	why      []string
	told     match // what the answer says of it
}

// found collects the answer to one query.
type found struct {
	loader  *Loader
	refs    *signer
	query   query
	surface *tool.Surface
	scope   *search.Scope // the tools that the caller may find
	actor   tool.Actor
	people  bool // people read the answer, and no model

	hits    []hit
	more    []string // names shown of tools that come after the hits
	weak    bool     // none of them fits
	missing []missing
	pending []string
	down    []unavailable
	notes   []string
	stray   bool // the query names a server that is not there
}

// unavailable is a server that needs a person's attention before it answers.
type unavailable struct {
	Server string `json:"server"`
	Needs  string `json:"needs"`
}

// maxNeeds bounds unavailable.Needs, in bytes.
const maxNeeds = 300

// missing is a name that no tool has.
type missing struct {
	Name    string   `json:"name"`
	Nearest []string `json:"nearest"`
}

func (f *found) tool(id string) *tool.Listed { return ofSurface(f.surface, id) }

// ofSurface returns the tool of that canonical name, listed or deferred; nil if the surface has none.
func ofSurface(s *tool.Surface, id string) *tool.Listed {
	if l, ok := s.HeldBack(tool.Name(id)); ok {
		return l // without the map of all names
	}
	l, ok := s.Resolve(id)
	if !ok || string(l.Tool.Name) != id || l.Tool.Hub != nil {
		return nil
	}
	return l
}

// scopeOf returns the scope of searches on a surface, the same one for as long as the surface is the same.
func (l *Loader) scopeOf(s *tool.Surface) *search.Scope {
	if known, ok := l.splitOf(s); ok {
		return known.scope
	}
	return newScope(s) // of a moment ago
}

func newScope(s *tool.Surface) *search.Scope {
	return search.NewScope(func(id string) bool { return ofSurface(s, id) != nil })
}

func (f *found) find(ctx context.Context, x *search.Index) {
	q := search.Query{Text: f.query.words, Limit: f.query.limit, Servers: f.query.servers, Scope: f.scope}
	var a search.Answer
	switch f.query.kind {
	case querySelect:
		f.selected(x)
		return
	case queryRegex:
		q.Shown = f.shown
		a = x.Regexp(ctx, f.query.pattern, q)
	default:
		q.Learned = f.loader.learned(ctx, f.actor.Ref())
		a = x.Search(ctx, q)
		f.named(&a)
	}
	for _, h := range a.Hits {
		if l := f.tool(h.ID); l != nil { // servers may have come or gone since
			f.add(l, h.Score, h.Fields)
		}
	}
	f.weak = a.Weak
	if f.notes = a.Notes; f.weak && f.people {
		f.notes = append(f.notes, "Nothing fits: these are the nearest.")
	}
}

// shown returns the name that the caller sees of a tool; "" if the tool has gone meanwhile.
func (f *found) shown(id string) string {
	if l := f.tool(id); l != nil {
		return f.loader.reserved.shownName(l)
	}
	return ""
}

// named puts a tool first if the query is its name: profiles may give tools names that the index does not know.
func (f *found) named(a *search.Answer) {
	if strings.ContainsAny(f.query.words, " \n") {
		return // no client takes such a name, and the first one that is resolved makes the map of all
	}
	l, ok := f.surface.Resolve(f.query.words)
	if !ok || l.Tool.Hub != nil || len(f.query.servers) > 0 && !slices.Contains(f.query.servers, l.Tool.Server) {
		return
	}
	id := string(l.Tool.Name)
	h := search.Hit{ID: id, Score: 1, Fields: []string{"name"}}
	for i, other := range a.Hits {
		h.Score = max(h.Score, other.Score)
		if other.ID == id {
			a.Hits = slices.Delete(a.Hits, i, i+1)
			break
		}
	}
	a.Weak = false
	a.Hits = append([]search.Hit{h}, a.Hits...)
	a.Hits = a.Hits[:min(len(a.Hits), f.query.limit)]
}

// selected finds tools by their names.
func (f *found) selected(x *search.Index) {
	for _, name := range f.query.names {
		if l, ok := f.surface.Resolve(name); ok && l.Tool.Hub == nil && f.ofServers(l) {
			f.add(l, 1, []string{"name"})
			continue
		}
		some := false
		for _, id := range x.Names(name, f.scope) {
			if l := f.tool(id); l != nil && f.ofServers(l) {
				f.add(l, 1, []string{"name"})
				some = true
			}
		}
		if some {
			continue
		}
		m := missing{Name: name, Nearest: []string{}}
		if len(f.missing) < maxMissing {
			for _, id := range x.Nearest(name, maxNearest, f.scope) {
				if l := f.tool(id); l != nil {
					m.Nearest = append(m.Nearest, f.loader.reserved.shownName(l))
				}
			}
		}
		f.missing = append(f.missing, m)
	}
}

// noteServers notes unknown servers of the query.
func (f *found) noteServers() {
	if f.surface.Features == nil {
		return
	}
	there := f.surface.Features.Servers
	for _, server := range f.query.servers {
		if !slices.Contains(there, server) {
			f.stray = true
			f.notes = append(f.notes, fmt.Sprintf("There is no server %q here: %s", oneLine(server, maxSummary),
				textfile.DidYouMean(server, there, "use some of "+oneLine(strings.Join(there, ", "), maxSaid))))
		}
	}
}

func (f *found) ofServers(l *tool.Listed) bool {
	return len(f.query.servers) == 0 || slices.Contains(f.query.servers, l.Tool.Server)
}

func (f *found) add(l *tool.Listed, score float64, why []string) {
	if slices.ContainsFunc(f.hits, func(h hit) bool { return h.listed.Tool == l.Tool }) || len(f.hits) >= maxSelected {
		return
	}
	f.hits = append(f.hits, hit{listed: l, deferred: f.surface.IsDeferred(l.Tool.Name), score: score, why: why})
}

// Bounds of an answer to a model, which pays for it in every request that follows.
const (
	callable = 10 // tools found by words or a pattern that can be called at once
	maxWeak  = 5  // names where nothing fits

	// maxAnswer is the room for what was found, in estimated tokens: with all else, an answer has 4,000 at most. Only one
	// declaration that was asked for by its name may be longer.
	maxAnswer = 3300
)

// fit decides what the answer says of each hit: all get a signature, as far as there is room, the
// best its declaration, too, and so do those that were asked for by name. The others are names.
func (f *found) fit() {
	left, named := maxAnswer, f.query.kind == querySelect
	if f.weak && !f.people {
		f.hits = f.hits[:min(len(f.hits), maxWeak)]
		f.rest(0, left)
	}
	for i := range f.hits {
		h := &f.hits[i]
		m := signed(f.loader.reserved.shownName(h.listed), h.listed)
		if f.people {
			m.Score, m.Why = math.Round(h.score*1000)/1000, h.why
		} else {
			if m.cost() > maxAnswer/callable {
				m.Signature, m.Summary = "(…)", ""
			}
			if i >= callable && (!named || m.cost() > left) {
				left = f.rest(i, left)
				break
			}
			left -= m.cost()
		}
		m.Ref = f.refs.mint(h.listed.Tool, f.actor.Ref())
		h.told = m
	}
	for i := range f.hits {
		m := &f.hits[i].told
		if f.people || i > 0 && !named {
			break
		}
		declared := match{Name: m.Name, Ref: m.Ref, Declaration: brief(m.Name, f.hits[i].listed.Declaration())}
		more := declared.cost() - m.cost()
		if more > left && (i > 0 || !named) {
			f.notes = append(f.notes, fmt.Sprintf("The declaration of %s is too long for this answer: select:%s gets it.",
				m.Name, m.Name))
			break
		}
		*m, left = declared, left-more
	}
}

// rest leaves of the hits from there on the names that there is room for. It returns the room that is left.
func (f *found) rest(from, left int) int {
	for _, h := range f.hits[from:] {
		name := f.loader.reserved.shownName(h.listed)
		cost := tokensOf([]byte(name)) + 2
		if cost > left {
			break
		}
		f.more, left = append(f.more, name), left-cost
	}
	f.hits = f.hits[:from]
	return left
}

// record records what was found, and notes what the session has loaded.
func (f *found) record(e *tool.Execution) {
	var records []tool.Record
	var loaded []*tool.Tool
	by := finding{invocation: e.Invocation, actor: e.Actor, surface: e.Surface}
	for _, h := range f.hits {
		if !h.deferred {
			continue
		}
		records = append(records, f.loader.records(by, h.listed, h.told.Ref, false)...)
		if h.told.Declaration != nil {
			records = append(records, f.loader.records(by, h.listed, h.told.Ref, true)...)
			loaded = append(loaded, h.listed.Tool)
		}
	}
	if e.Record != nil && len(records) > 0 {
		e.Record(records...)
	}
	if e.Loaded != nil && len(loaded) > 0 {
		e.Loaded.Load(e.Surface, loaded...)
	}
}
