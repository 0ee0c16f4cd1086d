package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/config"
)

// A rule that names what nothing has is pointed out, be it in the config or in a rule file; one that may match is not.
func TestRulesThatMatchNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(file, []byte("rules:\n  - {server: githb, then: deny}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const text = `
mcpServers: {github: {command: x, tags: [mine]}}
hub: {auth: {tokens: [{name: ann, token: "${env:SET}"}]}}
profiles: {review: {}}
policy:
  rule_files: {project: %q}
  tools: [{match: mcp.github.x, tags: [odd]}]
  rules:
    - {tags: [readonly, mine, odd, mcp, dangerous], server: [github, code, hub, "git*"], profile: [default, review, s/github, "*"], actor: [ann, local], then: deny}
    - {tags: dangerus, then: deny}
    - {profile: reviews, then: deny}
    - {actor: [ann, bob], then: deny}
    - {match: mcp.nobody.*, then: deny}
`
	s, err := config.Parse(filepath.Join(dir, "x.yaml"), fmt.Appendf(nil, text, file), testEnv())
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, w := range s.Warnings {
		fmt.Fprintln(&got, w)
	}
	for _, want := range []string{
		`x.yaml:10:7: policy.rules[1]: the rule is about the tag "dangerus", which nothing here has; did you mean "dangerous"?`,
		`x.yaml:11:7: policy.rules[2]: the rule is about the profile "reviews", which nothing here has; did you mean "review"?`,
		`rules.yaml:2:5: the rule is about the server "githb", which nothing here has; did you mean "github"?`,
	} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("no warning %s in\n%s", want, got.String())
		}
	}
	if len(s.Warnings) != 3 {
		t.Errorf("%d warnings:\n%s", len(s.Warnings), got.String())
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
