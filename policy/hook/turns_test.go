package hook_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// TestTurns: however many slow hooks a caller has in all its sessions, the hook of another one runs at once. Where no place is free, the
// next one goes to the hook that came first, and whoever gives up leaves none behind.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, ends := map[string]int{}, make(chan struct{}) // ends ends a hook of ann
		run := func(ctx context.Context, c hook.Command) (hook.Ended, error) {
			by, end := "ann", ends
			for _, other := range []string{"bob", "eve"} {
				if bytes.Contains(c.Stdin, []byte(`"actor":"`+other+`"`)) {
					by, end = other, nil
				}
			}
			mu.Lock()
			running[by]++
			mu.Unlock()
			defer func() { mu.Lock(); running[by]--; mu.Unlock() }()
			select {
			case <-end:
			case <-ctx.Done():
			}
			return hook.Ended{}, ctx.Err()
		}
		p := plan(t, run, moment(hook.PreToolUse, `{}`), hook.Config{Name: "h", Events: []hook.Event{hook.PreToolUse}, Command: []string{"x"}})
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		call := func(ctx context.Context, n int, by string) {
			for i := range n {
				in := moment(hook.PreToolUse, `{}`)
				in.Request.Actor.Name, in.Request.Actor.Session = by, fmt.Sprint(i)
				calls.Go(func() {
					_ = p.Run(ctx, hook.PreToolUse, look{in, func(*hook.Report) error { return nil }})
				})
			}
			synctest.Wait()
		}
		want := func(when string, ann, bob, eve int) {
			t.Helper()
			synctest.Wait()
			if got := [3]int{running["ann"], running["bob"], running["eve"]}; got != [3]int{ann, bob, eve} {
				t.Errorf("%s %v hooks of ann, bob and eve run, want %v", when, got, [3]int{ann, bob, eve})
			}
		}
		gone, goes := context.WithCancel(t.Context())
		call(gone, 100, "ann")
		call(ctx, 100, "ann")
		want("at first", 32, 0, 0)
		call(ctx, 1, "bob")
		want("with another caller", 32, 1, 0)
		call(ctx, 20, "bob")
		want("with many of its hooks", 32, 16, 0)
		call(ctx, 2, "eve")
		for range 5 {
			ends <- struct{}{}
		}
		want("after as many have ended as bob waits for", 27, 21, 0)
		for range 2 {
			ends <- struct{}{}
		}
		want("after two more have ended", 25, 21, 2)
		goes()
		want("after half of a caller's calls are canceled", 25, 21, 2)
		cancel()
		calls.Wait()
		call(t.Context(), 100, "ann")
		want("after all have ended", 32, 0, 0)
		close(ends)
		calls.Wait()
	})
}
