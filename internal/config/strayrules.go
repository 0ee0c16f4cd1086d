package config

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// ruleNamed are all the names of one kind that rules can match.
type ruleNamed struct {
	kind string // for people
	all  []string
	of   func(*policy.Rule) []string
	glob bool
}

// strayRules warns of rules that name a server, profile or tag that nothing has: a rule that denies and is misspelt denies
// nothing, and nobody would know. It is no fault: what is named may be added later. Callers are not looked at: users of the
// command line go by their own names.
func (r *reader) strayRules(s *Settings, p located[permission]) {
	kinds := ruleNames(s)
	at := p
	for i, set := range s.Policy.Sets {
		for n := range set.Rules {
			where := ""
			if i == 0 { // those of the config itself
				at.Position, at.path = p.value.rules[n].Position, p.value.rules[n].path
			} else {
				at.Position, at.path, where = p.Position, p.path, set.Rules[n].Place+": "
			}
			r.strayRule(at, where, &set.Rules[n], kinds)
		}
	}
}

func (r *reader) strayRule(at located[permission], where string, rule *policy.Rule, kinds []ruleNamed) {
	for _, k := range kinds {
		for _, name := range k.of(rule) {
			known := slices.Contains(k.all, name) || k.glob && slices.ContainsFunc(k.all, func(n string) bool { return glob.Match(name, n) })
			if !known {
				warnOf(r, at, fmt.Sprintf("%sthe rule is about the %s %s, which nothing here has", where, k.kind, quote(name)),
					textfile.DidYouMean(name, k.all, "check its spelling: as it stands the rule matches nothing by that"))
			}
		}
	}
}

// ruleNames are the names that rules can match, by what they are names of.
func ruleNames(s *Settings) []ruleNamed {
	servers, tags := toolsets(), append(facts.Tags(), "mcp", "code", "declarative", "hub", "tool_search", "tool_call")
	for _, server := range s.Upstream.Servers {
		servers, tags = append(servers, server.ID), append(tags, server.Tags...)
	}
	var profiles []string
	for _, p := range s.Profiles {
		profiles = append(profiles, p.Name)
	}
	for _, server := range servers {
		profiles = append(profiles, "s/"+server)
	}
	for _, t := range s.Policy.Tools.Tools {
		tags = append(tags, t.Tags...)
	}
	kinds := []ruleNamed{
		{"server", servers, func(r *policy.Rule) []string { return r.Server }, true},
		{"profile", profiles, func(r *policy.Rule) []string { return r.Profile }, true},
	}
	if !declares(s) { // their files say which tags they have
		kinds = append(kinds, ruleNamed{"tag", tags, func(r *policy.Rule) []string { return r.Tags }, false})
	}
	return kinds
}

// declares reports whether there are files that may declare tools.
func declares(s *Settings) bool {
	if !s.Declarative.Enabled || s.Declarative.Dir == "" {
		return false
	}
	files, err := filepath.Glob(filepath.Join(s.Declarative.Dir, "*.json"))
	return err == nil && len(files) > 0
}
