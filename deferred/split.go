package deferred

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
	"github.com/mcp-toolhub/mcp-toolhub/internal/parallel"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Why a tool is listed.
const (
	reasonMeta      = "meta_tool"
	reasonConfig    = "always_load"
	reasonDeclared  = "declared_always_load"
	reasonInterface = "user_interface"
	reasonAll       = "nothing_deferred"
)

// splitKey names a kind of callers: those of one key see the same split of a surface.
type splitKey struct {
	profile, style, audience string
	results                  string // see tool.Surface.ResultsKey
	habits                   tool.Habits
	apps                     bool // the client shows user interfaces
}

// basis decides how a surface is split. Two splits of one key with the same basis are the same.
type basis struct {
	full       *tool.Surface
	generation int
	awaits     bool // in mode always: servers of the surface have not answered yet
}

// split is a surface that was split, with what the next split can take over. It is immutable.
type split struct {
	basis
	out    *tool.Surface
	scope  *search.Scope // of searches on out
	record tool.SurfaceRecord

	// given are the schema digests of tools on earlier lists of clients without a session. Such a client may never list
	// again: it goes on calling these tools by name.
	given map[tool.Name]string
}

// Surface returns full as client sees it: split if its tools cost too much, and always with the
// hub's own tools. The same surface is returned as long as nothing changes. A direct view stays
// listed as it is: it gets the batch tool alone, which can be called there and is not listed.
func (l *Loader) Surface(full *tool.Surface, client tool.Client) *tool.Surface {
	key := splitKey{full.Profile, full.Style, full.Audience, full.ResultsKey, client.Habits(), client.Apps}
	if strings.HasPrefix(full.Profile, tool.DirectPrefix) { // the same for all clients
		key = splitKey{profile: full.Profile, style: full.Style, audience: full.Audience}
	}
	l.mu.Lock()
	p := l.splitting(key, full)
	l.mu.Unlock()
	if p.before != nil && p.before.basis == p.basis {
		return p.before.out
	}
	s := p.split()
	l.keepRecord(s, p.before)
	if p.before != nil && p.settings.Mode != ModeNever && !p.habits.TakesAll {
		s.given = p.before.handedOut()
	}
	l.mu.Lock()
	now := l.splits[key]
	if now != nil && now.basis == p.basis {
		l.mu.Unlock()
		return now.out // another request was quicker
	}
	s.scope = newScope(s.out)
	for _, other := range l.splits { // of the same surface for another client
		if other.full == full {
			s.scope = other.scope
		}
	}
	if now == nil && len(l.splits) >= maxSplits {
		clear(l.splits) // most are of audiences that no longer exist
	}
	l.splits[key] = s
	l.mu.Unlock()
	return s.out
}

// maxSplits bounds the splits that are kept, one for each splitKey.
const maxSplits = 1000

// maxGiven bounds the tools that a split remembers as given.
const maxGiven = 20000

// handedOut returns the field given for the split that follows s.
func (s *split) handedOut() map[tool.Name]string {
	if !s.out.IsGiven() {
		return s.given
	}
	given := maps.Clone(s.given)
	if given == nil || len(given) > maxGiven {
		given = make(map[tool.Name]string, len(s.out.Listed))
	}
	for i := range s.out.Listed {
		if t := s.out.Listed[i].Tool; t.Hub == nil {
			given[t.Name] = t.SchemaDigest
		}
	}
	return given
}

// splitOf returns the split that made surface; an empty one and false if it is no longer kept.
func (l *Loader) splitOf(surface *tool.Surface) (*split, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.splits {
		if s.out == surface {
			return s, true
		}
	}
	return &split{}, false
}

// Record returns the record of a surface that Surface has returned lately: why its tools are loaded or deferred.
func (l *Loader) Record(s *tool.Surface) (tool.SurfaceRecord, bool) {
	known, ok := l.splitOf(s)
	return known.record, ok
}

// keepRecord gives a new surface its record, its event, and the id that follows from the record: two
// clients, profiles or policies with the same list have a surface each, because their records
// differ. before is the surface in whose place it comes; nil for none.
func (l *Loader) keepRecord(s, before *split) {
	r := &s.record
	r.SurfaceID, r.CreatedAt = "", time.Time{}
	if l.opts.Describe != nil {
		l.opts.Describe(r)
	}
	if text, err := rawjson.Encode(r); err == nil { // else its digest, which is that of the list, stays the id
		s.out.ID = tool.SurfaceID("srf_" + tool.Digest(text)[:26])
	}
	r.SurfaceID, r.CreatedAt = s.out.ID, l.opts.Now().UTC()
	kind, data := tool.EventSurfaceCreated, map[string]any{"surface_id": string(s.out.ID), "loaded": len(s.out.Listed),
		"deferred": len(s.out.Deferred), "excluded": len(s.record.ExcludedTools)}
	if before != nil && before.out.ID != s.out.ID {
		kind, data["previous"] = tool.EventSurfaceUpdated, string(before.out.ID)
	}
	s.out.KeepRecord(r, tool.Event{Head: tool.HeadOf(tool.ObjectEvent), EventID: tool.NewEventID(), EventType: kind,
		Source: tool.EventSource, Subject: string(s.out.ID), Time: s.record.CreatedAt, Data: data})
}

// splitting makes one split.
type splitting struct {
	basis
	settings Settings
	habits   tool.Habits
	origins  map[string]*origin
	before   *split
	apps     bool // the client shows user interfaces
	hubTools []*tool.HubTool
	reserved reserved

	tokens   int // of all tools
	loaded   int // of those that are listed
	declared int // of those that are listed because their declarations ask for it
}

// splitting prepares the split of full for the callers of key. The caller holds mu.
func (l *Loader) splitting(key splitKey, full *tool.Surface) splitting {
	settings, ok := l.cfg.Profiles[key.profile]
	if !ok {
		settings = l.cfg.Default
	}
	if strings.HasPrefix(key.profile, tool.DirectPrefix) {
		settings = Settings{Mode: ModeNever}
	}
	return splitting{basis: basis{full, l.generation, settings.Mode == ModeAlways && l.awaits(full)},
		settings: settings, habits: key.habits, origins: l.origins, before: l.splits[key], apps: key.apps,
		hubTools: l.opts.HubTools, reserved: l.reserved}
}

// awaits reports whether a server of a surface has not answered yet. The caller holds mu.
func (l *Loader) awaits(s *tool.Surface) bool {
	return s.Features != nil && slices.ContainsFunc(s.Features.Servers,
		func(server string) bool { return isPending(l.origins, server) })
}

// split copies p, so that only a call that splits allocates.
func (p splitting) split() *split {
	costs, says := make([]int, len(p.full.Listed)), make([]annotated, len(p.full.Listed))
	parallel.Do(len(costs), parallel.Few, func(i int) {
		declaration := p.full.Listed[i].Unnamed()
		costs[i] = tokensNamed(declaration, rawjson.Quote(p.full.Listed[i].Name))
		says[i] = annotations(declaration)
	})
	for _, cost := range costs {
		p.tokens += cost
	}
	why := p.reason()
	var listed, deferred []tool.Listed
	reasons := make(map[tool.Name]string, len(p.full.Listed))
	// How much there is to list must not decide whose tool a name of the hub's means: clients go on
	// calling what they were shown.
	reserved, renamed := p.settings.Mode != ModeNever || p.habits.TakesAll, false
	for i, t := range p.full.Listed {
		pinned := p.pinned(t, says[i], costs[i])
		if reserved && p.reserved.resembles(t.Name) { // in style native, or by the profile's own naming
			t, renamed = p.renamed(t), true
		}
		if why == "" || pinned != "" {
			listed, reasons[t.Tool.Name] = append(listed, t), cmp.Or(pinned, reasonAll)
			p.loaded += costs[i]
		} else {
			deferred = append(deferred, t)
		}
	}
	own := p.ownTools(deferred)
	// With mode always there is going to be something to find: who lists once, before the first
	// server is up, finds it later.
	splits := len(deferred) > 0 || why == becauseMode && p.awaits
	if !splits {
		why = ""
	}
	count := 0 // of the hub's own tools, which come first
	for _, t := range p.hubTools {
		if l := own[string(t.Name)]; l != nil && !strings.HasPrefix(p.full.Profile, tool.DirectPrefix) &&
			t.Listed(splits, p.full.Results.Cuts()) {
			listed, reasons[t.Name] = slices.Insert(listed, count, *l), reasonMeta
			p.loaded += Tokens(l.Declaration())
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
	s := &split{basis: p.basis}
	s.out = p.full.With(tool.Split{ID: tool.SurfaceID("srf_" + digest[:min(26, len(digest))]), Digest: digest,
		Listed: listed, Deferred: deferred,
		Own: own, OwnFirst: reserved, Habits: p.habits, ListsFound: p.settings.ListFound,
		DeferredTokens: max(0, p.tokens-p.loaded)}) // with the hub's own tools a list may be larger
	// what is held back depends on what the client takes
	s.out.ForClient = p.full.ForClient || p.settings.Mode != ModeNever
	s.record = p.record(s.out, why, reasons)
	return s
}

// digest returns a text that differs between splits.
func (p *splitting) digest(listed []tool.Listed) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n", p.full.Digest)
	for _, t := range listed {
		if t.Tool.Hub != nil {
			fmt.Fprintf(&text, "%s\n", t.Declaration())
		}
		fmt.Fprintf(&text, "%q\n", t.Tool.Name)
	}
	return tool.Digest([]byte(text.String()))
}

// Why tools are deferred.
const (
	becauseMode   = "mode_always"
	becauseBudget = "over_token_budget"
	becauseCap    = "over_client_tool_cap"
)

// reason returns why the surface is split; "" if it is not.
func (p *splitting) reason() string {
	switch {
	case p.settings.Mode == ModeNever || p.habits.TakesAll:
		return ""
	case p.settings.Mode == ModeAlways:
		return becauseMode
	case p.tokens > p.budget():
		return becauseBudget
	case p.habits.MaxTools > 0 && len(p.full.Listed) > p.habits.MaxTools:
		return becauseCap
	}
	return ""
}

// patience multiplies the budget for a client that searches by itself: a tool that it keeps from its
// model costs only the name.
const patience = 20

func (p *splitting) budget() int {
	if p.habits.Searches {
		return p.settings.Budget * patience
	}
	return p.settings.Budget
}

// pinned returns why a tool is never deferred; "" if it may be.
func (p *splitting) pinned(t tool.Listed, a annotated, cost int) string {
	switch {
	case p.settings.pinned(t.Tool.Name):
		return reasonConfig
	case a.interfaced && p.apps:
		return reasonInterface
	case a.alwaysLoad && p.declared+cost <= p.settings.Budget/declaredShare:
		p.declared += cost
		return reasonDeclared
	}
	return ""
}

// declaredShare limits the tools whose declarations ask to be always loaded to one in so many
// tokens of the budget. Every client pays for them, whatever it works on.
const declaredShare = 10

// renamed shows a tool under its canonical name: the name that it would have is the hub's own on this surface.
func (p *splitting) renamed(t tool.Listed) tool.Listed {
	declaration, err := rawjson.Set(t.Declaration(), "name", rawjson.Quote(string(t.Tool.Name)))
	if err == nil {
		t.Name, t.Changed = string(t.Tool.Name), declaration
	}
	return t
}

// maxRecorded bounds how many deferred tools the record of a surface names. If there are more, it
// names their servers instead: all tools of such a server are deferred, but for those that are
// listed.
const maxRecorded = 1000

func (p *splitting) record(s *tool.Surface, why string, reasons map[tool.Name]string) tool.SurfaceRecord {
	scope := "profile:" + s.Profile
	if server, direct := strings.CutPrefix(s.Profile, tool.DirectPrefix); direct {
		scope = "server:" + server
	}
	r := tool.SurfaceRecord{Head: tool.HeadOf(tool.ObjectSurface), SurfaceID: s.ID, Scope: scope,
		Producer: tool.EventSource, LoadedTools: make([]tool.SurfaceTool, 0, len(s.Listed)),
		DeferredTools: make([]tool.Name, 0, len(s.Deferred)), BlockedTools: []tool.SurfaceTool{},
		ExcludedTools: []tool.Exclusion{}, SurfaceReason: cmp.Or(why, reasonAll), Digest: s.Digest,
		ToolRefs: make([]tool.Name, 0, len(s.Listed)+min(len(s.Deferred), maxRecorded)), ToolChoice: "auto",
		Requirements: []string{},
		Model:        map[string]any{}, Roles: map[string]any{}, PolicyRefs: []string{}, RuntimeRefs: []string{}}
	if s.Audience != "" {
		r.Roles["audience"] = s.Audience
	}
	for _, e := range s.Excluded {
		if e.Code == tool.CodePolicyBlocked {
			r.BlockedTools = append(r.BlockedTools, tool.SurfaceTool{ToolID: tool.Name(e.Tool), Name: e.Tool,
				Reason: e.Code})
			continue
		}
		r.ExcludedTools = append(r.ExcludedTools, e)
	}
	for _, t := range s.Listed {
		r.ToolRefs = append(r.ToolRefs, t.Tool.Name)
		r.LoadedTools = append(r.LoadedTools, tool.SurfaceTool{ToolID: t.Tool.Name, Name: t.Name,
			Reason: reasons[t.Tool.Name]})
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
	r.ToolRefs = append(r.ToolRefs, r.DeferredTools...)
	r.SelectionPolicy = map[string]any{"mode": string(p.settings.Mode), "budget_tokens": p.budget(), "style": s.Style,
		"estimated_tokens": p.tokens, "loaded_tokens": p.loaded, "deferred_reason": tool.ReasonDeferred,
		"deferred_total": len(s.Deferred)}
	if p.habits.Program != "" {
		r.Model["client"] = p.habits.Program
		if p.habits.MaxTools > 0 {
			r.Model["max_tools"] = p.habits.MaxTools
		}
		if p.habits.Searches {
			r.Model["defers_itself"] = true
		}
	}
	return r
}

// annotated holds the members of a tool's _meta that are about deferring.
type annotated struct {
	alwaysLoad, interfaced bool
	searchHint             string
}

// maxHint bounds a tool's own search hint.
const maxHint = 300

func annotations(declaration json.RawMessage) annotated {
	var a annotated
	if !bytes.Contains(declaration, []byte(`_meta"`)) {
		return a
	}
	meta := rawjson.GetObject(declaration, "_meta")
	always, _ := rawjson.Get(meta, "anthropic/alwaysLoad")
	a.alwaysLoad = string(always) == "true"
	a.searchHint = oneLine(rawjson.Text(meta, "anthropic/searchHint"), maxHint)
	ui, hasUI := rawjson.Get(meta, "ui")
	_, hasPage := rawjson.Get(meta, "ui/resourceUri") // as it was written first
	a.interfaced = hasUI && rawjson.IsObject(ui) || hasPage
	return a
}
