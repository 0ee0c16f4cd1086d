package namespace

import (
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Profiles returns the names of all profiles, sorted.
func (n *Namespace) Profiles() []string { return slices.Clone(n.order) }

// Excluded returns the tools that no surface offers, and why: first what the catalogs left out, then what was refused
// here because of its name. Surfaces add what they leave out themselves.
func (n *Namespace) Excluded() []tool.Exclusion {
	refusals := n.state.Load().hub.tools.refusals
	out := make([]tool.Exclusion, 0, len(refusals))
	for _, r := range refusals {
		out = append(out, r.Exclusion)
	}
	return out
}
