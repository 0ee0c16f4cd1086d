package policy_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// hundred is 100 rules of which 99 do not match, one has a condition that is looked at, and grants besides.
func hundred(tb testing.TB, then tool.Behavior) (*policy.Engine, policy.Request) {
	rules := make([]policy.Rule, 0, 100)
	behaviors := []tool.Behavior{tool.Allow, tool.Ask, tool.Deny, tool.Passthrough}
	for i := range 99 {
		rules = append(rules, policy.Rule{ID: fmt.Sprint("r", i), Match: []string{fmt.Sprintf("mcp.server%d.*_file", i)},
			Then: behaviors[i%4], Tags: []string{"write"}})
	}
	rules = append(rules, policy.Rule{ID: "cel", Match: []string{"mcp.files.*"}, Then: then,
		When: `arguments.path.startsWith("/srv/") && !tool.read_only && actor.name == "ann" && targets.size() == 1`})
	grants, err := policy.OpenGrants(policy.GrantOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	r := writer("mcp.files.write_file")
	r.Input = json.RawMessage(`{"path":"/srv/app/main.go","content":"package main\n","mode":420,"options":{"create":true}}`)
	r.Targets = []target.Target{{Kind: target.Path, Argument: "/path", Resolved: "/srv/app/main.go", Write: true}}
	e, err := policy.Compile(policy.Settings{Sets: user(rules...), Grants: grants})
	if err != nil {
		tb.Fatal(err)
	}
	return e, r
}

func BenchmarkDecide(b *testing.B) {
	for _, then := range []tool.Behavior{tool.Allow, tool.Ask, tool.Deny} {
		b.Run(string(then), func(b *testing.B) {
			e, r := hundred(b, then)
			b.ReportAllocs()
			for b.Loop() {
				if d := e.Decide(r); d.Behavior != then {
					b.Fatal(d.Behavior, d.Reason)
				}
			}
		})
	}
}

// TestDecideAllocatesLittle keeps a call's permission within its budget of 60 allocations.
func TestDecideAllocatesLittle(t *testing.T) {
	e, r := hundred(t, tool.Allow)
	if n := testing.AllocsPerRun(200, func() { e.Decide(r) }); n > 60 {
		t.Errorf("a decision with 100 rules and a condition takes %v allocations", n)
	}
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		hundred(b, tool.Allow)
	}
}
