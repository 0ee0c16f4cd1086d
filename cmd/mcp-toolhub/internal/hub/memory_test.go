package hub

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

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
			{8 << 20, 0, "it starts"},
			{1 << 10, 0, "it has started, with little"},
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
