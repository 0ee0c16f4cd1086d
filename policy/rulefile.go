package policy

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// ReadRules reads the rule file at path. The error is a Faults where the content has faults, and
// otherwise an error of os.
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
	var rules []shape.Located[Rule]
	if err := readText(file, data, shape.Key("rules", "", Rules{}, &rules)); err != nil {
		return Set{}, err
	}
	return Set{Source: source, Rules: shape.Values(rules)}, nil
}

// Rules is the shape of the rules of one source. They are checked as by CheckRules, and know their places.
type Rules struct{}

// Read reports what is wrong with a rule at the deepest place that the file holds.
func (Rules) Read(r *shape.Reader, n *textfile.Node) ([]shape.Located[Rule], bool) {
	all, sound := listOfRules().Read(r, n)
	for i := range all {
		all[i].Value.Place = r.Place(all[i].Position)
	}
	before := slices.Clone(r.Faults)
	for _, p := range CheckRules(shape.Values(all)) {
		rule := all[p.Rule]
		isNone := rule.Node.Kind != textfile.Mapping && !rule.OK
		if isNone || before.Cover(strings.TrimSuffix(rule.Path+"."+p.Key, ".")) {
			continue // it was reported when the rule was read
		}
		shape.FaultWithin(r, rule, p.Key, p.Message, p.Hint)
		sound = false
	}
	return all, sound
}

// Schema is that of a list of rules.
func (Rules) Schema() shape.Schema { return listOfRules().Schema() }

func listOfRules() shape.List[shape.Located[Rule]] {
	return shape.ListAt(shape.Object[Rule]{Fields: ruleKeys,
		Meant: map[string]string{"user": "actor", "users": "actor", "caller": "actor", "tool": "match",
			"tools": "match",
			"if":    "when", "condition": "when", "action": "then", "effect": "then", "behavior": "then"},
		Extra: shape.Schema{"type": "object", "required": []string{"then"}}})
}

func ruleKeys(r *Rule) []shape.Field {
	words := shape.Words{}
	return []shape.Field{
		shape.Key("id", "Its name in records (default: its number).", shape.Text{}, &r.ID),
		shape.Key("match", `Tools, as globs over canonical names: "mcp.github.*".`, words, &r.Match),
		shape.Key("tags",
			"Tools with one of these tags: readonly, write, dangerous, network, filesystem … (tools show prints them).",
			words, &r.Tags),
		shape.Key("server", "Tools of these servers or toolsets, as globs.", words, &r.Server),
		shape.Key("profile", "Calls through these profiles, as globs.", words, &r.Profile),
		shape.Key("actor",
			`Calls of these callers: names of tokens, as globs; "local" without authentication; of tools call the user's name.`,
			shape.Words{Of: shape.Text{Check: callerName}}, &r.Actor),
		shape.Key("when",
			"A CEL expression over arguments, targets, actor, tool, time, _meta, profile and cwd that must be true.",
			shape.Text{}, &r.When),
		shape.Key("then", "What happens: allow, ask, deny or passthrough.", behavior(), &r.Then),
		shape.Key("every_time", "With then: ask, no answer is remembered.", shape.Boolean{}, &r.EveryTime),
		shape.Key("reason", "Why: for people, and for the model where the rule denies.", shape.Text{}, &r.Reason),
	}
}

func behavior() shape.As[tool.Behavior] {
	return shape.OneOf(tool.Allow, tool.Ask, tool.Deny, tool.Passthrough)
}

// callerName refuses what records call a caller, http/ann: a rule for that would be about nobody, unseen.
func callerName(s string) (string, string) {
	if at := strings.LastIndexAny(s, "/:"); at >= 0 {
		return "no caller's name", `callers go by the names of their tokens alone: "` + s[at+1:] +
			`"; how they come in is actor.door in when`
	}
	return "", ""
}
