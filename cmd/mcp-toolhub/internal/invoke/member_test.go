package invoke

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// TestSiblingsEndBeforeTheLocksOfAFailedCallAreFree: a call that waits for the lock of its sibling does not run when that has failed.
func TestSiblingsEndBeforeTheLocksOfAFailedCallAreFree(t *testing.T) {
	t.Parallel()
	runs, fails := make(chan struct{}), make(chan struct{})
	b := newBench(t, tool.ValidateReject, func(_ context.Context, e *tool.Execution) (tool.Reply, error) {
		if strings.Contains(string(e.Arguments), "2") {
			t.Error("the sibling has run")
			return tool.Reply{Result: []byte(answer)}, nil
		}
		runs <- struct{}{}
		<-fails
		return tool.Reply{Result: []byte(`{"content":[],"isError":true}`)}, nil
	})
	b.says(t, facts.Override{Concurrency: facts.ConcurrencyExclusive})
	// pair makes both calls, the second once the first runs, and lets the first one fail when the second waits.
	pair := func(ctx context.Context, first, second *Call) {
		var both sync.WaitGroup
		both.Go(func() { b.Invoke(t.Context(), first) })
		<-runs
		both.Go(func() {
			if o := b.Invoke(ctx, second); o.Class != tool.ClassSiblingCanceled || o.Aborted != AbortSiblingFailed {
				t.Errorf("the sibling ended as %s, %s", o.Status, o.Class)
			}
		})
		for b.Load("s").Queued == 0 {
			runtime.Gosched()
		}
		fails <- struct{}{}
		both.Wait()
	}
	told := 0
	for i := range 50 {
		member := func() *Member { return &Member{Group: Group{ID: fmt.Sprint("g", i), Policy: CancelSiblings}} }
		first, second := b.callOf("mcp.s.t", `{"n":1}`), b.callOf("mcp.s.t", `{"n":2}`)
		first.Member, second.Member = member(), member()
		if i%2 == 0 { // as a call of a batch
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			first.Member = &Member{Failed: func(status tool.Status, class tool.ErrorClass) {
				if told++; status != tool.StatusFailed || class != tool.ClassExecutionFailed || i == 0 && told == 1 && b.Load("s").Running != 1 {
					t.Errorf("told %d times, of %s, %s, with %d that run", told, status, class, b.Load("s").Running)
				}
				cancel(SiblingFailed("first", status))
			}}
			second.Member = &Member{}
			pair(ctx, first, second)
			continue
		}
		pair(t.Context(), first, second)
	}
	if told == 0 {
		t.Error("nobody was told of a failure")
	}
}

// TestARefusedBatchKeepsNoArguments: what a batch holds under wrong names is not in its record.
func TestARefusedBatchKeepsNoArguments(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"calls":[{"id":"a","name":"x","arguments":{"v":"secret"},"depends_on":["b"]}],"max_parallel":2}`: `{"calls":[{"id":"a","name":"x","depends_on":["b"]}],"max_parallel":2}`,
		`{"calls":[{"name":"x","args":{"v":"secret"},"Arguments":1},"secret"]}`:                            `{"calls":[{"name":"x"},{}]}`,
		`{"Calls":[{"name":"x","arguments":"secret"}],"ordering_policy":"serial"}`:                         `{"ordering_policy":"serial"}`,
		`{"calls":{"arguments":"secret"}}`:                                                                 `{}`,
		`["secret"]`:                                                                                       `{}`,
		`null`:                                                                                             `null`,
	} {
		if got := string(withoutArguments([]byte(input))); got != want {
			t.Errorf("%s is kept as %s, want %s", input, got, want)
		}
	}
}
