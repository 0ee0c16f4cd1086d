package main

import (
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
