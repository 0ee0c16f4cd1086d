package invoke

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestArgumentsThatAreJSONInText: a text that holds JSON is read where the arguments fit only so. That is a mutation, and
// no way around what callers may not set.
func TestArgumentsThatAreJSONInText(t *testing.T) {
	t.Parallel()
	input := json.RawMessage(`{"type":"object","properties":{"f":{"type":"object","properties":{"a":{"type":"integer"}}},
		"n":{"type":"integer"},"text":{"type":"string"},"any":{}}}`)
	for _, c := range []struct{ args, sent, message string }{
		{`{"f":"{\"a\": 1}","n":"12345678901234567890"}`, `{"f":{"a": 1},"n":12345678901234567890}`, ""},
		{`{"text":"{}","any":"[1]"}`, `{"text":"{}","any":"[1]"}`, ""},
		{`{"f":"no JSON"}`, "", "must be an object"},
		{`{"f":"{\"a\":\"x\"}"}`, "", "must be an object"},
		{`{"n":"\"1\""}`, "", "must be an integer"},
		{`{"f":"{\"a\":1,\"a\":2}"}`, "", "stands twice"},
		{`{"f":"{\"secret\":1}"}`, "", "not for callers"},
	} {
		sent := ""
		b := newBench(t, tool.ValidateReject, func(_ context.Context, x *tool.Execution) (tool.Reply, error) {
			sent = string(x.Arguments)
			return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
		})
		entry, _ := b.surface.Resolve("mcp.s.t")
		one := entry.Tool
		one.InputSchema, one.SchemaDigest, one.Internal = input, tool.Digest(input), []string{"/f/secret"}
		out := b.call(t.Context(), "mcp.s.t", c.args)
		if sent != c.sent || !strings.Contains(string(out.Result), c.message) {
			t.Errorf("%s: sent %s, result %s", c.args, sent, out.Result)
		}
		mutations := 0
		for _, r := range b.records(t) {
			if r["object"] == "tool_input_mutation" {
				mutations++
			}
		}
		if changes := sent != "" && sent != c.args; changes != (mutations == 1) && c.sent != "" {
			t.Errorf("%s: %d mutations", c.args, mutations)
		}
	}
}
