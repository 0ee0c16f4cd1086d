package upstream

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// slotTime is how long a starting server counts towards StartParallel: one that hangs must not hold the others back.
const slotTime = 5 * time.Second

const (
	// idleWindow is how long the machine is watched before more servers than StartParallel are let start.
	idleWindow = 20 * time.Millisecond
	// idleShare is the part of the processors that has to be idle meanwhile.
	idleShare = 0.25
)

// slots bound how many servers start at the same time. Starting costs processor time in bursts, and fifty runtimes that
// load at once are ready later than in turn; but most servers spend their start waiting, for a network or a timer, and
// as long as the processors are idle the next one need not wait for that.
type slots struct {
	places        chan struct{}
	processorTime func() (used time.Duration, ok bool)

	mu      sync.Mutex
	watched time.Time
	used    time.Duration // of all processors, up to watched
	extra   int           // servers that may start besides, because the processors were idle
}

// newSlots returns slots for so many servers at a time. processorTime is how long all processors have worked; ok is false
// where nobody knows.
func newSlots(parallel int, processorTime func() (used time.Duration, ok bool)) *slots {
	return &slots{places: make(chan struct{}, parallel), processorTime: processorTime}
}

// take waits for its turn. It returns what is to be called when the start is over; ok is false when ctx ended before.
func (s *slots) take(ctx context.Context) (free func(), ok bool) {
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

// besides reports whether one server more may start because processors are idle.
func (s *slots) besides() bool {
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
