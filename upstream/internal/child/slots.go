package child

import (
	"context"
	"sync"
	"time"
)

// slotTime bounds how long a starting server holds its slot: one that hangs must not hold the others back.
const slotTime = 5 * time.Second

// Slots bound how many servers start at the same time. Fifty runtimes that load at once are ready later than in turn.
type Slots struct {
	places chan struct{}
	most   time.Duration // that one start holds its slot
}

// NewSlots returns slots for so many servers at a time.
func NewSlots(parallel int) *Slots { return &Slots{make(chan struct{}, parallel), slotTime} }

// Another returns slots of the same number, all of them free.
func (s *Slots) Another() *Slots { return NewSlots(cap(s.places)) }

// Take waits for a slot. The caller calls free when the start is over; ok is false if ctx ended before.
func (s *Slots) Take(ctx context.Context) (free func(), ok bool) {
	select {
	case s.places <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	leave := sync.OnceFunc(func() { <-s.places })
	timer := time.AfterFunc(s.most, leave)
	return func() {
		timer.Stop()
		leave()
	}, true
}
