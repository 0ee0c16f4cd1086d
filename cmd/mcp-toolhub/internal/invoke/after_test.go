package invoke

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// What the person who allowed a call says stands behind the tool's content, and nothing else of the result changes.
func TestFeedbackOfThePerson(t *testing.T) {
	t.Parallel()
	block := `{"type":"text","text":"The person who allowed this call says: mind \"it\"","_meta":{"toolhub/feedback":true}}`
	long := strings.Repeat("x", persist.InlineLimit+1)
	for name, c := range map[string]struct{ given, want string }{
		"content":    {`{"z":1.50, "content":[{"type":"text","text":"\u0061"} ],"a":[ ]}`, `{"z":1.50, "content":[{"type":"text","text":"\u0061"} ,` + block + `],"a":[ ]}`},
		"empty":      {`{"content":[ ],"structuredContent":{"n":1.50}}`, `{"content":[ ` + block + `],"structuredContent":{"n":1.50}}`},
		"an error":   {`{"content":[],"isError":true}`, `{"content":[` + block + `],"isError":true}`},
		"no content": {`{"task":{"taskId":"t"},"_meta":{"m":1.50}}`, `{"task":{"taskId":"t"},"_meta":{"m":1.50,"toolhub/feedback":"mind \"it\""}}`},
		"odd":        {`{"content":"text"}`, `{"content":"text","_meta":{"toolhub/feedback":"mind \"it\""}}`},
		"long":       {`{"content":[{"type":"text","text":"` + long + `"}]}`, `{"content":[{"type":"text","text":"` + long + `"},` + block + `]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "", func(context.Context, *tool.Execution) (tool.Reply, error) {
				return tool.Reply{Result: json.RawMessage(c.given)}, nil
			})
			b.guarded(t)
			call := b.callInRounds(t.Context(), `{"name":"x"}`)
			call.InputByRetry = false
			call.Ask = func(context.Context, []tool.Question) ([]tool.Answer, error) {
				return []tool.Answer{{Result: json.RawMessage(`{"action":"accept","content":{"answer":"allow_once","message":"mind \"it\""}}`)}}, nil
			}
			o := b.Invoke(t.Context(), call)
			if string(o.Result) != c.want || string(o.Object.Text()) != c.want {
				t.Errorf("%.2000s", o.Result)
			}
			for _, r := range b.records(t) {
				if r["object"] == "tool_result" && name == "long" && r["content_ref"] != persist.RefOf(tool.Digest(o.Result), len(o.Result)) {
					t.Errorf("the journal refers to %v", r["content_ref"])
				}
				validateRecord(t, r)
			}
		})
	}
}
