package invoke

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// A ref is the digest of what the record holds. Where that is masked, it is keyed: equal inputs have equal refs, others do not.
func TestInputRefs(t *testing.T) {
	t.Parallel()
	f := facts.Of(&tool.Tool{Name: "mcp.s.t", InputSchema: []byte(`{"properties":{"password":{"type":"string"}}}`)}, facts.Options{})
	inv := &invocation{facts: f, key: []byte("key"), record: persist.Call{Secrets: secret.New(nil)}}
	long := strings.Repeat("x", persist.InlineLimit)
	for _, c := range []struct {
		input string
		keyed bool
	}{
		{`{"a":1}`, false}, {"{\"a\":\n 1,  \"b\": 2}", false}, {`{ "a" : 1 }`, false}, {`{"a":"` + long + `"}`, false},
		{`{"a": 1,"password":"hunter2"}`, true}, {`{"a":"` + long + `","password":"hunter2"}`, true},
	} {
		input := json.RawMessage(c.input)
		held, ref := inv.inline(input)
		got := inv.ref(input)
		switch {
		case strings.HasPrefix(got, "hmac-sha256:") != c.keyed, got != inv.ref(input), ref != "" && ref != got:
			t.Errorf("%.40s: ref %s, %s", c.input, got, ref)
		case !c.keyed && held != nil && got != persist.Ref(held), strings.Contains(string(held), "\n"):
			t.Errorf("%.40s: %s is not of %s", c.input, got, held)
		case c.keyed && got == inv.ref(json.RawMessage(strings.Replace(c.input, "hunter2", "hunter3", 1))):
			t.Errorf("%.40s: another secret has the same ref", c.input)
		}
	}
	// That of a batch is without the arguments of its calls, so its ref is keyed, too.
	inv.listed = &tool.Listed{Tool: &tool.Tool{Hub: &tool.HubTool{Batches: true}}}
	for calls, keyed := range map[string]bool{`[{"id":"a","arguments":{"b":1}}]`: true, `[{"id":"a"}]`: false} {
		input := json.RawMessage(`{"calls":` + calls + `}`)
		if held, ref := inv.inline(input); ref != "" || strings.Contains(string(held), `"b"`) || strings.HasPrefix(inv.ref(input), "hmac-") != keyed {
			t.Errorf("a batch of %s: %s, %s", calls, held, inv.ref(input))
		}
	}
}
