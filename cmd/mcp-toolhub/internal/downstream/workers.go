package downstream

import (
	"context"
	"sync/atomic"
)

// workers run functions, each on a goroutine of its own, and use the goroutines again: a new one
// would have to grow its stack in each call.
type workers struct {
	next chan func()
	idle atomic.Int32
}

// maxIdleWorkers bounds the goroutines that wait for something to do.
const maxIdleWorkers = 32

func newWorkers() workers { return workers{next: make(chan func())} }

// run runs f and returns at once. Goroutines that wait end with ctx.
func (w *workers) run(ctx context.Context, f func()) {
	select {
	case w.next <- f:
	default:
		go w.work(ctx, f)
	}
}

func (w *workers) work(ctx context.Context, f func()) {
	for f != nil {
		f()
		f = nil
		if w.idle.Add(1) <= maxIdleWorkers {
			select {
			case f = <-w.next:
			case <-ctx.Done():
			}
		}
		w.idle.Add(-1)
	}
}
