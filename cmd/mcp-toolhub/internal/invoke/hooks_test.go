package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// runFunc is a runner of commands.
type runFunc func(context.Context, hook.Command) (hook.Ended, error)

func (f runFunc) Run(ctx context.Context, c hook.Command) (hook.Ended, error) { return f(ctx, c) }

// TestAHookThatWaitsHasNotRun: a call that is canceled while a hook waits for its turn has records of the hooks that have begun, and of no
// other one. While it waits, the journal has the call.
func TestAHookThatWaitsHasNotRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, tool.ValidateReject, ok(answer))
		end := make(chan struct{})
		run := func(ctx context.Context, _ hook.Command) (hook.Ended, error) {
			select {
			case <-end:
			case <-ctx.Done():
			}
			return hook.Ended{}, ctx.Err()
		}
		config := func(name, when string) hook.Config {
			return hook.Config{Name: name, Events: []hook.Event{hook.PreToolUse}, Command: []string{"x"}, Rule: policy.Rule{When: when}}
		}
		set, problems := hook.New([]hook.Config{config("busy", "arguments.n == 0"), config("first", "arguments.n == 1"),
			config("second", "arguments.n == 1")}, hook.Options{Runner: runFunc(run)})
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		b.around.hooks = set
		var calls sync.WaitGroup
		call := func(ctx context.Context, id, arguments string) {
			c := b.callOf("mcp.s.t", arguments)
			c.NativeCallID = json.RawMessage(id)
			calls.Go(func() { b.Invoke(ctx, c) })
			synctest.Wait()
		}
		for range 31 {
			call(t.Context(), "1", `{"n":0}`)
		}
		ctx, cancel := context.WithCancel(t.Context())
		call(ctx, "2", `{"n":1}`) // the first one has the last place
		call(ctx, "3", `{"n":1}`)
		time.Sleep(time.Second) // of the bubble: the journal gathers lines
		open := map[string]bool{}
		err := persist.Read(b.dir, func(line json.RawMessage) bool {
			var o struct {
				ID string `json:"invocation_id"`
			}
			if json.Unmarshal(line, &o) == nil && o.ID != "" {
				open[o.ID] = true
			}
			return true
		})
		if err != nil || len(open) != 33 {
			t.Errorf("the journal has %d of 33 calls that wait, %v", len(open), err)
		}
		cancel()
		synctest.Wait()
		close(end)
		calls.Wait()

		records := b.records(t)
		for id, want := range map[string][]string{"2": {"tool.hook.pre.started", "tool.hook.pre.completed", "first"}, "3": nil} {
			i := slices.IndexFunc(records, func(r map[string]any) bool { return r["object"] == "tool_invocation" && r["native_call_id"] == id })
			facts, _ := records[i]["cancellation"].(map[string]any)
			if got := fmt.Sprint(records[i]["status"], facts["requested_by"], facts["outcome"]); got !=
				fmt.Sprint("canceled", tool.CanceledByClosedStream, tool.OutcomeNotBegun) {
				t.Errorf("call %s has ended so: %s", id, got)
			}
			var got []string
			for _, r := range records {
				if r["invocation_id"] != records[i]["invocation_id"] {
					continue
				}
				if kind, _ := r["event_type"].(string); strings.HasPrefix(kind, "tool.hook.") {
					got = append(got, kind)
				}
				if r["object"] == "tool_hook" {
					got = append(got, fmt.Sprint(r["matcher"].(map[string]any)["hook"]))
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("call %s has the records of hooks %v, want %v", id, got, want)
			}
		}
	})
}
