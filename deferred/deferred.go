// Package deferred keeps what a model need not see out of its sight, and lets it find that: surfaces are split into tools
// that are listed and tools that are deferred, the search finds the deferred ones, and a selection_ref carries what was
// found to the call.
//
// A split depends on the profile's surface, its settings and what is known of the client, all of which every request
// tells; so it is the same for everybody alike, on every replica, and needs no session. A selection_ref is a signed handle
// over tool, schema, caller and expiry: who has one has been given the declaration, whichever replica gave it.
//
// Which tools a caller may see at all is decided before (package namespace), and what may be called afterwards (package
// policy). Ranking is package search's. The loaded tools of a session are kept by the door that has the session.
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

// Options are what a Loader works with. The zero value is useful.
type Options struct {
	// Keys sign selection_refs where the config has none: the first signs, all verify. Empty: a random one, whose refs end
	// with the loader.
	Keys [][]byte

	// Record takes the records of surfaces. It is called from the requests that bring them about. Nil: nobody wants them.
	Record func(...tool.Record)

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
	generation int // of what splits depend on besides their surface
	origins    map[string]*origin
	splits     map[splitKey]*split
	indexes    map[string]*index // by profile whose hints they hold; "" is the default's
	meant      bool              // the meaning has been given all tools
	history    history
}

// origin is a catalog, and what it says of itself.
type origin struct {
	catalog tool.Catalog
	says    string // what it says of itself, one line; "" where it says nothing
}

// New returns a loader that works by cfg and knows no tools.
func New(cfg Config, o Options) (*Loader, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Record == nil {
		o.Record = func(...tool.Record) {}
	}
	if len(o.Keys) == 0 {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // "Read fills b with cryptographically secure random bytes. It never returns an error"
		o.Keys = [][]byte{key}
	}
	l := &Loader{rules: clientRules(), origins: make(map[string]*origin), splits: make(map[splitKey]*split),
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
	if cfg.RefTTL == 0 {
		cfg.RefTTL = defaultRefTTL
	}
	keys := l.opts.Keys
	if len(cfg.Keys) > 0 {
		keys = nil
		for _, k := range cfg.Keys {
			keys = append(keys, []byte(k))
		}
	}
	l.updating.Lock()
	defer l.updating.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	before, seen := l.cfg, l.seen()
	for profile := range l.indexes {
		if now := cfg.of(profile).Hints; !sameHints(before.of(profile).Hints, now) || profile != "" && sameHints(now, cfg.Default.Hints) {
			delete(l.indexes, profile) // it is made anew when it is asked
		}
	}
	l.meant = l.meant && sameHints(before.Default.Hints, cfg.Default.Hints)
	l.cfg, l.refs = cfg, newSigner(keys, cfg.RefTTL, l.opts.Now)
	l.generation++
	return l.relisted(seen), nil
}

// seen are the splits that there are. The caller holds mu.
func (l *Loader) seen() map[splitKey]*split { return maps.Clone(l.splits) }

// relisted are the profiles of which a split that there was would list something else by now, sorted. What their surfaces
// themselves show differently is not looked at. The caller holds mu.
func (l *Loader) relisted(seen map[splitKey]*split) (changed []string) {
	for key, s := range seen {
		now := (&splitting{full: s.full, settings: l.cfg.of(key.profile), rule: l.rule(key.client), origins: l.origins, before: s,
			awaits: len(l.awaited(s.full)) > 0, apps: key.apps, hubTools: l.opts.HubTools, reserved: l.reserved}).split()
		if now.out.Digest != s.out.Digest && !slices.Contains(changed, key.profile) {
			changed = append(changed, key.profile)
		}
	}
	slices.Sort(changed)
	return changed
}

// rule is the rule of that name; the zero value where there is none.
func (l *Loader) rule(name string) clientRule {
	for _, r := range l.rules {
		if r.name == name {
			return r
		}
	}
	return clientRule{}
}

// Update replaces what all origins offer. Only origins that differ from before are indexed. It is called before surfaces
// show what is new, and what they no longer show is not found from then on. It returns the profiles of which somebody has a
// list that changes because of what servers say of themselves: the description of the search holds that.
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
		if old == nil || old.says != o.says || old.catalog.Title != c.Title {
			l.generation++
			restated = restated || old != nil
		}
		if old == nil || old.says != o.says || old.catalog.Title != c.Title ||
			!slices.Equal(old.catalog.Tools, c.Tools) {
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
		changed = l.relisted(l.seen())
	}
	all := make([]holder, 0, len(l.indexes)+1)
	if l.meant {
		all = append(all, l.meaning())
	}
	for _, x := range l.indexes {
		all = append(all, holder{x.Index, x.hints})
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

// holder takes in tools, with the hints of one profile.
type holder struct {
	in interface {
		Put(s search.Server, docs []search.Document)
		Remove(server string)
	}
	hints []Hint
}

// meaning takes in what tools mean, as the default profile describes them: there is one text for each tool. The caller
// holds mu.
func (l *Loader) meaning() holder { return holder{l.opts.Search.Meaning, l.cfg.Default.Hints} }

// asked is a Meaning that is asked by an index and takes in nothing from it: there are several indexes and one meaning.
type asked struct{ search.Meaning }

func (asked) Put(search.Server, []search.Document) {}
func (asked) Remove(string)                        {}

func (h holder) put(o *origin) {
	c := o.catalog
	docs := make([]search.Document, 0, len(c.Tools))
	for _, t := range c.Tools {
		hint, aliases := hintOf(t, h.hints)
		docs = append(docs, search.Document{ID: string(t.Name), Name: t.Native, Title: t.Title, Description: t.Description, Hint: hint,
			Aliases: aliases, Schema: t.InputSchema, Digest: t.SchemaDigest})
	}
	h.in.Put(search.Server{Name: c.Server, Title: c.Title, Description: o.says}, docs)
}

// hintOf is what a tool is found by besides what it says of itself to everybody.
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
	all := make([]*origin, 0, len(l.origins))
	for _, o := range l.origins {
		all = append(all, o)
	}
	options, fresh := l.opts.Search, []holder(nil)
	if options.Meaning != nil {
		options.Meaning = asked{options.Meaning}
		if !l.meant {
			fresh = append(fresh, l.meaning())
		}
	}
	l.mu.Unlock()
	if x != nil {
		return x
	}
	x = &index{search.New(options), hints}
	for _, h := range append(fresh, holder{x.Index, hints}) {
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

// waits are the servers of a surface that will answer soon, and those that somebody has to look after, sorted.
func (l *Loader) waits(s *tool.Surface) (pending []string, down []unavailable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, server := range l.awaited(s) {
		if l.origins[server].catalog.Needs == "" {
			pending = append(pending, server)
		}
	}
	if s.Features != nil {
		for _, server := range s.Features.Servers {
			if o := l.origins[server]; o != nil && o.catalog.Needs != "" {
				down = append(down, unavailable{server, oneLine(o.catalog.Needs, maxNeeds)})
			}
		}
	}
	slices.Sort(pending)
	slices.SortFunc(down, func(a, b unavailable) int { return strings.Compare(a.Server, b.Server) })
	return pending, down
}

// awaited are the servers of a surface that have not answered yet. The caller holds mu.
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
