package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// BenchmarkPermission is what permission adds to a call: 100 rules, one of which has a condition and allows the call, against
// all other phases without that one. Calls with and without it take turns, so that whatever else happens on the machine
// happens to both, and each kind's median is reported.
func BenchmarkPermission(b *testing.B) {
	dir := b.TempDir()
	for i := range 30 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("File%d.go", i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ properties, arguments string }{
		"plain":    {`"text":{"type":"string"},"times":{"type":"integer"}`, `{"text":"the quick brown fox","times":3}`},
		"old_path": {`"path":{"type":"string"}`, `{"path":"File7.go"}`},
		"new_path": {`"path":{"type":"string"}`, `{"path":"new.go"}`},
		"url":      {`"url":{"type":"string"}`, `{"url":"https://www.example.com/a/b?c=d"}`},
	} {
		b.Run(name, func(b *testing.B) {
			schema := json.RawMessage(`{"type":"object","properties":{` + c.properties + `}}`)
			p := newBench(b, tool.ValidateReject, ok(`{"content":[]}`))
			p.unsynced(b)
			guard := gateIn(b, dir, hundredRules()...)
			p.around.gate = func() *gate.Gate { return guard }
			p.surface.Listed[0].Tool.InputSchema, p.surface.Listed[0].Tool.SchemaDigest = schema, tool.Digest(schema)
			timed := func(call func(context.Context, string, string) Outcome) time.Duration {
				start := time.Now()
				if o := call(b.Context(), "mcp.s.t", c.arguments); o.Status != tool.StatusSucceeded {
					b.Fatalf("%s %s", o.Status, o.Result)
				}
				return time.Since(start)
			}
			var without, with []time.Duration
			for b.Loop() {
				without, with = append(without, timed(p.callUnasked)), append(with, timed(p.call))
			}
			slices.Sort(without)
			slices.Sort(with)
			b.ReportMetric(float64(without[len(without)/2].Nanoseconds())/1e3, "us-without")
			b.ReportMetric(float64((with[len(with)/2]-without[len(without)/2]).Nanoseconds())/1e3, "us-added")
			b.ReportMetric(p.added(b, c.arguments), "allocs-added")
		})
	}
}

// unsynced gives the bench a journal that makes records durable behind the answers, as a hub has it.
func (b *bench) unsynced(tb testing.TB) {
	tb.Helper()
	j, err := persist.Open(persist.JournalConfig{Dir: tb.TempDir(), SyncWithin: 100 * time.Millisecond}, slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = j.Close() })
	b.opts.Journal = j
}

// callUnasked is call without the phase of permission.
func (b *bench) callUnasked(ctx context.Context, name, args string) Outcome {
	inv := b.begin(ctx, b.callOf(name, args))
	defer inv.release()
	for i := range b.phases {
		ph := &b.phases[i]
		if ph.name == "permission" || inv.failure != nil && !ph.always {
			continue
		}
		if err := b.runPhase(ctx, ph, inv); err != nil {
			inv.fail(err)
		}
	}
	return inv.outcome
}

// added is how many allocations of a call are those of permission.
func (b *bench) added(tb testing.TB, arguments string) float64 {
	count := func(call func(context.Context, string, string) Outcome) float64 {
		return testing.AllocsPerRun(100, func() { call(tb.Context(), "mcp.s.t", arguments) })
	}
	return count(b.call) - count(b.callUnasked)
}

// hundredRules are 99 about other tools, and one with a condition.
func hundredRules() []policy.Rule {
	behaviors := []tool.Behavior{tool.Allow, tool.Ask, tool.Deny, tool.Passthrough}
	var rules []policy.Rule
	for i := range 99 {
		rules = append(rules, policy.Rule{Match: []string{fmt.Sprintf("mcp.server%d.*_file", i)}, Then: behaviors[i%4]})
	}
	return append(rules, policy.Rule{Match: []string{"mcp.s.*"}, Then: tool.Allow,
		When: `!has(arguments.secret) && !tool.read_only && actor.name == "ann" && targets.size() < 2`})
}

func gateIn(tb testing.TB, dir string, rules ...policy.Rule) *gate.Gate {
	tb.Helper()
	g, err := gate.New(gate.Config{Sets: []policy.Set{{Source: policy.User, Rules: rules}}}, gate.Options{Dir: dir})
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// TestPermissionAllocatesLittle keeps what permission adds to a call within its budget of 70 allocations.
func TestPermissionAllocatesLittle(t *testing.T) {
	p := newBench(t, "", ok(`{"content":[]}`))
	guard := gateIn(t, t.TempDir(), hundredRules()...)
	p.around.gate = func() *gate.Gate { return guard }
	if n := p.added(t, `{"n":1,"path":"some/new.go"}`); n > 70 {
		t.Errorf("permission adds %v allocations to a call", n)
	}
	if out := p.call(t.Context(), "mcp.s.t", `{"n":1,"path":"some/new.go"}`); !strings.Contains(string(out.Result), "content") {
		t.Errorf("the call: %+v", out)
	}
}
