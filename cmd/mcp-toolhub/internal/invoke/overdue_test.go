package invoke

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// written counts the lines of the journal so far.
func (b *bench) written(t testing.TB) (n int) {
	t.Helper()
	if err := persist.ReadLines(b.dir, func(line json.RawMessage) bool { n += ofCalls(line); return true }); err != nil {
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

// A call that may have an effect is in the journal before it runs. One that only reads is there once it has run for a second;
// if it ends before, it leaves one line.
func TestLinesBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reads           bool
		runs            time.Duration
		early, late, in int // lines 3 ms after the call has begun to run, when it is about to end, and in the end
	}{
		{false, 100 * time.Millisecond, 1, 1, 2},
		{true, 100 * time.Millisecond, 0, 0, 1},
		{true, 2500 * time.Millisecond, 0, 1, 2},
		{false, 2500 * time.Millisecond, 1, 1, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			var early, late int
			b := newBench(t, "", nil)
			b.does(func(context.Context, *tool.Execution) (tool.Reply, error) {
				time.Sleep(3 * time.Millisecond)
				synctest.Wait()
				early = b.written(t)
				time.Sleep(c.runs)
				synctest.Wait()
				late = b.written(t)
				return tool.Reply{Result: json.RawMessage(answer)}, nil
			})
			if c.reads {
				b.readsOnly()
			}
			o := b.call(t.Context(), "mcp.s.t", `{"n":1}`)
			if in := b.written(t); o.Status != tool.StatusSucceeded || early != c.early || late != c.late || in != c.in {
				t.Errorf("reads %t for %v: %d lines at its beginning, %d before its end, %d after it (%s)", c.reads, c.runs, early, late, in, o.Status)
			}
			lifeOf(t, b, o.InvocationID)
		})
	}
}

// Each of many calls that begin at different times is in the journal once it has run for a second.
func TestOverdueCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, "", waits)
		b.readsOnly()
		b.does(func(context.Context, *tool.Execution) (tool.Reply, error) {
			time.Sleep(3 * time.Second)
			return tool.Reply{Result: json.RawMessage(answer)}, nil
		})
		done := make(chan Outcome, 20)
		for range cap(done) {
			go func() { done <- b.call(t.Context(), "mcp.s.t", `{"n":1}`) }()
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(899 * time.Millisecond)
		synctest.Wait()
		if n := b.written(t); n != cap(done)-1 {
			t.Errorf("%d lines while %d calls run, the last one for nearly a second", n, cap(done))
		}
		for range cap(done) {
			<-done
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := b.written(t); n != 2*cap(done) {
			t.Errorf("%d lines of %d calls", n, cap(done))
		}
	})
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
