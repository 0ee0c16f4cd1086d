// Package namespace makes one collision-free surface out of many catalogs.
//
// It gives every tool its names: the canonical one, mcp.<server>.<tool>, by which the hub knows it, and those that
// clients can digest. It refuses tools that could be taken for one another, applies profiles (which tools a client
// sees, under what name and description) and resolves any of a tool's names. A name depends on the tool's canonical
// name alone, so nothing that a server adds or removes renames the tools of another.
//
// It connects to nobody and decides nothing about permission: catalogs come from upstream and the built-in toolsets,
// and what a caller may do with a visible tool is for policy to say.
package namespace

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// ErrUnknownProfile is wrapped by the error of Surface for a profile that the config does not have.
var ErrUnknownProfile = errors.New("unknown profile")

// Namespace holds the surfaces of all profiles. It is safe for concurrent use.
type Namespace struct {
	profiles map[string]*profile
	order    []string // names of profiles, sorted
	clients  []clientRule

	mu    sync.Mutex // held by Update
	state atomic.Pointer[state]
}

// state is one generation. It is immutable, but for the surfaces that its views build on demand.
type state struct {
	hub   *hub
	views map[string]*view
}

// New returns a namespace without tools. A profile called DefaultProfile is added where profiles has none. The error
// joins every fault of every profile; each names the profile and the key.
func New(profiles []Profile) (*Namespace, error) {
	n := &Namespace{profiles: make(map[string]*profile), clients: clientRules()}
	var faults []error
	for _, p := range profiles {
		checked, err := newProfile(p)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if n.profiles[p.Name] != nil {
			faults = append(faults, fmt.Errorf("profile %q: defined twice: rename or remove one", p.Name))
			continue
		}
		n.profiles[p.Name] = checked
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("read profiles: %w", errors.Join(faults...))
	}
	if n.profiles[DefaultProfile] == nil {
		n.profiles[DefaultProfile] = &profile{Profile{Name: DefaultProfile, Style: StyleAuto}}
	}
	n.order = slices.Sorted(maps.Keys(n.profiles))
	n.state.Store(n.generation(admit(nil, nil)))
	return n, nil
}

// Profiles returns the names of all profiles, sorted.
func (n *Namespace) Profiles() []string { return slices.Clone(n.order) }

// Update replaces what all origins offer and returns the names of the profiles whose tools/list differs from before in
// at least one style, sorted. A profile may be among them also where all that changed is a tool which it shows in no
// style because its given name clashes. Catalogs and their tools must not be modified afterwards. Tools that are the same
// *tool.Tool as before cost little.
func (n *Namespace) Update(catalogs []tool.Catalog) (changed []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := n.state.Load()
	next := n.generation(admit(catalogs, old.hub))
	for _, name := range n.order {
		before, after := old.views[name], next.views[name]
		if before.digest != after.digest {
			changed = append(changed, name)
		}
		if slices.Equal(before.visible, after.visible) && slices.Equal(before.excluded, after.excluded) {
			next.views[name] = before
			continue
		}
		after.follow(before)
	}
	n.state.Store(next)
	return changed
}

func (n *Namespace) generation(h *hub) *state {
	s := &state{hub: h, views: make(map[string]*view, len(n.order))}
	for _, name := range n.order {
		s.views[name] = newView(n.profiles[name], h)
	}
	return s
}

// Surface returns what profile shows to client, in the profile's style or, where that is auto, in the one that suits
// the client. The same surface is returned until an Update changes it. The error wraps ErrUnknownProfile.
func (n *Namespace) Surface(profile string, client tool.Client) (*tool.Surface, error) {
	v := n.state.Load().views[profile]
	if v == nil {
		return nil, fmt.Errorf("find profile %q: %w: the config has %s", profile, ErrUnknownProfile, known(n.order))
	}
	style := v.profile.Style
	if style == StyleAuto {
		style = autoStyle(n.clients, client.Name)
	}
	return v.surface(style), nil
}

// Tool returns the tool of that canonical name, whatever profiles show of it.
func (n *Namespace) Tool(name string) (*tool.Tool, bool) {
	t, ok := n.state.Load().hub.byName[tool.Name(name)]
	return t, ok
}

// Excluded returns the tools that no surface offers, and why: first what the catalogs left out, then what was refused
// here because of its name. Surfaces add what they leave out themselves.
func (n *Namespace) Excluded() []tool.Exclusion {
	refusals := n.state.Load().hub.refusals
	out := make([]tool.Exclusion, 0, len(refusals))
	for _, r := range refusals {
		out = append(out, r.Exclusion)
	}
	return out
}
