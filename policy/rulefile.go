package policy

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// ReadRules reads the rule file at path. The error is a Faults where the content has faults, and otherwise an error of os.
func ReadRules(source Source, path string) (Set, error) {
	data, err := readFile(path)
	if err != nil {
		return Set{}, fmt.Errorf("read rules: %w", err)
	}
	return ParseRules(source, path, data)
}

// readFile reads at most one byte more than is allowed: the parser then reports that the file is too large.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// ParseRules reads a rule file: a mapping with the one key rules, in YAML or JSON. file is its name in faults.
func ParseRules(source Source, file string, data []byte) (Set, error) {
	r := &reader{file: file}
	set := Set{Source: source}
	if root := r.tree(data); root != nil {
		r.fields(root, "", nil, field{"rules", func(value *node, key string) { set.Rules = r.rules(value, key) }})
	}
	if err := r.err(); err != nil {
		return Set{}, err
	}
	return set, nil
}

// rules reads and checks a list of rules.
func (r *reader) rules(n *node, key string) []Rule {
	var rules []Rule
	var places []map[string]*node
	r.list(n, key, func(_ int, key string, value *node) {
		rule, where := r.rule(value, key)
		rules, places = append(rules, rule), append(places, where)
	})
	before := slices.Clone(r.faults)
	for _, p := range CheckRules(rules) {
		path := join(fmt.Sprintf("%s[%d]", key, p.Rule), p.Key)
		if places[p.Rule][""].Kind != textfile.Mapping || before.Cover(path) {
			continue // it was reported when the rule was read
		}
		name, _, _ := strings.Cut(p.Key, "[")
		place := places[p.Rule][p.Key]
		if place == nil {
			place = places[p.Rule][name]
		}
		if place == nil {
			place = places[p.Rule][""]
		}
		r.fault(place, path, p.Message, p.Hint)
	}
	return rules
}

// RuleWords are words that people write for keys of rules, and the keys that they mean.
func RuleWords() map[string]string {
	return map[string]string{"user": "actor", "users": "actor", "caller": "actor", "tool": "match", "tools": "match",
		"if": "when", "condition": "when", "action": "then", "effect": "then", "behavior": "then"}
}

// rule reads one rule, and returns the places of its values by key.
func (r *reader) rule(n *node, key string) (Rule, map[string]*node) {
	rule := Rule{Place: fmt.Sprintf("%s:%d:%d", r.file, n.Line, n.Column)}
	places := map[string]*node{"": n}
	for _, m := range n.Members {
		places[m.Key] = m.Value
		for i, item := range m.Value.Items {
			places[fmt.Sprintf("%s[%d]", m.Key, i)] = item
		}
	}
	r.fields(n, key, RuleWords(),
		text(r, "id", &rule.ID),
		r.texts("match", &rule.Match),
		r.texts("tags", &rule.Tags),
		r.texts("server", &rule.Server),
		r.texts("profile", &rule.Profile),
		r.texts("actor", &rule.Actor),
		field{"when", func(value *node, key string) {
			if rule.When = r.word(value, key); strings.TrimSpace(rule.When) == "" {
				r.fault(value, key, "the condition is empty", "remove the key, or write an expression that is true or false")
			}
		}},
		text(r, "then", &rule.Then),
		r.bool("every_time", &rule.EveryTime),
		text(r, "reason", &rule.Reason))
	return rule, places
}
