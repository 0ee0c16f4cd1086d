package hub

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// strayPatterns returns the patterns of the config that match no tool, each with the name that was
// probably meant. It leaves out a pattern that could match a tool of a server whose tools are not
// known.
func (m Model) strayPatterns() []string {
	s := m.Settings()
	tools := m.knownNames()
	var all []string
	for _, p := range s.Patterns {
		switch {
		case strings.Contains(p.Text, "/"): // it is about a method
		case slices.ContainsFunc(tools.names, func(name string) bool { return glob.Match(p.Text, name) }):
		case slices.ContainsFunc(tools.unknown, func(prefix string) bool { return glob.CanBegin(p.Text, prefix) }):
		case slices.ContainsFunc(tools.disabled, func(prefix string) bool { return strings.HasPrefix(p.Text, prefix) }):
		default:
			all = append(all, fmt.Sprintf("%s: %s: %q matches no tool; %s", p.Place, p.Key, p.Text,
				meantBy(p.Text, tools.names)))
		}
	}
	return all
}

// knownNames holds the canonical names that patterns are compared with.
type knownNames struct {
	names []string // of all tools, also of those that are left out
	// prefixes of names that are not known: of servers that have never listed, or are disabled
	unknown, disabled []string
}

func (m Model) knownNames() knownNames {
	all := knownNames{names: ToolNames()}
	for _, c := range m.Surfaces.catalogs(m.Surfaces.Now()) {
		for _, t := range c.Tools {
			all.names = append(all.names, string(t.Name))
		}
		for _, e := range c.Excluded {
			all.names = append(all.names, e.Tool, string(tool.MCPName(c.Server, e.Tool)))
		}
		if c.Pending && len(c.Tools) == 0 {
			all.unknown = append(all.unknown, string(tool.MCPName(c.Server, "")))
		}
	}
	for _, server := range m.Settings().Upstream.Servers {
		if server.Disabled {
			all.disabled = append(all.disabled, string(tool.MCPName(server.ID, "")))
		}
	}
	return all
}

// meantBy returns the hint for a pattern that matches nothing.
func meantBy(pattern string, names []string) string {
	const otherwise = "mcp-toolhub tools list names them"
	if slices.ContainsFunc(names, func(name string) bool { return glob.Match("mcp."+pattern, name) }) {
		return `did you mean "mcp.` + pattern + `"?`
	}
	if glob.HasWildcard(pattern) {
		return otherwise
	}
	return textfile.DidYouMean(pattern, names, otherwise)
}
