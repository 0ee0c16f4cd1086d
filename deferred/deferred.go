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
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/parallel"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Options hold what a Loader works with. The zero value is useful.
type Options struct {
	// Keys sign selection_refs where the config has none: the first signs, all verify. Empty: a
	// random one, whose refs end with the loader.
	Keys [][]byte

	// Describe completes the record of a new surface. Nil: it is complete.
	Describe func(*tool.SurfaceRecord)

	// Needs says what the caller itself has to do before it can use a server; "" for nothing. Nil: always nothing.
	Needs func(server string, caller tool.Session) string

	// Past tells what Config.Learn learns from. Nil: nothing.
	Past Past

	// HubTools is the table of the hub's own tools, HubTools among them. Nil: these alone.
	HubTools []*tool.HubTool

	Search search.Options
	Now    func() time.Time // default time.Now
}

// Past knows the calls of callers, by tool.Actor.Ref. It may be called concurrently.
type Past interface {
	// Learned returns questions of a caller's searches, with the tools that each led to.
	Learned(ctx context.Context, actor string) []search.Example
}

// Loader splits surfaces, searches them, and decides about calls of deferred tools. It is safe for concurrent use.
type Loader struct {
	opts     Options
	reserved reserved

	updating sync.Mutex // held by Apply and Update, and while the index is made

	mu         sync.Mutex // guards what follows; held for moments
	cfg        Config
	refs       *signer
	generation int                // counts changes of all that splits depend on besides their surface
	origins    map[string]*origin // replaced, never changed
	splits     map[splitKey]*split
	index      *search.Index // nil until the first search
}

// origin is a catalog with its instructions.
type origin struct {
	catalog tool.Catalog
	says    string // the instructions in one line; "" if there are none
}

// New returns a loader that works by cfg and knows no tools.
func New(cfg Config, o Options) *Loader {
	if o.Now == nil {
		o.Now = time.Now
	}
	if len(o.Keys) == 0 {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // "Read fills b with cryptographically secure random bytes. It never returns an error"
		o.Keys = [][]byte{key}
	}
	l := &Loader{origins: make(map[string]*origin), splits: make(map[splitKey]*split)}
	if o.HubTools == nil {
		o.HubTools = HubTools(func() *Loader { return l })
	}
	l.opts, l.reserved = o, reserve(o.HubTools)
	l.Apply(cfg)
	return l
}

// Apply puts another config into force and returns the profiles of which somebody has a list that it changes.
func (l *Loader) Apply(cfg Config) (changed []string) {
	l.updating.Lock()
	defer l.updating.Unlock()
	l.mu.Lock()
	rehint := l.index != nil && !slices.Equal(l.cfg.Hints, cfg.Hints)
	l.cfg, l.refs = cfg.withDefaults(), newSigner(l.opts.Keys, refTTL, l.opts.Now)
	l.generation++
	changed = l.relisted()
	x, all := l.index, l.origins
	l.mu.Unlock()
	if rehint {
		for _, o := range all {
			put(x, o, cfg.Hints)
		}
	}
	return changed
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
	x, hints := l.index, l.cfg.Hints
	l.mu.Unlock()
	if x == nil {
		return changed
	}
	for _, server := range gone {
		x.Remove(server)
	}
	for _, o := range fresh {
		put(x, o, hints)
	}
	return changed
}

// put puts the tools of an origin into an index.
func put(x *search.Index, o *origin, hints []Hint) {
	c := o.catalog
	docs := make([]search.Document, 0, len(c.Tools))
	for _, t := range c.Tools {
		docs = append(docs, search.Document{ID: string(t.Name), Name: t.Native, Title: t.Title,
			Description: t.Description, Hint: hintOf(t, hints), Schema: t.InputSchema, Digest: t.SchemaDigest})
	}
	x.Put(search.Server{Name: c.Server, Title: c.Title, Description: o.says}, docs)
}

// hintOf returns the search hint of a tool.
func hintOf(t *tool.Tool, hints []Hint) string {
	texts := []string{annotations(t.Declaration).searchHint}
	for _, h := range hints {
		if glob.Match(h.Match, string(t.Name)) {
			texts = append(texts, h.Text)
		}
	}
	return strings.TrimSpace(strings.Join(texts, " "))
}

// searched returns the index, which is made at the first search.
func (l *Loader) searched() *search.Index {
	l.mu.Lock()
	x := l.index
	l.mu.Unlock()
	if x != nil {
		return x
	}
	l.updating.Lock()
	defer l.updating.Unlock()
	l.mu.Lock()
	x, all, hints := l.index, l.origins, l.cfg.Hints
	l.mu.Unlock()
	if x != nil {
		return x
	}
	x = search.New(l.opts.Search)
	origins := slices.Collect(maps.Values(all))
	parallel.Do(len(origins), 1, func(i int) { put(x, origins[i], hints) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.index = x
	return x
}

// waits returns the servers of a surface that have not answered yet, and those that need the
// attention of a person, or of the caller's own, sorted.
func (l *Loader) waits(s *tool.Surface, caller tool.Session) (pending []string, down []unavailable) {
	if s.Features == nil {
		return nil, nil
	}
	origins := l.known()
	for _, server := range s.Features.Servers {
		o := origins[server]
		if o == nil {
			continue
		}
		needs := o.catalog.Needs
		if needs == "" && l.opts.Needs != nil {
			needs = l.opts.Needs(server, caller)
		}
		switch {
		case needs != "":
			down = append(down, unavailable{server, oneLine(needs, maxNeeds)})
		case o.catalog.Pending:
			pending = append(pending, server)
		}
	}
	slices.Sort(pending)
	slices.SortFunc(down, func(a, b unavailable) int { return strings.Compare(a.Server, b.Server) })
	return pending, down
}

// known returns the origins, which are not changed.
func (l *Loader) known() map[string]*origin {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.origins
}

// isPending reports whether a server has not answered yet.
func isPending(origins map[string]*origin, server string) bool {
	return origins[server] != nil && origins[server].catalog.Pending
}

// learned returns what searches of a caller have taught.
func (l *Loader) learned(ctx context.Context, actor string) []search.Example {
	l.mu.Lock()
	learns := l.cfg.Learn && l.opts.Past != nil
	l.mu.Unlock()
	if !learns {
		return nil
	}
	return l.opts.Past.Learned(ctx, actor)
}

func (l *Loader) signer() *signer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refs
}
