package namespace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
)

// toolOverride joins a profile's overrides of one tool. An empty field changes nothing.
type toolOverride struct {
	name, title, description string
}

// Check reports that s is no style, and which there are.
func (s Style) Check() error {
	switch s {
	case StyleAuto, StyleCanonical, StyleSafe, StyleShort, StyleNative:
		return nil
	}
	return fmt.Errorf("%q is unknown: use one of %s, %s, %s, %s, %s", string(s),
		StyleAuto, StyleCanonical, StyleSafe, StyleShort, StyleNative)
}

// LeavesOut says which key of the profile leaves out the tool of that canonical name; "" where none does.
func (p Profile) LeavesOut(server, canonical string) string {
	if !p.offers(server) {
		return fmt.Sprintf("profile %q: servers does not name %s", p.Name, server)
	}
	for _, pattern := range p.Exclude {
		if glob.Match(pattern, canonical) {
			return fmt.Sprintf("profile %q: exclude has %s", p.Name, pattern)
		}
	}
	if len(p.Include) > 0 && !glob.MatchAny(p.Include, canonical) {
		return fmt.Sprintf("profile %q: nothing in include matches it", p.Name)
	}
	return ""
}

// offers reports whether the profile takes tools of server.
func (p *Profile) offers(server string) bool {
	return len(p.Servers) == 0 || glob.MatchAny(p.Servers, server)
}

// selects reports whether the profile's patterns let a tool of an offered server through, and returns its overrides.
func (p *Profile) selects(canonical string) (toolOverride, bool) {
	if _, ok := p.selectsPrompt(canonical); !ok {
		return toolOverride{}, false
	}
	var d toolOverride
	for _, o := range p.Tools {
		if !glob.Match(o.Match, canonical) {
			continue
		}
		d.name = cmp.Or(d.name, o.Name)
		d.title = cmp.Or(d.title, o.Title)
		d.description = cmp.Or(d.description, o.Description)
	}
	return d, true
}

// selectsPrompt is selects for prompts: overrides are for tools only.
func (p *Profile) selectsPrompt(canonical string) (toolOverride, bool) {
	return toolOverride{}, (len(p.Include) == 0 || glob.MatchAny(p.Include, canonical)) &&
		!glob.MatchAny(p.Exclude, canonical)
}

// reaches reports whether the profile's patterns leave anything of an origin whose canonical names
// begin with prefix. What has no canonical name (resources, templates, instructions, abilities) is
// shown for origins that are reached.
func (p *Profile) reaches(prefix string) bool {
	for _, pattern := range p.Exclude {
		// One that matches the bare prefix and ends in a star matches whatever follows.
		if strings.HasSuffix(pattern, "*") && glob.Match(pattern, prefix) {
			return false
		}
	}
	return len(p.Include) == 0 || slices.ContainsFunc(p.Include,
		func(pattern string) bool { return glob.CanBegin(pattern, prefix) })
}
