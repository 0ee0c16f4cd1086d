package invoke

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// written counts the lines of the journal so far.
func (b *bench) written(t testing.TB) (n int) {
	t.Helper()
	if err := persist.NewLines(b.dir, "", make(map[string]int64), func(line json.RawMessage) bool { n += ofCalls(line); return true }); err != nil {
		t.Fatal(err)
	}
	return n
}

// readsOnly makes the tool of the bench one that is known to read only.
func (b *bench) readsOnly() {
	listed := b.surface.Listed[0]
	t := *listed.Tool
	t.Name, t.Native, t.Description = "mcp.s.get_t", "get_t", "Reads a number. Read-only."
	t.Declaration = json.RawMessage(`{"name":"get_t","description":"Reads a number. Read-only."}`)
	b.surface = tool.NewSurface("srf_x", "default", "canonical", "x", []tool.Listed{{Name: "mcp.s.t", Tool: &t}}, nil, map[string]int{"mcp.s.t": 0})
}

// A call is in the journal before it runs, and once more when it has ended, whatever its tool does.
func TestLinesBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{false, true} {
		early := -1
		b := newBench(t, "", nil)
		b.does(func(context.Context, *tool.Execution) (tool.Reply, error) {
			early = b.written(t)
			return tool.Reply{Result: json.RawMessage(answer)}, nil
		})
		if reads {
			b.readsOnly()
		}
		o := b.call(t.Context(), "mcp.s.t", `{"n":1}`)
		if in := b.written(t); o.Status != tool.StatusSucceeded || early != 1 || in != 2 {
			t.Errorf("reads %t: %d lines when it began to run, %d after it (%s)", reads, early, in, o.Status)
		}
		lifeOf(t, b, o.InvocationID)
	}
}

// What an executor reports after its answer reaches no record: neither that of its own call, nor that of the next one, which may
// use the same memory.
func TestLateReports(t *testing.T) {
	t.Parallel()
	var late []*tool.Execution
	b := newBench(t, "", func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		for _, before := range late {
			before.Record(recordsOf(before.Invocation)...)
			before.Progress(tool.Progress{Params: json.RawMessage(`{"progress":1}`)})
			_, _ = before.Ask(t.Context(), nil)
		}
		late = append(late, e)
		return tool.Reply{Result: json.RawMessage(answer)}, nil
	})
	c := b.callInRounds(t.Context(), `{}`)
	c.Ask = func(context.Context, []tool.Question) ([]tool.Answer, error) { return nil, nil }
	for range 20 {
		b.Invoke(t.Context(), c)
	}
	for _, r := range b.records(t) {
		if r["object"] == "deferred_tool_ref" || r["object"] == "tool_progress" || r["status"] == "needs_input" {
			t.Fatalf("a late report: %v", r)
		}
	}
}
