package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

// A rule that names what nothing has is pointed out, be it in the config or in a rule file; one that may match is not.
func TestRulesThatMatchNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(file, []byte("rules:\n  - {server: githb, then: deny}\n  - {match: github.x, then: deny}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const text = `
mcpServers: {github: {command: x, tags: [mine]}}
hub: {auth: {tokens: [{name: ann, token: "${env:SET}"}]}}
profiles: {review: {exclude: [github.*, mcp.github.y]}}
deferred: {always_load: [github.y], tools: [{match: mcp.github.z, hint: z}]}
policy:
  rule_files: {managed: %q}
  tools: [{match: mcp.github.x, tags: [odd]}, {match: github.x, network: true}]
  rules:
    - {tags: [readonly, mine, odd, mcp, dangerous], server: [github, code, hub, "git*"], profile: [default, review, s/github, "*"], actor: [ann, local], then: deny}
    - {tags: dangerus, then: deny}
    - {profile: reviews, then: deny}
    - {actor: [ann, bob], then: deny}
    - {match: [mcp.nobody.*, github.*, tool_search], then: deny}
`
	s, err := config.Parse(filepath.Join(dir, "x.yaml"), fmt.Appendf(nil, text, file), testEnv(), "tool_search")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, w := range s.Warnings {
		fmt.Fprintln(&got, w)
	}
	for _, want := range []string{
		`x.yaml:11:7: policy.rules[1]: the rule is about the tag "dangerus", which nothing here has; did you mean "dangerous"?`,
		`x.yaml:12:7: policy.rules[2]: the rule is about the profile "reviews", which nothing here has; did you mean "review"?`,
		`x.yaml:13:7: policy.rules[3]: the rule is about the caller "bob", which nothing here has; callers are the names in hub.auth.tokens, "local"`,
		`x.yaml:14:7: policy.rules[4]: the pattern "github.*" matches no tool; did you mean "mcp.github.*"?`,
		`rules.yaml:3:5: the pattern "github.x" matches no tool; did you mean "mcp.github.x"?`,
		`x.yaml:4:31: profiles.review.exclude[0]: matches no tool; did you mean "mcp.github.*"?`,
		`x.yaml:5:26: deferred.always_load[0]: matches no tool; did you mean "mcp.github.y"?`,
		`policy.tools[1].match: matches no tool; did you mean "mcp.github.x"?`,
		`rules.yaml:2:5: the rule is about the server "githb", which nothing here has; did you mean "github"?`,
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("no warning %s in\n%s", want, got.String())
		}
	}
	if len(s.Warnings) != 9 || len(s.Strays) != 9 {
		t.Errorf("%d warnings, %d of entries that match nothing:\n%s", len(s.Warnings), len(s.Strays), got.String())
	}
	var patterns []string
	for _, p := range s.Patterns {
		patterns = append(patterns, p.Text)
	}
	slices.Sort(patterns)
	if want := []string{"mcp.github.x", "mcp.github.y", "mcp.github.z", "mcp.nobody.*", "tool_search"}; !slices.Equal(patterns, want) {
		t.Errorf("patterns to hold against the tools: %v, want %v", patterns, want)
	}
}

// Files of declared tools are something to offer, and have tags of their own.
func TestDeclaredToolsAreSomething(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	vars := env(map[string]string{"HOME": home, "USERPROFILE": home, "AppData": home, "XDG_CONFIG_HOME": home})
	const text = "policy: {rules: [{tags: own, then: deny}]}"
	s, err := config.Parse("x.yaml", []byte(text), vars)
	if err != nil || len(s.Warnings) != 2 {
		t.Fatalf("%v, %v", s.Warnings, err)
	}
	if err := os.MkdirAll(s.Declarative.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Declarative.Dir, "own.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err = config.Parse("x.yaml", []byte(text), vars); err != nil || len(s.Warnings) != 0 {
		t.Errorf("%v, %v", s.Warnings, err)
	}
}
