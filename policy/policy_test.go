package policy_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

func TestEveryCallIsAllowedAndSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		engine := policy.New()
		request := policy.Request{Invocation: tool.NewInvocationID(), Tool: &tool.Tool{Name: "mcp.files.delete_all"},
			Input: json.RawMessage(`{"path":"/"}`), Actor: tool.Actor{Name: "local", Door: "stdio"}}
		got := engine.Decide(t.Context(), request)
		if got.DecisionID == "" || got.DecisionID == engine.Decide(t.Context(), request).DecisionID {
			t.Errorf("the decision id %q is empty or given twice", got.DecisionID)
		}
		got.DecisionID = ""
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		want := `{"object":"tool_permission_decision","schema_version":"0.2.0","decision_id":"","invocation_id":"` +
			string(request.Invocation) + `","behavior":"allow","mode":"default","source":"default",` +
			`"reason":{"message":"no rule applies: every call is allowed","type":"default"},"decided_at":"2000-01-01T00:00:00Z"}`
		if string(text) != want {
			t.Errorf("got  %s\nwant %s", text, want)
		}
	})
}
