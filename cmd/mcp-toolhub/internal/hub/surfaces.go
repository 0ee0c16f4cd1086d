package hub

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// surfaces keeps what clients see up to what servers offer and the settings select. It is safe for concurrent use.
type surfaces struct {
	group   *upstream.Group
	loader  *deferred.Loader
	style   string                     // of names, for clients that ask for none; "" leaves it to their profile
	changed func(...downstream.Change) // tells the clients

	configured atomic.Pointer[Configured] // a reload replaces it
	offered    atomic.Pointer[func() map[tool.Name]*tool.Tool]

	updating  sync.Mutex
	refreshed atomic.Int64 // the group's count of changes that the surfaces are up to
}

// Now returns what the settings in force have made.
func (s *surfaces) Now() *Configured { return s.configured.Load() }

// Surface implements downstream.Surfaces.
func (s *surfaces) Surface(profile string, caller tool.Actor) (*tool.Surface, error) {
	client := caller.Client
	client.Names = cmp.Or(client.Names, s.style)
	now := s.Now()
	full, err := now.names.Surface(profile, client)
	if err != nil {
		return nil, err
	}
	if caller.Door == "" { // of nobody: what a server can do, before it is known who asks
		return now.results.Surface(full, caller.Client), nil
	}
	return s.loader.Surface(now.results.Surface(now.Gate.Surface(full, caller), caller.Client), caller.Client), nil
}

// Fresh returns what a server said of one of its lists, if the surfaces are up to that list.
func (s *surfaces) Fresh(server, method string) (tool.Freshness, bool) {
	f, ok := s.group.Freshness(server, method)
	if !s.upToDate() {
		return tool.Freshness{}, ok
	}
	return f, ok
}

// ResourceURI implements downstream.Surfaces.
func (s *surfaces) ResourceURI(server, native string) string {
	return namespace.ResourceURI(server, native)
}

// upToDate reports whether the surfaces show all that the servers have listed.
func (s *surfaces) upToDate() bool { return s.group.Changes() == s.refreshed.Load() }

// Refresh brings the surfaces up to what the servers offer now, and tells the clients that see a difference.
func (s *surfaces) Refresh() {
	s.updating.Lock()
	defer s.updating.Unlock()
	changes := s.group.Changes()
	now := s.Now()
	catalogs := s.catalogs(now)
	s.offer(now, catalogs)
	held := s.loader.Update(catalogs)
	all := changesOf(withLists(now.names.Update(catalogs), held))
	for _, said := range s.group.ServerChanges() { // for those who see that one server alone
		if said.Person != "" {
			all = append(all, personalChanges(now, said)...)
			continue
		}
		all = append(all, downstream.Change{Profile: downstream.DirectView(said.Server), Tools: said.Tools,
			Prompts: said.Prompts, Resources: said.Resources})
	}
	s.changed(all...)
	s.refreshed.Store(changes)
}

// FirstLists waits until the servers of a surface have listed for the first time, and brings the surfaces up to that.
func (s *surfaces) FirstLists(ctx context.Context, of *tool.Surface) {
	if of.Features == nil || !s.group.AwaitFirstLists(ctx, of.Features.Servers, of.Habits.ListsWithin) {
		return
	}
	if !s.upToDate() { // the group itself reports the change a moment later
		s.Refresh()
	}
}

// replace puts next into force, and tells the clients that see a difference. serve is called in
// between: it makes the door serve the views of next.
func (s *surfaces) replace(next *Configured, serve func()) {
	s.updating.Lock()
	catalogs := s.catalogs(next)
	s.offer(next, catalogs)
	said := s.loader.Update(catalogs)
	next.names.Update(catalogs)
	before := s.configured.Swap(next)
	held := s.loader.Apply(next.Settings.Deferred)
	s.updating.Unlock()
	serve()
	all := changesOf(withLists(next.names.Since(before.names), append(said, held...)))
	s.changed(append(all, permittedChanges(before, next)...)...)
}

// withLists adds the tool lists of profiles to changes.
func withLists(changes []namespace.Change, profiles []string) []namespace.Change {
	for _, profile := range profiles {
		at := slices.IndexFunc(changes, func(c namespace.Change) bool { return c.Profile == profile })
		if at < 0 {
			at = len(changes)
			changes = append(changes, namespace.Change{Profile: profile})
		}
		changes[at].Tools = true
	}
	return changes
}

// changesOf returns changes as clients are told of them.
func changesOf(changes []namespace.Change) (all []downstream.Change) {
	for _, c := range changes {
		all = append(all, downstream.Change{Profile: c.Profile, Tools: c.Tools, Prompts: c.Prompts,
			Resources: c.Resources})
	}
	return all
}

// personalChanges returns a change that a server has told one person, for the clients of that person
// alone. Only resources are listed for one person.
func personalChanges(now *Configured, said upstream.ServerChange) (changes []downstream.Change) {
	sees := func(a tool.Actor) bool { return a.Name == said.Person }
	for _, view := range now.views() {
		if alone := view == downstream.DirectView(said.Server); alone || said.Resources {
			changes = append(changes, downstream.Change{Profile: view, Sees: sees, Resources: said.Resources,
				Tools: alone && said.Tools, Prompts: alone && said.Prompts})
		}
	}
	return changes
}

// permittedChanges returns changes for the clients to whom the policy leaves other tools than before.
func permittedChanges(before, now *Configured) (changes []downstream.Change) {
	for _, view := range now.views() {
		changes = append(changes, downstream.Change{Profile: view, Tools: true, Sees: func(a tool.Actor) bool {
			was, err := before.permitted(view, a)
			if err != nil {
				return false // the view is new: no client has its list
			}
			is, err := now.permitted(view, a)
			return err != nil || !slices.EqualFunc(was.Listed, is.Listed,
				func(x, y tool.Listed) bool { return x.Name == y.Name })
		}})
	}
	return changes
}

// catalogs returns what the toolsets of c and the servers offer.
func (s *surfaces) catalogs(c *Configured) []tool.Catalog {
	return append(c.Own.Catalogs(), s.group.Catalogs()...)
}

// leftOut returns the tools that a profile leaves out, and why.
func (s *surfaces) leftOut(profile string) (all []tool.Exclusion) {
	now := s.Now()
	for _, p := range now.Settings.Profiles {
		if p.Name != profile {
			continue
		}
		for _, c := range s.catalogs(now) {
			for _, t := range c.Tools {
				if why := p.LeavesOut(c.Server, string(t.Name)); why != "" {
					all = append(all, tool.Exclusion{Tool: string(t.Name), Origin: c.Server, Code: "not_in_profile",
						Reason: why})
				}
			}
		}
	}
	return all
}

// offer notes what is offered now: an approval holds for the tool that was asked about, and for no
// later one of its name.
func (s *surfaces) offer(c *Configured, catalogs []tool.Catalog) {
	c.Gate.Retain(catalogs)
	offered := sync.OnceValue(func() map[tool.Name]*tool.Tool { return byName(catalogs) })
	s.offered.Store(&offered)
}

// byName returns the tools of catalogs by their canonical names.
func byName(catalogs []tool.Catalog) map[tool.Name]*tool.Tool {
	all := make(map[tool.Name]*tool.Tool)
	for _, c := range catalogs {
		for _, t := range c.Tools {
			all[t.Name] = t
		}
	}
	return all
}

// present returns the tool that has the canonical name now; nil where there is none.
func (s *surfaces) present(name tool.Name) *tool.Tool { return (*s.offered.Load())()[name] }

// named returns the tool that goes by the name in the profile, whether or not the policy shows it;
// nil where there is none.
func (s *surfaces) named(profile string, client tool.Client, name string) *tool.Tool {
	if t := s.present(tool.Name(name)); t != nil {
		return t
	}
	full, err := s.Now().names.Surface(profile, client)
	if err != nil {
		return nil
	}
	if l, ok := full.Resolve(name); ok {
		return l.Tool
	}
	return nil
}

// ownTool returns a tool of the hub's own as a profile shows it, also if the policy hides it; nil
// if there is no such profile.
func (s *surfaces) ownTool(name tool.Name, profile string, client tool.Client) *tool.Tool {
	full, err := s.Now().names.Surface(profile, client)
	if err != nil {
		return nil
	}
	if l, ok := s.loader.Surface(full, client).Resolve(string(name)); ok {
		return l.Tool
	}
	return nil
}
