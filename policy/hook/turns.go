package hook

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// caller is one party that takes turns. All its sessions and runs count together.
type caller struct{ door, name string }

// turns gives places to the commands and requests of hooks, first come first served. No caller has
// more than ownPlaces. A call that waits for its caller's other hooks holds no place.
type turns struct {
	all *semaphore.Weighted
	mu  sync.Mutex
	by  map[caller]*semaphore.Weighted
}

func newTurns() *turns {
	return &turns{all: semaphore.NewWeighted(places), by: make(map[caller]*semaphore.Weighted)}
}

// of returns the places of a caller.
func (t *turns) of(by caller) *semaphore.Weighted {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by[by] == nil {
		t.by[by] = semaphore.NewWeighted(ownPlaces)
	}
	return t.by[by]
}

// enter waits for a place, which leave gives back. An error is that of ctx, and no place is held
// then. m is told once where no place is free.
func (t *turns) enter(ctx context.Context, by caller, m Moment) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	own := t.of(by)
	mine := own.TryAcquire(1)
	if mine && t.all.TryAcquire(1) {
		return nil
	}
	m.Waits(ctx)
	if !mine {
		if err := own.Acquire(ctx, 1); err != nil {
			return err
		}
	}
	if err := t.all.Acquire(ctx, 1); err != nil {
		own.Release(1)
		return err
	}
	return nil
}

// leave gives a place back.
func (t *turns) leave(by caller) {
	t.all.Release(1)
	t.of(by).Release(1)
}
