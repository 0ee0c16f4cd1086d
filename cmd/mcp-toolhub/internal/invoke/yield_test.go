package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// yields makes a bench whose tool is asked about in the queue, and a call to it by a client that hears no progress.
func yields(t *testing.T, ran *int) (*bench, *Call) {
	b := newBench(t, "", func(context.Context, *tool.Execution) (tool.Reply, error) {
		*ran++
		return tool.Reply{Result: json.RawMessage(`{"content":[]}`)}, nil
	})
	b.guarded(t)
	b.around.open = true
	c := b.callInRounds(t.Context(), `{"name":"x"}`)
	c.InputByRetry = false
	return b, c
}

// A client that hears no progress gives up after a minute. Before that it is told to call again; the repeated call has the
// answer that a person gives, also one given meanwhile, and names the call that it goes on with.
func TestACallWithoutProgressYields(t *testing.T) {
	t.Parallel()
	for _, meanwhile := range []bool{true, false} {
		for _, choice := range []policy.Choice{policy.AllowOnce, policy.DenyOnce} {
			t.Run(fmt.Sprint(meanwhile, choice), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ran := 0
					b, c := yields(t, &ran)
					begin := time.Now()
					first := b.Invoke(t.Context(), c)
					open := b.opts.Approvals.List()
					if len(open) != 1 {
						t.Fatalf("open: %v; %s %s", open, first.Status, first.Result)
					}
					id := open[0].ID
					if took := time.Since(begin); took != 50*time.Second || first.Status != tool.StatusYielded || first.Class != tool.ClassTimeout ||
						!strings.Contains(string(first.Result), "waits for approval "+string(id)+"; call again") ||
						strings.Contains(string(first.Result), "approvals approve") { // the model may have a shell
						t.Fatalf("after %v: %s %s", took, first.Status, first.Result)
					}
					answer := func() {
						a := approval.Answer{Choice: choice, Sentence: "mind the gap", By: "queue/op"}
						if err := b.opts.Approvals.Answer(id, a); err != nil {
							t.Error(err)
						}
					}
					if meanwhile {
						answer()
					} else {
						go func() {
							time.Sleep(30 * time.Second)
							answer()
						}()
					}
					second := b.Invoke(t.Context(), c)
					if !strings.Contains(string(second.Result), "mind the gap") || (second.Status == tool.StatusSucceeded) != choice.Allows() ||
						(ran == 1) != choice.Allows() {
						t.Errorf("the repeated call: %s %s, ran %d times", second.Status, second.Result, ran)
					}
					if third := b.Invoke(t.Context(), c); third.Status != tool.StatusYielded || ran > 1 {
						t.Errorf("the answer counts again: %s %s", third.Status, third.Result)
					}
					checkYielded(t, b, first.InvocationID, second.InvocationID)
				})
			})
		}
	}
}

// checkYielded holds what the records say of an invocation that has yielded, and of the one that went on with it.
func checkYielded(t *testing.T, b *bench, yielded, next tool.InvocationID) {
	t.Helper()
	last, results, events := map[tool.InvocationID]map[string]any{}, map[tool.InvocationID]int{}, 0
	for _, r := range b.records(t) {
		validateRecord(t, r)
		id, _ := r["invocation_id"].(string)
		switch {
		case r["object"] == "tool_invocation":
			last[tool.InvocationID(id)] = r
		case r["object"] == "tool_result":
			results[tool.InvocationID(id)]++
		case r["event_type"] == string(tool.EventInvocationYielded) && id == string(yielded):
			events++
		}
	}
	if got := statuses(last[yielded]); got != "planned selected arguments_ready awaiting_approval yielded" || results[yielded] != 1 || events != 1 {
		t.Errorf("%d results, %d events, went through %s", results[yielded], events, got)
	}
	if last[next]["parent_invocation_id"] != string(yielded) || last[yielded]["parent_invocation_id"] != nil || results[next] != 1 {
		t.Errorf("the repeated call is %v", last[next])
	}
}

// A call that yields again and again ends with the time of its question; a client that hears progress waits without yielding.
func TestYieldingEndsWithTheQuestion(t *testing.T) {
	t.Parallel()
	for _, hears := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ran := 0
			b, c := yields(t, &ran)
			if hears {
				c.Progress = func(tool.Progress) {}
			}
			begin, calls := time.Now(), 1
			o := b.Invoke(t.Context(), c)
			for ; o.Status == tool.StatusYielded; calls++ {
				o = b.Invoke(t.Context(), c)
			}
			if took := time.Since(begin); took != 4*time.Minute+30*time.Second || o.Class != tool.ClassPermissionDenied || (calls == 6) == hears ||
				!strings.Contains(string(o.Result), "nobody allowed it in time") || ran != 0 {
				t.Errorf("%d calls took %v: %s", calls, took, o.Result)
			}
		})
	}
}

// A client that shows the question itself gives up no later. Where the question is the answer to its request it may take its
// time, and only what follows in the queue is bounded.
func TestYieldingWhileTheClientAsks(t *testing.T) {
	t.Parallel()
	for _, rounds := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ran, taken := 0, false
			b, c := yields(t, &ran)
			c.InputByRetry, c.Progress, c.Hears = rounds, func(tool.Progress) {}, func() bool { return false }
			c.Ask = func(ctx context.Context, q []tool.Question) ([]tool.Answer, error) {
				tool.Sent(q)
				select {
				case <-time.After(time.Minute):
					return []tool.Answer{{Result: json.RawMessage(`{"action":"accept"}`)}}, nil // which is no answer
				case <-ctx.Done():
					taken = true
					return nil, ctx.Err()
				}
			}
			begin := time.Now()
			o := b.Invoke(t.Context(), c)
			want := 50 * time.Second
			if rounds {
				want += maxForms * time.Minute
			}
			if took := time.Since(begin); o.Status != tool.StatusYielded || took != want || taken == rounds {
				t.Errorf("in rounds %t: after %v: %s %s", rounds, took, o.Status, o.Result)
			}
		})
	}
}

// A call that its client gives up at the very moment when it would yield leaves no place behind.
func TestAGivenUpCallDoesNotYield(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ran := 0
		b, c := yields(t, &ran)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second-1)
		defer cancel()
		if o := b.Invoke(ctx, c); o.Status != tool.StatusCanceled || len(b.opts.Approvals.List()) != 0 {
			t.Errorf("%s, open: %v", o.Status, b.opts.Approvals.List())
		}
	})
}
