package downstream

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
)

// Goroutines that have nothing to do are used again, few of them wait, and those end with the context.
func TestWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newWorkers()
		const jobs = 2 * maxIdleWorkers
		release := make(chan struct{})
		for range jobs {
			w.run(ctx, func() { <-release }) // none of them waits for another one
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
		if idle := w.idle.Load(); idle != maxIdleWorkers {
			t.Errorf("%d goroutines wait, want %d", idle, maxIdleWorkers)
		}
		again := make(chan int32, 1)
		w.run(ctx, func() { again <- w.idle.Load() })
		if idle := <-again; idle != maxIdleWorkers-1 {
			t.Errorf("while one works %d goroutines wait, want %d", idle, maxIdleWorkers-1)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if idle := w.idle.Load(); idle != 0 {
			t.Errorf("%d goroutines wait after the end", idle)
		}
		w.run(ctx, func() { again <- 0 })
		<-again // what comes after the end is done all the same
	})
}

// A call that has ended twice does not end another one that has its id by now.
func TestAnIdThatIsUsedAgainStaysInUse(t *testing.T) {
	t.Parallel()
	var calls inflight
	id := json.RawMessage(`1`)
	_, done, _ := calls.add(t.Context(), id)
	done()
	ctx, _, refusal := calls.add(t.Context(), id)
	if refusal != nil {
		t.Fatal(refusal)
	}
	done()
	if !calls.cancel(json.RawMessage(`{"requestId":1}`)) || ctx.Err() == nil {
		t.Error("the second call of the id cannot be cancelled")
	}
}
