package invoke

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// hundredHooks are hooks of which none matches a call of mcp.s.t with these rules.
func hundredHooks(tb testing.TB, rule func(i int) policy.Rule) *hook.Set {
	tb.Helper()
	configs := make([]hook.Config, 100)
	for i := range configs {
		configs[i] = hook.Config{Events: []hook.Event{hook.PreToolUse, hook.PostToolUse}, Rule: rule(i), Require: "false"}
	}
	set, problems := hook.New(configs, hook.Options{})
	if len(problems) > 0 {
		tb.Fatal(problems)
	}
	return set
}

func otherTools(i int) policy.Rule {
	return policy.Rule{Match: []string{fmt.Sprintf("mcp.other%d.*", i)}}
}

// BenchmarkHooks is what 100 hooks that do not match add to a call: hooks for other tools, hooks whose condition knows by tool and
// caller, and hooks whose condition looks at the arguments of each call. Calls with and without them take turns.
func BenchmarkHooks(b *testing.B) {
	for name, rule := range map[string]func(int) policy.Rule{
		"match": otherTools,
		"tool":  func(i int) policy.Rule { return policy.Rule{When: fmt.Sprintf(`tool.server == "other%d"`, i)} },
		"arguments": func(i int) policy.Rule {
			return policy.Rule{Match: []string{"mcp.s.*"}, When: fmt.Sprintf(`arguments.n == %d`, 1000+i)}
		},
	} {
		b.Run(name, func(b *testing.B) {
			p := newBench(b, tool.ValidateReject, ok(`{"content":[]}`))
			p.unsynced(b)
			set := hundredHooks(b, rule)
			timed := func(hooks *hook.Set) time.Duration {
				p.around.hooks = hooks
				start := time.Now()
				if o := p.call(b.Context(), "mcp.s.t", `{"n":1}`); o.Status != tool.StatusSucceeded {
					b.Fatalf("%s %s", o.Status, o.Result)
				}
				return time.Since(start)
			}
			var without, with []time.Duration
			for b.Loop() {
				without, with = append(without, timed(nil)), append(with, timed(set))
			}
			slices.Sort(without)
			slices.Sort(with)
			b.ReportMetric(float64(without[len(without)/2].Nanoseconds())/1e3, "us-without")
			b.ReportMetric(float64((with[len(with)/2]-without[len(without)/2]).Nanoseconds())/1e3, "us-added")
		})
	}
}
