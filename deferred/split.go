package deferred

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// directPrefix begins the names of direct views: one server as it is, of which nothing is ever held back.
const directPrefix = "s/"

// Why a tool is listed.
const (
	reasonMeta      = "meta_tool"
	reasonConfig    = "always_load"
	reasonDeclared  = "declared_always_load"
	reasonInterface = "user_interface"
	reasonAll       = "nothing_deferred"
)

// splitKey is what a split depends on besides the surface and the config.
type splitKey struct {
	profile, style, client, audience string
	apps                             bool // the client shows user interfaces
}

// split is a surface that was split, and what the next one can take over. It is immutable.
type split struct {
	full       *tool.Surface
	generation int
	awaits     bool // of the splitting
	out        *tool.Surface
	scope      *search.Scope // what can be found on it
	costs      map[*byte]int // tokens of each declaration, by where it is
	record     tool.SurfaceRecord

	// given are schema digests of tools that a client without a session was given on a list before this one: one that never lists
	// again goes on calling them by name, and has their declarations.
	given map[tool.Name]string
}

// Surface returns full as client sees it: split, where there is so much that it should be, and in any case with the hub's
// own tools. The same surface is returned as long as nothing changes. A direct view is returned as it is.
func (l *Loader) Surface(full *tool.Surface, client tool.Client) *tool.Surface {
	if strings.HasPrefix(full.Profile, directPrefix) {
		return full
	}
	rule := ruleOf(l.rules, client)
	key := splitKey{full.Profile, full.Style, rule.name, full.Audience, client.Apps}
	l.mu.Lock()
	before, generation, settings := l.splits[key], l.generation, l.cfg.of(full.Profile)
	origins := l.origins
	awaits := settings.Mode == ModeAlways && len(l.awaited(full)) > 0
	l.mu.Unlock()
	if before != nil && before.full == full && before.generation == generation && before.awaits == awaits {
		return before.out
	}
	s := (&splitting{full: full, settings: settings, rule: rule, origins: origins, before: before, awaits: awaits, apps: client.Apps,
		hubTools: l.opts.HubTools, reserved: l.reserved}).split()
	s.generation, s.awaits = generation, awaits
	if before != nil && settings.Mode != ModeNever && !rule.whole {
		s.given = before.handedOut()
	}
	l.mu.Lock()
	now := l.splits[key]
	if now != nil && now.full == full && now.generation == generation && now.awaits == awaits {
		l.mu.Unlock()
		return now.out // somebody was quicker
	}
	s.scope = newScope(s.out)
	for _, other := range l.splits { // of the same surface for another client
		if other.full == full {
			s.scope = other.scope
		}
	}
	if now == nil && len(l.splits) >= maxSplits {
		clear(l.splits) // of audiences that are no more, most of them
	}
	l.splits[key] = s
	l.mu.Unlock()
	if now == nil || now.out.Digest != s.out.Digest {
		l.report(now, s) // may wait for a disk: nobody else is to wait with it
	}
	return s.out
}

// maxSplits bounds what is kept: one for each kind of caller and client.
const maxSplits = 1000

// handedOut is given of the split that follows s.
func (s *split) handedOut() map[tool.Name]string {
	if !s.out.IsGiven() {
		return s.given
	}
	given := maps.Clone(s.given)
	if given == nil || len(given) > maxRemembered {
		given = make(map[tool.Name]string, len(s.out.Listed))
	}
	for i := range s.out.Listed {
		if t := s.out.Listed[i].Tool; t.Hub == nil {
			given[t.Name] = t.SchemaDigest
		}
	}
	return given
}

// givenBefore is the schema digest of a tool as a client without a session was given it on an earlier list of the surface's kind.
func (l *Loader) givenBefore(s *tool.Surface, name tool.Name) (digest string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, known := range l.splits {
		if known.out == s {
			digest, ok = known.given[name]
			return digest, ok
		}
	}
	return "", false
}

// Record returns what was recorded of a surface that Surface has returned lately: why its tools are loaded or deferred.
func (l *Loader) Record(s *tool.Surface) (tool.SurfaceRecord, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, known := range l.splits {
		if known.out == s {
			return known.record, true
		}
	}
	return tool.SurfaceRecord{}, false
}

// report records a surface that has come about.
func (l *Loader) report(before, s *split) {
	now := l.opts.Now()
	s.record.CreatedAt = now
	kind, data := tool.EventSurfaceCreated, map[string]any{"surface_id": string(s.out.ID), "loaded": len(s.out.Listed),
		"deferred": len(s.out.Deferred), "excluded": len(s.record.ExcludedTools)}
	if before != nil {
		kind = tool.EventSurfaceUpdated
		data["previous"] = string(before.out.ID)
	}
	l.opts.Record(s.record, tool.Event{Head: tool.HeadOf(tool.ObjectEvent), EventID: tool.NewEventID(), EventType: kind,
		Source: tool.EventSource, Subject: string(s.out.ID), Time: now, Data: data})
}

// splitting is the making of one split.
type splitting struct {
	full     *tool.Surface
	settings Settings
	rule     clientRule
	origins  map[string]*origin
	before   *split
	awaits   bool // servers of the surface have not answered yet
	apps     bool // the client shows user interfaces
	hubTools []*tool.HubTool
	reserved reserved

	costs  map[*byte]int
	tokens int // of all tools

	declared int // of the tools that are listed because they say that they must be
}

func (p *splitting) split() *split {
	p.weigh()
	why := p.reason()
	var listed []tool.Listed
	var deferred []tool.Listed
	reasons := make(map[tool.Name]string)
	// How much there is to list must not decide whose tool a name of the hub's means: clients go on calling what they were shown.
	reserved, renamed := p.settings.Mode != ModeNever || p.rule.whole, false
	for _, t := range p.full.Listed {
		pinned := p.pinned(t)
		if reserved && p.reserved.resembles(t.Name) { // in style native, or by the profile's own naming
			t, renamed = p.renamed(t), true
		}
		if why == "" || pinned != "" {
			listed = append(listed, t)
			reasons[t.Tool.Name] = first(pinned, reasonAll)
			continue
		}
		deferred = append(deferred, t)
	}
	own := p.ownTools(deferred)
	// With mode always there is going to be something to find: who lists once, before the first server is up, finds it later.
	splits := len(deferred) > 0 || why == becauseMode && p.awaits
	if !splits {
		why = ""
	}
	count := 0 // of the hub's own tools, which come first
	for _, t := range p.hubTools {
		if l := own[string(t.Name)]; l != nil && t.Listed(splits) {
			listed, reasons[t.Name] = slices.Insert(listed, count, *l), reasonMeta
			count++
		}
	}
	digest := p.full.Digest
	switch {
	case splits || count > 0:
		digest = p.digest(listed)
	case renamed:
		digest = tool.Digest([]byte(digest + "\nnames of the hub's own"))
	}
	s := &split{full: p.full, costs: p.costs}
	s.out = p.full.With(tool.Split{ID: tool.SurfaceID("srf_" + digest[:min(26, len(digest))]), Digest: digest, Listed: listed, Deferred: deferred,
		Own: own, OwnFirst: reserved, Aliases: p.aliases(), MaxTools: p.rule.cap})
	s.out.ForClient = p.full.ForClient || p.settings.Mode != ModeNever // what is held back depends on what the client takes
	s.record = p.record(s.out, why, reasons)
	return s
}

// digest tells splits apart.
func (p *splitting) digest(listed []tool.Listed) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", p.full.Digest)
	for _, t := range listed {
		if t.Tool.Hub != nil {
			fmt.Fprintf(&text, "%s\n", t.Declaration)
		}
		fmt.Fprintf(&text, "%q\n", t.Tool.Name)
	}
	return tool.Digest([]byte(text.String()))
}

// weigh estimates what the tools cost. What was weighed before is not weighed again.
func (p *splitting) weigh() {
	p.costs = make(map[*byte]int, len(p.full.Listed))
	for _, t := range p.full.Listed {
		if len(t.Declaration) == 0 {
			continue
		}
		at := &t.Declaration[0]
		cost, known := 0, false
		if p.before != nil {
			cost, known = p.before.costs[at]
		}
		if !known {
			cost = estimate(t.Declaration)
		}
		p.costs[at] = cost
		p.tokens += cost
	}
}

// Why tools are deferred.
const (
	becauseMode   = "mode_always"
	becauseBudget = "over_token_budget"
	becauseCap    = "over_client_tool_cap"
)

// reason is why the surface is to be split; "" where it is not.
func (p *splitting) reason() string {
	switch {
	case p.settings.Mode == ModeNever || p.rule.whole:
		return ""
	case p.settings.Mode == ModeAlways:
		return becauseMode
	case p.tokens > p.budget():
		return becauseBudget
	case p.rule.cap > 0 && len(p.full.Listed) > p.rule.cap:
		return becauseCap
	}
	return ""
}

func (p *splitting) budget() int {
	if p.rule.defers {
		return p.settings.Budget * patience
	}
	return p.settings.Budget
}

// pinned is why a tool is never deferred; "" where it may be.
func (p *splitting) pinned(t tool.Listed) string {
	a := annotations(t.Declaration)
	switch {
	case p.settings.pinned(t.Tool.Name):
		return reasonConfig
	case a.interfaced && p.apps:
		return reasonInterface
	case a.alwaysLoad && p.declared+p.cost(t) <= p.settings.Budget/declaredShare:
		p.declared += p.cost(t)
		return reasonDeclared
	}
	return ""
}

// declaredShare is the part of the budget, one in so many, that servers get which say themselves that their tools must
// always be loaded: every client pays for that, whatever it works on, and servers are not asked whom they stand beside.
const declaredShare = 10

func (p *splitting) cost(t tool.Listed) int {
	if len(t.Declaration) == 0 {
		return 0
	}
	return p.costs[&t.Declaration[0]]
}

// renamed shows a tool under its canonical name: the name that it would have is the hub's own on this surface.
func (p *splitting) renamed(t tool.Listed) tool.Listed {
	declaration, err := rawjson.Set(t.Declaration, "name", rawjson.Quote(string(t.Tool.Name)))
	if err == nil {
		t.Name, t.Declaration = string(t.Tool.Name), declaration
	}
	return t
}

// aliases are the further names that the settings give tools. One that two tools would have is nobody's.
func (p *splitting) aliases() map[string]*tool.Listed {
	out := make(map[string]*tool.Listed)
	for _, h := range p.settings.Hints {
		for _, alias := range h.Aliases {
			l, ok := p.full.Resolve(h.Match)
			if !ok || string(l.Tool.Name) != h.Match {
				continue // not on this surface
			}
			if other, taken := out[alias]; taken && other != l {
				l = nil // and stays nobody's, however many follow
			}
			out[alias] = l
		}
	}
	for alias, l := range out {
		if l == nil {
			delete(out, alias)
		}
	}
	return out
}

// maxRecorded is how many deferred tools stand by name in the record of a surface. Of more, it says whose they are: a server
// that has any has all of them there, but for those that are listed.
const maxRecorded = 1000

func (p *splitting) record(s *tool.Surface, why string, reasons map[tool.Name]string) tool.SurfaceRecord {
	r := tool.SurfaceRecord{Head: tool.HeadOf(tool.ObjectSurface), SurfaceID: s.ID, Scope: "profile:" + s.Profile,
		Producer: tool.EventSource, LoadedTools: make([]tool.SurfaceTool, 0, len(s.Listed)),
		DeferredTools: make([]tool.Name, 0, len(s.Deferred)), BlockedTools: []tool.SurfaceTool{},
		ExcludedTools: []tool.Exclusion{}, SurfaceReason: first(why, reasonAll), Digest: s.Digest}
	for _, e := range s.Excluded {
		if e.Code == tool.CodePolicyBlocked {
			r.BlockedTools = append(r.BlockedTools, tool.SurfaceTool{ToolID: tool.Name(e.Tool), Name: e.Tool, Reason: e.Code})
			continue
		}
		r.ExcludedTools = append(r.ExcludedTools, e)
	}
	loaded := 0
	for _, t := range s.Listed {
		r.LoadedTools = append(r.LoadedTools, tool.SurfaceTool{ToolID: t.Tool.Name, Name: t.Name, Reason: reasons[t.Tool.Name]})
		loaded += estimate(t.Declaration)
	}
	for _, t := range s.Deferred {
		name := t.Tool.Name
		if len(s.Deferred) > maxRecorded {
			// A record of each change must not push everything else out of the journal.
			name = tool.Name(strings.TrimSuffix(string(name), t.Tool.Native) + "*")
			if n := len(r.DeferredTools); n > 0 && r.DeferredTools[n-1] == name {
				continue
			}
		}
		r.DeferredTools = append(r.DeferredTools, name)
	}
	r.SelectionPolicy = map[string]any{"mode": string(p.settings.Mode), "budget_tokens": p.budget(), "style": s.Style,
		"estimated_tokens": p.tokens, "loaded_tokens": loaded, "deferred_reason": tool.ReasonDeferred,
		"deferred_total": len(s.Deferred)}
	if p.rule.name != "" {
		r.Model = map[string]any{"client": p.rule.name}
		if p.rule.cap > 0 {
			r.Model["max_tools"] = p.rule.cap
		}
		if p.rule.defers {
			r.Model["defers_itself"] = true
		}
	}
	return r
}

// annotated is what a tool's _meta says of deferring it.
type annotated struct {
	alwaysLoad, interfaced bool
	searchHint             string
}

// maxHint bounds a tool's own search hint.
const maxHint = 300

func annotations(declaration json.RawMessage) annotated {
	var a annotated
	if !bytes.Contains(declaration, []byte(`"_meta"`)) {
		return a
	}
	meta, ok := rawjson.Get(declaration, "_meta")
	if !ok || !rawjson.IsObject(meta) {
		return a
	}
	always, _ := rawjson.Get(meta, "anthropic/alwaysLoad")
	a.alwaysLoad = string(always) == "true"
	hint, _ := rawjson.Get(meta, "anthropic/searchHint")
	text, _ := rawjson.String(hint)
	a.searchHint = oneLine(text, maxHint)
	ui, hasUI := rawjson.Get(meta, "ui")
	_, hasPage := rawjson.Get(meta, "ui/resourceUri") // as it was written first
	a.interfaced = hasUI && rawjson.IsObject(ui) || hasPage
	return a
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
