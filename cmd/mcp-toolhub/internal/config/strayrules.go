package config

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
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

	otherwise string // what to do where no name is near
}

// strayRules warns of rules that name a server, profile, tag or caller that nothing has: a rule
// that denies and is misspelt denies nothing, and nobody would know. It is no fault: what is named
// may be added later.
func (r policyReader) strayRules(s *Settings) {
	p := &r.permission
	kinds := r.ruleNames(s)
	for i, set := range s.Policy.Sets {
		for n, patterns := range RulePatterns(set) {
			at, where, above := p.Position, set.Rules[n].Place+": ", ""
			leave := r.At(p.Path)
			if i == 0 { // those of the config itself
				at, where, above = p.Value.rules[n].Position, "", "policy."
				r.Path = p.Value.rules[n].Path
			}
			r.strayRule(at, where, &set.Rules[n], kinds)
			for _, one := range patterns {
				one.Key = above + one.Key
				r.pattern(at, where+"the pattern "+shape.Quote(one.Text)+" matches no tool", one)
			}
			leave()
		}
	}
}

// RulePatterns are the patterns over canonical names of each rule of a set.
func RulePatterns(set policy.Set) [][]Pattern {
	all := make([][]Pattern, len(set.Rules))
	for n, rule := range set.Rules {
		for _, text := range rule.Match {
			all[n] = append(all[n], Pattern{rule.Place, fmt.Sprintf("rules[%d].match", n), text})
		}
	}
	return all
}

// strayRule warns of what one rule names and nothing has. at is the rule's place, and where its
// place if that is in another file.
func (r policyReader) strayRule(at textfile.Position, where string, rule *policy.Rule, kinds []ruleNamed) {
	for _, k := range kinds {
		for _, name := range k.of(rule) {
			known := slices.Contains(k.all, name) || k.glob &&
				slices.ContainsFunc(k.all, func(n string) bool { return glob.Match(name, n) })
			if !known {
				r.stray(at, fmt.Sprintf("%sthe rule is about the %s %s, which nothing here has", where, k.kind,
					shape.Quote(name)),
					textfile.DidYouMean(name, k.all, k.otherwise))
			}
		}
	}
}

// ruleNames returns the names that rules can match, by what they are names of.
func (r policyReader) ruleNames(s *Settings) []ruleNamed {
	servers, tags := toolsets(), slices.Concat(facts.Tags(), []string{"mcp"}, toolsets(), r.hubTools)
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
	callers := []string{"local"}
	for _, t := range s.Downstream.Auth.Tokens {
		callers = append(callers, t.Name)
	}
	// users of the command line go by their own names
	for _, variable := range []string{"USER", "LOGNAME", "USERNAME"} {
		callers = append(callers, r.vars.env.value(variable))
	}
	const spelling = "check its spelling: as it stands the rule matches nothing by that"
	kinds := []ruleNamed{
		{"server", servers, func(r *policy.Rule) []string { return r.Server }, true, spelling},
		{"profile", profiles, func(r *policy.Rule) []string { return r.Profile }, true, spelling},
		{"caller", callers, func(r *policy.Rule) []string { return r.Actor }, true,
			"callers are the names in hub.auth.tokens, " +
				`"local" where there are none, and on the command line the user`},
	}
	if !declares(s) { // their files say which tags they have
		kinds = append(kinds, ruleNamed{"tag", tags, func(r *policy.Rule) []string { return r.Tags }, false, spelling})
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
