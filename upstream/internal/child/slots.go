package child

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// slotTime bounds how long a starting server holds its slot: one that hangs must not hold the others back.
const slotTime = 5 * time.Second

const (
	// idleWindow bounds how long the machine is watched before more servers may start than there are slots.
	idleWindow = 20 * time.Millisecond
	// idleShare is the part of the processors that has to be idle meanwhile.
	idleShare = 0.25
)

// Slots bound how many servers start at the same time. Fifty runtimes that load at once are ready
// later than in turn. But most servers spend their start waiting for a network or a timer, so while
// processors are idle, more servers may start.
type Slots struct {
	places        chan struct{}
	processorTime func() (used time.Duration, ok bool)

	mu      sync.Mutex
	watched time.Time
	used    time.Duration // of all processors, up to watched
	extra   int           // servers that may start besides, because the processors were idle
}

// NewSlots returns slots for so many servers at a time. processorTime is ProcessorTime, or stands for it in tests.
func NewSlots(parallel int, processorTime func() (used time.Duration, ok bool)) *Slots {
	return &Slots{places: make(chan struct{}, parallel), processorTime: processorTime}
}

// Another returns slots of the same number, all of them free.
func (s *Slots) Another() *Slots { return NewSlots(cap(s.places), s.processorTime) }

// Take waits for a slot. The caller calls free when the start is over; ok is false if ctx ended before.
func (s *Slots) Take(ctx context.Context) (free func(), ok bool) {
	again := time.NewTicker(idleWindow)
	defer again.Stop()
	for {
		select {
		case s.places <- struct{}{}:
			var once sync.Once
			leave := func() { once.Do(func() { <-s.places }) }
			timer := time.AfterFunc(slotTime, leave)
			return func() {
				timer.Stop()
				leave()
			}, true
		case <-again.C:
			if s.besides() {
				return func() {}, true
			}
		case <-ctx.Done():
			return nil, false
		}
	}
}

// besides reports whether one more server may start because processors are idle.
func (s *Slots) besides() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if elapsed := now.Sub(s.watched); elapsed >= idleWindow {
		used, known := s.processorTime()
		busy := float64(used-s.used) / float64(elapsed)
		processors := runtime.GOMAXPROCS(0)
		first := elapsed > 10*idleWindow // too long ago to say anything of this moment
		s.extra, s.watched, s.used = 0, now, used
		if known && !first && busy <= float64(processors)*(1-idleShare) {
			s.extra = processors
		}
	}
	if s.extra == 0 {
		return false
	}
	s.extra--
	return true
}
