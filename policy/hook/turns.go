package hook

import (
	"context"
	"slices"
	"sync"
)

// caller is one party that takes turns. All its sessions and runs count together.
type caller struct{ door, name string }

// turns gives places to the commands and requests of hooks. A free place goes to the waiting caller
// that has the fewest, and among equals to the one that came first. No caller has more than
// ownPlaces.
type turns struct {
	mu      sync.Mutex
	taken   int
	by      map[caller]int // places that a caller has; not 0
	waiting []*turn        // in the order in which they came
}

// turn is a run that waits for its place.
type turn struct {
	by   caller
	came chan struct{} // closed when it has its place
}

// enter waits for a place, which leave gives back. An error is that of ctx, and no place is held
// then. waits is called once where no place is free.
func (t *turns) enter(ctx context.Context, by caller, waits func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	own := &turn{by: by, came: make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, own)
	t.admit()
	waiting := slices.Contains(t.waiting, own)
	t.mu.Unlock()
	if !waiting {
		return nil
	}
	waits()
	select {
	case <-own.came:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, own); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	} else { // it came at the same moment
		t.free(by)
	}
	return ctx.Err()
}

// leave gives a place back.
func (t *turns) leave(by caller) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free(by)
}

// free gives a place back and lets others in. t.mu is held.
func (t *turns) free(by caller) {
	t.taken--
	if t.by[by]--; t.by[by] == 0 {
		delete(t.by, by)
	}
	t.admit()
}

// admit gives away the places that are free. t.mu is held.
func (t *turns) admit() {
	for t.taken < places {
		next, fewest := -1, ownPlaces
		for i, w := range t.waiting {
			if n := t.by[w.by]; n < fewest {
				next, fewest = i, n
			}
		}
		if next < 0 {
			return
		}
		w := t.waiting[next]
		t.waiting = slices.Delete(t.waiting, next, next+1)
		t.taken++
		t.by[w.by]++
		close(w.came)
	}
}
