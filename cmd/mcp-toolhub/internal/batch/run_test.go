package batch

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// TestACallThatAsksItsClientHasNoPlace: with max_parallel 1 others run while a call waits for answers, and one at a time all the same. Two
// questions of one call, and one that is answered after its call has ended, take no place from others.
func TestACallThatAsksItsClientHasNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var said []string
		say := func(text string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, text)
		}
		question := func(ctx context.Context, c *invoke.Call, d time.Duration) {
			if _, err := c.Ask(context.WithValue(ctx, questionFor{}, d), nil); err != nil {
				t.Error(err)
			}
		}
		var late sync.WaitGroup
		run := func(ctx context.Context, c *invoke.Call) invoke.Outcome {
			if c.Name != "asks" {
				time.Sleep(time.Millisecond)
			}
			if err := c.Member.Turn(ctx); err != nil {
				t.Error(err)
			}
			if c.Name == "asks" {
				var both sync.WaitGroup
				both.Go(func() { question(ctx, c, time.Second) })
				both.Go(func() { question(ctx, c, 7*time.Second) })
				both.Wait()
				late.Go(func() { time.Sleep(2 * time.Second); question(ctx, c, time.Hour) })
			}
			say(c.Name + " begins")
			time.Sleep(5 * time.Second)
			say(c.Name + " ends")
			return invoke.Outcome{Status: tool.StatusSucceeded}
		}
		e := &tool.Execution{Surface: tool.NewSurface("srf_x", "default", "canonical", "x", nil, nil, nil), Progress: func(tool.Progress) {},
			Ask: func(ctx context.Context, _ []tool.Question) ([]tool.Answer, error) {
				d, _ := ctx.Value(questionFor{}).(time.Duration)
				time.Sleep(d)
				return nil, nil
			}}
		r := &request{Ordering: allowUnordered, Failure: invoke.IgnoreSiblings, MaxParallel: 1,
			Calls: []call{{ID: "a", Name: "asks"}, {ID: "b", Name: "one of b"}, {ID: "c", Name: "two of c"}}}
		b := newBatch(Options{Invoke: run}, e, r)
		b.run(t.Context())
		if len(said) != 6 || said[4] != "asks begins" {
			t.Errorf("the others have not run while the call waited: %q", said)
		}
		for i := 0; i+1 < len(said); i += 2 {
			if said[i][:4] != said[i+1][:4] {
				t.Errorf("calls have overlapped: %q", said)
			}
		}
		late.Wait()
		if len(b.places) != 0 {
			t.Errorf("%d places are taken at the end", len(b.places))
		}
	})
}

// questionFor is the key of how long the answer takes.
type questionFor struct{}
