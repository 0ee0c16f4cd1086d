// Package deferred splits surfaces into tools that are listed and tools that are deferred. A search finds the deferred
// tools. A selection_ref proves with a call that its caller has been given the tool's declaration.
//
// A split depends on the profile's surface, its settings and the client. Every request tells all of
// these, so a split needs no session and is the same on every replica. A selection_ref is a
// signature over tool, schema, caller and expiry, so any replica can check it.
//
// Package namespace decides before which tools a caller sees at all, and package policy afterwards
// what may be called. The ranking is package search's. The door that has a session keeps the
// session's loaded tools.
package deferred

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Options hold what a Loader works with. The zero value is useful.
type Options struct {
	// Keys sign selection_refs where the config has none: the first signs, all verify. Empty: a
	// random one, whose refs end with the loader.
	Keys [][]byte

	// Describe completes the record of a new surface. Nil: it is complete.
	Describe func(*tool.SurfaceRecord)

	// Record takes the events of surfaces, which have their records. It is called from the requests
	// that bring them about. Nil: nobody wants them.
	Record func(*tool.Surface, tool.Event)

	// Needs says what the caller itself has to do before it can use a server; "" for nothing. Nil: always nothing.
	Needs func(server string, caller tool.Session) string

	// HubTools is the table of the hub's own tools, HubTools among them. Nil: these alone.
	HubTools []*tool.HubTool

	Search search.Options
	Now    func() time.Time // default time.Now
}

// Loader splits surfaces, searches them, and decides about calls of deferred tools. It is safe for concurrent use.
type Loader struct {
	opts     Options
	rules    []clientRule
	reserved reserved

	updating sync.Mutex // held by Apply, Update, and whoever makes an index

	mu         sync.Mutex // guards what follows; held for moments
	cfg        Config
	refs       *signer
	generation int // counts changes of all that splits depend on besides their surface
	origins    map[string]*origin
	splits     map[splitKey]*split
	direct     map[splitKey]directView
	indexes    map[string]*index // by profile whose hints they hold; "" is the default's
	meant      bool              // the Meaning has been given all tools
	history    history
}

// origin is a catalog with its instructions.
type origin struct {
	catalog tool.Catalog
	says    string // the instructions in one line; "" if there are none
}

// New returns a loader that works by cfg and knows no tools.
func New(cfg Config, o Options) (*Loader, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Record == nil {
		o.Record = func(*tool.Surface, tool.Event) {}
	}
	if len(o.Keys) == 0 {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // "Read fills b with cryptographically secure random bytes. It never returns an error"
		o.Keys = [][]byte{key}
	}
	l := &Loader{rules: clientRules(), origins: make(map[string]*origin), splits: make(map[splitKey]*split),
		direct:  make(map[splitKey]directView),
		indexes: make(map[string]*index), history: newHistory()}
	if o.HubTools == nil {
		o.HubTools = HubTools(func() *Loader { return l })
	}
	l.opts, l.reserved = o, reserve(o.HubTools)
	_, err := l.Apply(cfg)
	return l, err
}

// Apply puts another config into force and returns the profiles of which somebody has a list that it changes.
func (l *Loader) Apply(cfg Config) (changed []string, err error) {
	if err := cfg.Check(); err != nil {
		return nil, fmt.Errorf("read settings of deferred loading: %w", err)
	}
	l.updating.Lock()
	defer l.updating.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.cfg
	for profile := range l.indexes {
		if now := cfg.of(profile).Hints; !sameHints(before.of(profile).Hints, now) || profile != "" &&
			sameHints(now, cfg.Default.Hints) {
			delete(l.indexes, profile) // it is made anew when it is asked
		}
	}
	l.meant = l.meant && sameHints(before.Default.Hints, cfg.Default.Hints)
	l.cfg, l.refs = cfg, newSigner(l.opts.Keys, refTTL, l.opts.Now)
	l.generation++
	return l.relisted(), nil
}

// relisted returns the profiles whose lists have changed, sorted: somebody has seen a split that
// would differ now. Changes of the full surfaces do not count. The caller holds mu.
func (l *Loader) relisted() (changed []string) {
	for key, s := range l.splits {
		now := l.splitting(key, s.full).split()
		if now.out.Digest != s.out.Digest && !slices.Contains(changed, key.profile) {
			changed = append(changed, key.profile)
		}
	}
	slices.Sort(changed)
	return changed
}

// Update replaces the catalogs of all origins. Only origins that differ from before are indexed.
// The hub calls it before surfaces show new tools. The result names the profiles whose lists change
// because a server's instructions changed: the description of tool_search holds those.
func (l *Loader) Update(catalogs []tool.Catalog) (changed []string) {
	l.updating.Lock()
	defer l.updating.Unlock()
	l.mu.Lock()
	next := make(map[string]*origin, len(catalogs))
	var fresh []*origin
	restated := false
	for _, c := range catalogs {
		old := l.origins[c.Server]
		o := &origin{catalog: c, says: oneLine(c.Instructions, maxSaid)}
		next[c.Server] = o
		other := old == nil || old.says != o.says || old.catalog.Title != c.Title
		if other {
			l.generation++
			restated = restated || old != nil
		}
		if other || !slices.Equal(old.catalog.Tools, c.Tools) {
			fresh = append(fresh, o)
			l.history.note(c.Tools)
		}
	}
	var gone []string
	for server := range l.origins {
		if next[server] == nil {
			l.generation++
			gone = append(gone, server)
		}
	}
	l.origins = next
	if restated {
		changed = l.relisted()
	}
	all := make([]filler, 0, len(l.indexes)+1)
	if l.meant {
		all = append(all, l.meaning())
	}
	for _, x := range l.indexes {
		all = append(all, filler{x.Index, x.hints})
	}
	l.mu.Unlock()
	for _, h := range all {
		for _, server := range gone {
			h.in.Remove(server)
		}
		for _, o := range fresh {
			h.put(o)
		}
	}
	return changed
}

// index is a search index with the hints of one profile.
type index struct {
	*search.Index
	hints []Hint
}

// filler puts tools into an index or a Meaning, with the hints of one profile.
type filler struct {
	in interface {
		Put(s search.Server, docs []search.Document)
		Remove(server string)
	}
	hints []Hint
}

// meaning returns the filler of the Meaning. It has one text for each tool, so it uses the default profile's hints. The
// caller holds mu.
func (l *Loader) meaning() filler { return filler{l.opts.Search.Meaning, l.cfg.Default.Hints} }

// queriedMeaning is the Meaning as an index sees it: indexes query it but do not fill it, since they share one.
type queriedMeaning struct{ search.Meaning }

func (queriedMeaning) Put(search.Server, []search.Document) {}
func (queriedMeaning) Remove(string)                        {}

func (h filler) put(o *origin) {
	c := o.catalog
	docs := make([]search.Document, 0, len(c.Tools))
	for _, t := range c.Tools {
		hint, aliases := hintOf(t, h.hints)
		docs = append(docs, search.Document{ID: string(t.Name), Name: t.Native, Title: t.Title,
			Description: t.Description, Hint: hint,
			Aliases: aliases, Schema: t.InputSchema, Digest: t.SchemaDigest})
	}
	h.in.Put(search.Server{Name: c.Server, Title: c.Title, Description: o.says}, docs)
}

// hintOf returns the search hint and the aliases of a tool.
func hintOf(t *tool.Tool, hints []Hint) (text string, aliases []string) {
	texts := []string{annotations(t.Declaration).searchHint}
	for _, h := range hints {
		if glob.Match(h.Match, string(t.Name)) {
			texts = append(texts, h.Text)
			aliases = append(aliases, h.Aliases...)
		}
	}
	return strings.TrimSpace(strings.Join(texts, " ")), aliases
}

// indexFor returns the index that profile is searched with, which is made at the first search.
func (l *Loader) indexFor(profile string) *index {
	key, _ := l.indexKey(profile)
	l.mu.Lock()
	x := l.indexes[key]
	l.mu.Unlock()
	if x != nil {
		return x
	}
	l.updating.Lock()
	defer l.updating.Unlock()
	key, hints := l.indexKey(profile) // as they are now, and stay until the index is there
	l.mu.Lock()
	x = l.indexes[key]
	all := slices.Collect(maps.Values(l.origins))
	options, fresh := l.opts.Search, []filler(nil)
	if options.Meaning != nil {
		options.Meaning = queriedMeaning{options.Meaning}
		if !l.meant {
			fresh = append(fresh, l.meaning())
		}
	}
	l.mu.Unlock()
	if x != nil {
		return x
	}
	x = &index{search.New(options), hints}
	for _, h := range append(fresh, filler{x.Index, hints}) {
		for _, o := range all {
			h.put(o)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.indexes[key], l.meant = x, options.Meaning != nil
	return x
}

// indexKey: profiles without hints of their own share an index.
func (l *Loader) indexKey(profile string) (string, []Hint) {
	l.mu.Lock()
	defer l.mu.Unlock()
	hints := l.cfg.of(profile).Hints
	if sameHints(hints, l.cfg.Default.Hints) {
		return "", hints
	}
	return profile, hints
}

// waits returns the servers of a surface that have not answered yet, and those that need the
// attention of a person, or of the caller's own, sorted.
func (l *Loader) waits(s *tool.Surface, caller tool.Session) (pending []string, down []unavailable) {
	if s.Features == nil {
		return nil, nil
	}
	var there []tool.Catalog
	l.mu.Lock()
	for _, server := range s.Features.Servers {
		if o := l.origins[server]; o != nil {
			there = append(there, o.catalog)
		}
	}
	l.mu.Unlock()
	for _, c := range there {
		if c.Needs == "" && l.opts.Needs != nil {
			c.Needs = l.opts.Needs(c.Server, caller)
		}
		switch {
		case c.Needs != "":
			down = append(down, unavailable{c.Server, oneLine(c.Needs, maxNeeds)})
		case c.Pending:
			pending = append(pending, c.Server)
		}
	}
	slices.Sort(pending)
	slices.SortFunc(down, func(a, b unavailable) int { return strings.Compare(a.Server, b.Server) })
	return pending, down
}

// awaited returns the servers of a surface that have not answered yet. The caller holds mu.
func (l *Loader) awaited(s *tool.Surface) (out []string) {
	if s.Features == nil {
		return nil
	}
	for _, server := range s.Features.Servers {
		if o := l.origins[server]; o != nil && o.catalog.Pending {
			out = append(out, server)
		}
	}
	return out
}

func (l *Loader) isPending(server string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.origins[server]
	return o != nil && o.catalog.Pending
}

func (l *Loader) signer() *signer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refs
}
