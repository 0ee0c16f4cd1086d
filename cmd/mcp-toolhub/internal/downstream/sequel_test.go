package downstream

import (
	"testing"
	"testing/synctest"
)

// TestNotesThatWait holds that a client which tells a server that does not listen ever more has a
// bounded number of words wait.
func TestNotesThatWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var q sequel
		hung := make(chan struct{})
		taken := 0
		for range 3 * maxSequel {
			if q.after(func() { <-hung }) {
				taken++
			}
		}
		if taken != maxSequel {
			t.Errorf("%d wait", taken)
		}
		close(hung)
		synctest.Wait()
		if !q.after(func() {}) {
			t.Error("none is taken after those have gone")
		}
		synctest.Wait()
	})
}
