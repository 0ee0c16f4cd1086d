package hub

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The start is over once nobody has said anything new for a while, and begins only once.
func TestStartIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s starting
		s.more() // of a hub that does not serve
		waits := func(want bool, when string) {
			t.Helper()
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			if (s.timer != nil) != want {
				t.Errorf("%s: waiting is %t, want %t", when, !want, want)
			}
		}
		waits(false, "before")
		s.begin()
		for range 3 {
			time.Sleep(startQuiet - time.Millisecond)
			waits(true, "servers come up")
			s.more()
		}
		time.Sleep(startQuiet - time.Millisecond)
		waits(true, "quiet, not long enough")
		time.Sleep(time.Millisecond)
		waits(false, "quiet")
		s.more()
		waits(false, "a list that changes later")
		s.begin()
		s.end()
		waits(false, "stopped while it starts")
	})
}

// A hub gives memory back once after it has worked, when it rests, and not while it works or where it has done little.
func TestRestingHubGivesMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var allocated atomic.Uint64
		given := 0
		go rest(t.Context(), allocated.Load, func() { given++ })
		for _, tick := range []struct {
			bytes uint64
			given int
			what  string
		}{
			{1 << 10, 0, "after the start"},
			{100 << 20, 0, "it works"},
			{100 << 20, 0, "it works on"},
			{1 << 20, 1, "it rests"},
			{1 << 20, 1, "it rests on"},
			{6 << 20, 1, "it works a little"},
			{1 << 20, 1, "that is not worth it"},
			{50 << 20, 1, "it works again"},
			{0, 2, "it rests again"},
		} {
			allocated.Add(tick.bytes)
			time.Sleep(restEvery)
			synctest.Wait()
			if given != tick.given {
				t.Errorf("%s: %d times, want %d", tick.what, given, tick.given)
			}
		}
	})
}
