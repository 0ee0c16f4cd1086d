// Package namespace makes one collision-free surface out of many catalogs.
//
// It gives every tool its names: the canonical one, mcp.<server>.<tool>, by which the hub knows it, and those that
// clients can digest. It refuses tools that could be taken for one another, applies profiles (which tools a client
// sees, under what name and description) and resolves any of a tool's names. A name depends on the tool's canonical
// name alone, so nothing that a server adds or removes renames the tools of another. Prompts are named in the same way,
// in a name space of their own; overrides of a profile are of tools only.
//
// Resources and templates keep their URIs. Where several servers of a surface list a URI, or URIs
// that can be taken for one another, none of them keeps it: each is shown as
// toolhub://<server>/<uri>, or the page of a user interface as ui://toolhub/<server>/<rest of its
// URI>. Either stands for that server's whatever others list, and the bare URI for all who claim
// it, so that the caller can refuse it and name them. That is the one thing shown which another
// server can change. Both of the hub's forms of any URI of any server of the surface are understood
// at all times. A URI that nobody lists belongs to the servers with a template for it; one that is
// listed belongs to who lists it, templates of others notwithstanding. Links in results are not
// seen here: whom those came from is for downstream to remember, for each caller.
//
// What has no canonical name (resources, instructions, abilities) is shown for the servers that a
// profile leaves anything of.
//
// A direct view is the surface of one server, as that server is. Nobody else can be meant there, so
// nothing is refused but what cannot be told apart: a name that its server lists twice.
//
// It connects to nobody and decides nothing about permission: catalogs come from upstream and the built-in toolsets,
// and what a caller may do with a visible tool is for policy to say.
package namespace

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// errUnknownProfile is wrapped by the error of Surface for a profile that the config does not have.
var errUnknownProfile = errors.New("unknown profile")

// Namespace holds the surfaces of all profiles. It is safe for concurrent use.
type Namespace struct {
	profiles map[string]*Profile
	order    []string // names of profiles, sorted
	clients  []clientRule

	mu    sync.Mutex // held by Update
	state atomic.Pointer[state]
}

// state is one generation. It is immutable, but for the surfaces that its views build on demand.
type state struct {
	hub    *hub
	views  map[string]*view // of profiles
	direct map[string]*view // of servers that were asked for, by server
}

// Change says what a profile, or a direct view that was asked for, shows differently from before.
type Change struct {
	Profile      string // name of a profile, or "s/<server>"
	Tools        bool
	Prompts      bool
	Resources    bool // or templates
	Instructions bool
}

// New returns a namespace without tools. A profile called DefaultProfile is added where profiles has none.
func New(profiles []Profile) *Namespace {
	n := &Namespace{profiles: make(map[string]*Profile), clients: clientRules()}
	for _, p := range append([]Profile{{Name: DefaultProfile}}, profiles...) {
		p.Style = cmp.Or(p.Style, StyleAuto)
		n.profiles[p.Name] = &p
	}
	n.order = slices.Sorted(maps.Keys(n.profiles))
	n.state.Store(n.generation(admit(nil, nil)))
	return n
}

// Update replaces what all origins offer and returns what profiles show differently from before in at least one style,
// and likewise direct views, sorted by name. Tools or prompts may be said to differ also where all that changed is one
// which the profile shows in no style because its given name clashes. Catalogs and what they hold must not be modified
// afterwards. Tools that are the same *tool.Tool as before cost little, as do prompts and resources in the same slice.
func (n *Namespace) Update(catalogs []tool.Catalog) (changes []Change) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.state.Load()
	next := n.generation(admit(catalogs, old.hub))
	compare := func(before, after *view) *view {
		if c, ok := before.changeTo(after); ok {
			changes = append(changes, c)
		}
		if after.same(before) {
			return before
		}
		return after
	}
	for _, name := range n.order {
		next.views[name] = compare(old.views[name], next.views[name])
	}
	for server, before := range old.direct {
		if after := newDirectView(server, next.hub); after != nil {
			next.direct[server] = compare(before, after)
			continue
		}
		gone := &view{profile: before.profile, tools: &selection{}, prompts: &selection{}}
		gone.tools.sum()
		gone.prompts.sum()
		gone.finish()
		compare(before, gone)
	}
	n.state.Store(next)
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Profile, b.Profile) })
	return changes
}

func (n *Namespace) generation(h *hub) *state {
	s := &state{hub: h, views: make(map[string]*view, len(n.order)), direct: make(map[string]*view)}
	for _, name := range n.order {
		s.views[name] = newView(n.profiles[name], h)
	}
	return s
}

// Surface returns what profile shows to client: in the style that the client asks for, otherwise in
// the profile's, or where that is auto, in the one that suits the client. The same surface is
// returned until an Update changes it. It fails for a profile that the config does not have, and
// for a style that there is not.
//
// The profile "s/<server>" needs no config: it is the direct view of that upstream server, all that it offers under the
// names and URIs that it gives. There every URI belongs to that server, listed or not.
func (n *Namespace) Surface(profile string, client tool.Client) (*tool.Surface, error) {
	if server, ok := strings.CutPrefix(profile, tool.DirectPrefix); ok {
		v := n.direct(server)
		if v == nil {
			return nil, fmt.Errorf("find profile %q: %w: no upstream server has that id", profile, errUnknownProfile)
		}
		return v.surface(StyleNative), nil
	}
	v := n.state.Load().views[profile]
	if v == nil {
		return nil, fmt.Errorf("find profile %q: %w: the config has %s", profile, errUnknownProfile,
			strings.Join(n.order, ", "))
	}
	style := v.profile.Style
	if client.Names != "" {
		style = Style(client.Names)
		if err := style.Check(); err != nil {
			return nil, fmt.Errorf("naming style %w", err)
		}
	}
	if style == StyleAuto {
		style = autoStyle(n.clients, client)
	}
	return v.surface(style), nil
}

// direct returns the direct view of server, or nil. It is made when first asked for, and kept up from then on.
func (n *Namespace) direct(server string) *view {
	if v := n.state.Load().direct[server]; v != nil {
		return v
	}
	n.mu.Lock() // an Update must not miss a view that somebody has seen
	defer n.mu.Unlock()
	s := n.state.Load()
	if v := s.direct[server]; v != nil {
		return v
	}
	v := newDirectView(server, s.hub)
	if v == nil {
		return nil
	}
	next := &state{hub: s.hub, views: s.views, direct: maps.Clone(s.direct)}
	next.direct[server] = v
	n.state.Store(next)
	return v
}

// Since returns what n shows differently from before, which it has replaced: for every profile of either, and for every
// direct view that before was asked for.
func (n *Namespace) Since(before *Namespace) (changes []Change) {
	was, is := before.state.Load(), n.state.Load()
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(before.order, n.order)))) {
		changes = appendChange(changes, name, was.views[name], is.views[name])
	}
	for server, old := range was.direct {
		changes = appendChange(changes, tool.DirectPrefix+server, old, n.direct(server))
	}
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Profile, b.Profile) })
	return changes
}

// appendChange appends what is different between two views of a profile, either of which may be missing.
func appendChange(changes []Change, name string, was, is *view) []Change {
	if was == nil || is == nil {
		return append(changes, Change{Profile: name, Tools: true, Prompts: true, Resources: true, Instructions: true})
	}
	c, ok := was.changeTo(is)
	if was.profile.Style != is.profile.Style {
		c.Tools, c.Prompts, ok = true, true, true
	}
	if ok {
		changes = append(changes, c)
	}
	return changes
}
