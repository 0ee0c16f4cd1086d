package policy_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

func TestRuleFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	text := `# what holds here
rules:
  - id: no-deletes
    match: [mcp.github.delete_*, "mcp.*.drop_*"]
    then: deny
    reason: Nothing is deleted.
  - match: mcp.pay.*
    tags: write
    server: pay
    profile: [ops]
    actor: ann
    when: |
      arguments.amount > 100
      && arguments.currency == "EUR"
    then: ask
    every_time: true
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := policy.ReadRules(policy.Managed, file)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Rules) != 2 || set.Source != policy.Managed {
		t.Fatalf("%+v", set)
	}
	first, second := set.Rules[0], set.Rules[1]
	if first.ID != "no-deletes" || len(first.Match) != 2 || first.Then != tool.Deny || first.Reason != "Nothing is deleted." ||
		first.Place != file+":3:5" {
		t.Errorf("%+v", first)
	}
	if second.Tags[0] != "write" || second.Server[0] != "pay" || second.Profile[0] != "ops" || second.Actor[0] != "ann" ||
		!second.EveryTime || !strings.Contains(second.When, "EUR") || second.Then != tool.Ask {
		t.Errorf("%+v", second)
	}
	if _, err := policy.ReadRules(policy.User, filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if set, err := policy.ParseRules(policy.User, "x.json", []byte(`{"rules": [{"match": "*", "then": "deny"}]}`)); err != nil || len(set.Rules) != 1 {
		t.Errorf("JSON: %+v, %v", set, err)
	}
	if set, err := policy.ParseRules(policy.User, "x", []byte("# nothing\n")); err != nil || len(set.Rules) != 0 {
		t.Errorf("an empty file: %+v, %v", set, err)
	}
}

// TestAFaultyRuleFileIsRefusedWhole holds the place and the sentence of every kind of fault.
func TestAFaultyRuleFileIsRefusedWhole(t *testing.T) {
	t.Parallel()
	const good = "rules:\n  - {id: good, match: a, then: deny}\n"
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":         {good + "  - {match: b, then: deny, wen: x}\n", `f:3:28: rules[1].wen: unknown key; did you mean "when"?`},
		"unknown top":         {"rule: []\n", `f:1:1: rule: unknown key; did you mean "rules"?`},
		"no behavior":         {good + "  - {match: b}\n", `f:3:5: rules[1].then: the rule does not say what happens;`},
		"bad behavior":        {good + "  - match: b\n    then: dney\n", `f:4:11: rules[1].then: want "allow", "ask", "deny" or "passthrough"; did you mean "deny"?`},
		"matches all":         {good + "  - then: deny\n", `f:3:5: rules[1]: the rule does not say which calls it matches; write match: "*"`},
		"bad pattern":         {good + "  - match: [b, 'x[1]']\n    then: deny\n", `f:3:16: rules[1].match[1]: the pattern "x[1]" holds one of []{}`},
		"one bad pattern":     {good + "  - match: ' b'\n    then: deny\n", `f:3:12: rules[1].match: the pattern " b" begins or ends in white space`},
		"empty list":          {good + "  - match: []\n    then: deny\n", `f:3:12: rules[1].match: the list is empty`},
		"twin id":             {good + "  - {id: good, match: b, then: deny}\n", `f:3:10: rules[1].id: another rule of this source has the id "good"`},
		"bad id":              {good + "  - {id: a/b, match: b, then: deny}\n", `f:3:10: rules[1].id: the id "a/b" is none`},
		"bad condition":       {good + "  - match: b\n    when: arguments.x ==\n    then: deny\n", `f:4:11: rules[1].when: column 15 of the condition: Syntax error`},
		"unknown variable":    {good + "  - match: b\n    when: args.x == 1\n    then: deny\n", `rules[1].when: column 1 of the condition: undeclared reference to 'args' (in container ''); there are arguments, _meta, targets`},
		"unknown field":       {good + "  - match: b\n    when: tool.raed_only\n    then: deny\n", `rules[1].when: column 5 of the condition: undefined field 'raed_only'; docs/permission.md says which there are`},
		"not a truth":         {good + "  - match: b\n    when: tool.name\n    then: deny\n", `rules[1].when: the condition is a string: write an expression that is true or false`},
		"empty condition":     {good + "  - match: b\n    when: ''\n    then: deny\n", `rules[1].when: is empty; write a value, or remove the key`},
		"condition of a kind": {good + "  - match: b\n    when: true\n    then: deny\n", `rules[1].when: want a string, found a boolean; put it in quotes`},
		"every time":          {good + "  - {match: b, then: deny, every_time: true}\n", `rules[1].every_time: only a rule that asks can ask every time`},
		"no truth":            {good + "  - {match: b, then: ask, every_time: 1}\n", `rules[1].every_time: want true or false, found a whole number`},
		"twin key":            {good + "  - match: b\n    then: deny\n    then: allow\n", `f:5:5: rules[1].then: duplicate key, first at f:4:5`},
		"alias":               {"rules:\n  - *a\n", `an alias without an anchor`},
		"tag":                 {"rules:\n  - {match: !!binary aGk=, then: deny}\n", `a YAML tag that has no meaning here`},
		"no list":             {"rules: {match: b}\n", `rules: want a list, found a mapping`},
		"no mapping":          {"rules: [b]\n", `rules[0]: want a mapping, found a string`},
		"no YAML":             {"rules: [\n", `not valid YAML`},
		"two documents":       {good + "---\nrules: []\n", `a second YAML document`},
		"too deep":            {"rules: " + strings.Repeat("[", 200), `nested more than 100 levels`},
		"too many tokens":     {strings.Repeat("- a\n", 60_000), `f:50001:1: more than 100,000 YAML tokens`},
		"too large":           {"#" + strings.Repeat("x", 2<<20), `larger than 1 MiB`},
		"unknown actor field": {good + "  - {match: b, when: 'actor == \"ann\"', then: deny}\n", `'(actor, string)'; actor has several fields: use actor.name`},
		"tool as a text":      {good + "  - {match: b, when: 'tool == \"x\"', then: deny}\n", `tool has several fields: use tool.name`},
		"user":                {good + "  - {user: ann, then: deny}\n", `f:3:6: rules[1].user: unknown key; did you mean "actor"?`},
		"a caller by door":    {good + "  - {actor: http/ann, then: deny}\n", `rules[1].actor: no caller's name; callers go by the names of their tokens alone: "ann"`},
		"empty tag":           {good + "  - {tags: ['a b'], then: deny}\n", `rules[1].tags: the tag "a b" is no word`},
	} {
		set, err := policy.ParseRules(policy.User, "f", []byte(c.text))
		var faults policy.Faults
		if !errors.As(err, &faults) || len(set.Rules) != 0 {
			t.Errorf("%s: got %v and %d rules, want faults alone", name, err, len(set.Rules))
			continue
		}
		if !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "f:") {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
	}
}

// One pass reports what cannot be read, what means nothing, and every error of a condition; and nothing of it twice.
func TestEveryFaultOfARuleFileIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := policy.ParseRules(policy.User, "f", []byte(`rules:
  - {user: ann, when: 'actor == "ann" && tool.raed_only', then: deny}
  - {match: x, then: dney, when: 'arguments.x =='}
  - {match: [x, "y[1]"], then: deny, id: a/b, every_time: 1}
  - nothing
`))
	if err == nil {
		t.Fatal("no fault")
	}
	wants := []string{"rules[0].user: unknown key", "rules[0].when: column 7 of", "rules[0].when: column 23 of", `rules[1].then: want "allow"`,
		"rules[1].when: column 15 of", "rules[2].match[1]: the pattern", `rules[2].id: the id "a/b"`, "rules[2].every_time: want true or false",
		"rules[3]: want a mapping"}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in\n%v", want, err)
		}
	}
	if got := strings.Count(err.Error(), "\n") + 1; got != len(wants) {
		t.Errorf("%d faults, want %d:\n%v", got, len(wants), err)
	}
}

// TestCompileRefusesWhole: a fault anywhere leaves no engine.
func TestCompileRefusesWhole(t *testing.T) {
	t.Parallel()
	e, err := policy.Compile(policy.Settings{
		Sets: []policy.Set{
			{Source: policy.User, Rules: []policy.Rule{{Match: []string{"*"}, Then: tool.Allow}, {Then: tool.Allow, Place: "f:7:3"}}},
		},
	})
	if want := "f:7:3: the rule does not say"; e != nil || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, %v, want %s", e, err, want)
	}
}

// TestVersion: what changes a decision changes the version, and nothing else does.
func TestVersion(t *testing.T) {
	t.Parallel()
	base := policy.Rule{ID: "a", Match: []string{"x"}, Then: tool.Ask}
	version := func(s policy.Settings) string { return compile(t, s).Version() }
	first := version(policy.Settings{Sets: user(base)})
	moved := base
	moved.Place = "elsewhere:1:1"
	grants, err := policy.OpenGrants(policy.GrantOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if version(policy.Settings{Sets: user(moved), Grants: grants}) != first {
		t.Error("place or grants change the version")
	}
	other := base
	other.When = "time.getHours() > 3"
	every := base
	every.EveryTime = true
	seen := map[string]bool{first: true}
	for name, s := range map[string]policy.Settings{
		"condition": {Sets: user(other)}, "every time": {Sets: user(every)}, "none": {},
		"source": {Sets: []policy.Set{{Source: policy.Managed, Rules: []policy.Rule{base}}}}, "mode": {Sets: user(base), Mode: policy.ModePlan},
	} {
		if v := version(s); seen[v] {
			t.Errorf("%s: the version %s is not new", name, v)
		} else {
			seen[v] = true
		}
	}
}
