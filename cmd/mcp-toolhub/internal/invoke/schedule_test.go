package invoke

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// says makes the gate know this of all tools.
func (b *bench) says(t testing.TB, o facts.Override) {
	t.Helper()
	o.Match = "*"
	g, err := gate.New(gate.Config{Mode: policy.ModeAcceptAll, Tools: facts.Config{Tools: []facts.Override{o}}}, gate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b.around.gate = func() *gate.Gate { return g }
}

// TestACallThatWaitsSaysSo: as progress with the status queued, in numbers that grow and stay below those of the tool.
func TestACallThatWaitsSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, tool.ValidateReject, func(context.Context, *tool.Execution) (tool.Reply, error) {
			time.Sleep(40 * time.Second)
			return tool.Reply{Result: []byte(answer)}, nil
		})
		b.says(t, facts.Override{Concurrency: facts.ConcurrencyExclusive})
		go b.call(t.Context(), "mcp.s.t", `{"n":1}`)
		synctest.Wait()
		var said []string
		c := b.callOf("mcp.s.t", `{"n":2}`)
		c.Progress = func(p tool.Progress) { said = append(said, string(p.Params)) }
		if o := b.Invoke(t.Context(), c); o.Status != tool.StatusSucceeded {
			t.Errorf("%s: %s", o.Status, o.Result)
		}
		if all := strings.Join(said, " "); len(said) != 3 || !strings.Contains(said[0], `"progress":0.010001,"message":"queued: `) ||
			!strings.Contains(said[2], `"progress":0.010003`) {
			t.Errorf("the client heard %s", all)
		}
		reports := 0
		for _, r := range b.records(t) {
			if r["event_type"] == string(tool.EventInvocationQueued) {
				if got := fmt.Sprint(r["data"]); got != "map[because:policy.tools concurrency:exclusive locks:[map[mode:exclusive resource:server]]]" {
					t.Errorf("the event says %s", got)
				}
			}
			if r["object"] == string(tool.ObjectProgress) {
				validateRecord(t, r)
				if reports++; r["status"] != "queued" {
					t.Errorf("a wait is recorded as %v", r)
				}
			}
		}
		if reports != 1 {
			t.Errorf("%d reports are recorded", reports)
		}
	})
}

// TestInterruptBehaviour: a cancellation reaches the executor, or the call is let finish and its record says that it did.
func TestInterruptBehaviour(t *testing.T) {
	t.Parallel()
	for interrupt, want := range map[string]tool.Status{facts.InterruptCancel: tool.StatusCanceled, facts.InterruptBlock: tool.StatusSucceeded} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, tool.ValidateReject, func(ctx context.Context, _ *tool.Execution) (tool.Reply, error) {
				select {
				case <-ctx.Done():
					return tool.Reply{}, &tool.Failure{Class: tool.ClassCanceled, Message: "canceled"}
				case <-time.After(time.Minute):
					return tool.Reply{Result: []byte(answer)}, nil
				}
			})
			b.says(t, facts.Override{Interrupt: interrupt})
			if o := b.call(canceled(t.Context(), time.Second, nil), "mcp.s.t", `{"n":1}`); o.Status != want {
				t.Errorf("%s: %s", interrupt, o.Status)
			}
		})
	}
}
