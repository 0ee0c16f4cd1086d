package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// The rule about branches that people copy from the documentation denies every spelling of main.
func TestDocumentedBranchRuleHolds(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"README.md", "config.example.yaml"} {
		data, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		rule := ""
		for line := range strings.Lines(string(data)) {
			if line = strings.TrimLeft(line, "# "); strings.HasPrefix(line, "- {") && strings.Contains(line, "arguments.branch") {
				rule += "  " + line
			}
		}
		set, err := policy.ParseRules(policy.User, file, []byte("rules:\n"+rule))
		if err != nil || len(set.Rules) != 1 {
			t.Fatalf("%s: %d rules: %v", file, len(set.Rules), err)
		}
		e := compile(t, policy.Settings{Sets: append(user(policy.Rule{Match: []string{"*"}, Then: tool.Allow}), set)})
		for input, want := range map[string]tool.Behavior{
			`{"branch":"main"}`: tool.Deny, `{"branch":"refs/heads/main"}`: tool.Deny, `{"branch":"Main"}`: tool.Deny,
			`{"branch":"heads/main"}`: tool.Deny, `{"branch":" main"}`: tool.Deny, `{"branch":"main\n"}`: tool.Deny,
			`{"branch":"feature/x:main"}`: tool.Deny, `{"branch":"feature/x\nmain"}`: tool.Deny, `{"branch":["main"]}`: tool.Deny,
			`{}`: tool.Deny, `{"branch":"feature/login-2"}`: tool.Allow, `{"branch":"fix/42"}`: tool.Allow,
		} {
			call := writer("mcp.git.push")
			call.Input = json.RawMessage(input)
			if got := e.Decide(t.Context(), call); got.Behavior != want {
				t.Errorf("%s: a push with %s is decided as %s, want %s", file, input, got.Behavior, want)
			}
		}
	}
}
