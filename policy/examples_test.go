package policy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// The rule about branches that people copy from the documentation denies every spelling of main.
func TestDocumentedBranchRuleHolds(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"README.md"} {
		data, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Fatal(err)
		}
		when := regexp.MustCompile(`when: '([^']*arguments\.branch[^']*)'`).FindSubmatch(data)
		if when == nil {
			t.Fatalf("%s has no rule about arguments.branch", file)
		}
		set := policy.Set{Source: policy.User,
			Rules: []policy.Rule{{Match: []string{"mcp.*.push*"}, When: string(when[1]), Then: tool.Deny}}}
		e := compile(t, policy.Settings{Sets: append(user(policy.Rule{Match: []string{"*"}, Then: tool.Allow}), set)})
		for input, want := range map[string]tool.Behavior{
			`{"branch":"main"}`: tool.Deny, `{"branch":"refs/heads/main"}`: tool.Deny, `{"branch":"Main"}`: tool.Deny,
			`{"branch":"heads/main"}`: tool.Deny, `{"branch":" main"}`: tool.Deny, `{"branch":"main\n"}`: tool.Deny,
			`{"branch":"feature/x:main"}`: tool.Deny, `{"branch":"feature/x\nmain"}`: tool.Deny, `{"branch":["main"]}`: tool.Deny,
			`{}`: tool.Deny, `{"branch":"feature/login-2"}`: tool.Allow, `{"branch":"fix/42"}`: tool.Allow,
		} {
			call := writer("mcp.git.push")
			call.Input = json.RawMessage(input)
			if got := e.Decide(call); got.Behavior != want {
				t.Errorf("%s: a push with %s is decided as %s, want %s", file, input, got.Behavior, want)
			}
		}
	}
}
