package invoke

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestArrivals: a call waits for those before it that are in the line, wherever they leave it, and not for longer than a moment.
func TestArrivals(t *testing.T) {
	t.Parallel()
	join := func(l *Line, n int) []*Arrival {
		all := make([]*Arrival, n)
		for i := range all {
			all[i] = &Arrival{}
			l.Join(all[i])
		}
		return all
	}
	t.Run("in order", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l Line
			all, passed := join(&l, 4), make(chan int, 4)
			for n := 3; n > 0; n-- {
				go func() {
					all[n].wait(t.Context())
					passed <- n
					all[n].Leave()
				}()
			}
			synctest.Wait()
			if len(passed) > 0 {
				t.Fatal("a call has not waited for the first one")
			}
			all[0].wait(t.Context())
			all[0].Leave()
			all[0].Leave()
			for want := 1; want <= 3; want++ {
				if n := <-passed; n != want {
					t.Errorf("call %d passed, not %d", n, want)
				}
			}
			if synctest.Wait(); l.first != nil || l.last != nil {
				t.Error("calls are left in the line")
			}
		})
	})
	t.Run("one leaves from the middle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l Line
			all, passed := join(&l, 3), make(chan struct{})
			go func() {
				all[2].wait(t.Context())
				close(passed)
			}()
			synctest.Wait()
			all[1].Leave()
			synctest.Wait()
			select {
			case <-passed:
				t.Error("the last call has not waited for the first one")
			default:
			}
			all[0].Leave()
			<-passed
		})
	})
	t.Run("one hangs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l Line
			all, began := join(&l, 3), time.Now()
			all[1].wait(t.Context())
			if took := time.Since(began); took != patienceInLine {
				t.Errorf("waited for %s", took)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			began = time.Now()
			all[2].wait(ctx)
			if took := time.Since(began); took != time.Millisecond {
				t.Errorf("a canceled call waited for %s", took)
			}
			all[0].Leave() // nobody waits any more
		})
	})
	t.Run("no line", func(*testing.T) {
		for _, a := range []*Arrival{nil, {}} {
			a.wait(t.Context())
			a.Leave()
		}
	})
}
