package child

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlots: how many servers are starting after a while, of many that take long.
func TestSlots(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const parallel, servers = 3, 40
		began := time.Now()
		s := NewSlots(parallel)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var mu sync.Mutex
		starting := 0
		for range servers {
			running.Go(func() {
				free, ok := s.Take(ctx)
				if !ok {
					return
				}
				defer free()
				mu.Lock()
				starting++
				mu.Unlock()
				<-ctx.Done()
			})
		}
		for n, at := range []time.Duration{slotTime / 2, slotTime * 3 / 2} {
			<-time.After(at - time.Since(began))
			synctest.Wait()
			mu.Lock()
			if want := (n + 1) * parallel; starting != want {
				t.Errorf("after %s %d servers have begun to start, want %d", at, starting, want)
			}
			mu.Unlock()
		}
		cancel()
		running.Wait()
		if n := len(s.places); n != 0 {
			t.Errorf("%d places are still taken", n)
		}
	})
}
