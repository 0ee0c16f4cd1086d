package gate_test

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

func TestSuggest(t *testing.T) {
	t.Parallel()
	of := func(risk string, readOnly bool) *facts.Facts {
		return &facts.Facts{Risk: facts.Fact[string]{Value: risk}, ReadOnly: facts.Fact[bool]{Value: readOnly}}
	}
	dangerous := of(facts.RiskCritical, false)
	dangerous.Tags = []string{"dangerous"}
	open := of(facts.RiskLow, true)
	open.OpenWorld.Value = true
	because := func(kind string) map[string]any { return map[string]any{"type": kind, "message": "m"} }
	for name, c := range map[string]struct {
		facts  *facts.Facts
		reason map[string]any
		want   policy.Choice
	}{
		"reads":                       {of(facts.RiskLow, true), because("default"), policy.AllowOnce},
		"reads, and a rule asks":      {of(facts.RiskLow, true), because("rule"), policy.AllowOnce},
		"reads, and tells strangers":  {open, because("default"), ""},
		"reads, but what":             {of(facts.RiskMedium, true), because("default"), ""},
		"writes":                      {of(facts.RiskMedium, false), because("default"), ""},
		"nothing shows what it does":  {of(facts.RiskHigh, false), because("default"), ""},
		"dangerous":                   {dangerous, because("rule"), policy.DenyOnce},
		"reads beyond a limit":        {of(facts.RiskLow, true), because("limit"), policy.DenyOnce},
		"reads against a hook":        {of(facts.RiskLow, true), because("hook"), policy.DenyOnce},
		"a condition that has failed": {of(facts.RiskLow, true), map[string]any{"type": "rule", "condition_error": "x"}, policy.DenyOnce},
		"nothing is known":            {nil, because("default"), policy.DenyOnce},
	} {
		r := policy.Request{Tool: &tool.Tool{Name: "mcp.s.t", Server: "s"}, Facts: c.facts, Input: []byte(`{}`)}
		d := tool.PermissionDecision{Behavior: tool.Ask, Reason: c.reason}
		choice, why := gate.Suggest(&r, &d)
		if choice != c.want || (why == "") != (c.want == "") {
			t.Errorf("%s: %q because %q", name, choice, why)
		}
		if got := strings.Contains(gate.Message(gate.Asked{Request: &r, Decision: &d}), "\nSuggested: "); got != (c.want != "") {
			t.Errorf("%s: the question:\n%s", name, gate.Message(gate.Asked{Request: &r, Decision: &d}))
		}
	}
}
