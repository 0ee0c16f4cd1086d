package tool

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
					all[n].Wait(t.Context())
					passed <- n
					all[n].Leave()
				}()
			}
			synctest.Wait()
			if len(passed) > 0 {
				t.Fatal("a call has not waited for the first one")
			}
			all[0].Wait(t.Context())
			all[0].Leave()
			all[0].Leave()
			for want := 1; want <= 3; want++ {
				if n := <-passed; n != want {
					t.Errorf("call %d passed, not %d", n, want)
				}
			}
			if synctest.Wait(); len(l.calls) > 0 {
				t.Error("calls are left in the line")
			}
		})
	})
	t.Run("aside", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l Line
			all, passed, started := join(&l, 5), make(chan int, 5), make(chan struct{})
			for n := 4; n >= 0; n-- {
				go func() {
					if n != 2 {
						all[n].StandAside(t.Context())
						<-started
					}
					all[n].Wait(t.Context())
					passed <- n
					all[n].Leave()
				}()
			}
			if n := <-passed; n != 2 {
				t.Errorf("call %d passed, which waits for a server", n)
			}
			time.Sleep(2 * patienceInLine)
			close(started)
			for _, want := range []int{0, 1, 3, 4} {
				if n := <-passed; n != want {
					t.Errorf("call %d passed, not %d", n, want)
				}
			}
		})
	})
	t.Run("one leaves from the middle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l Line
			all, passed := join(&l, 3), make(chan struct{})
			go func() {
				all[2].Wait(t.Context())
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
	t.Run("some hang", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l Line
			all, began, passed := join(&l, 6), time.Now(), make(chan int, 6)
			for _, n := range []int{5, 4, 3} { // 0, 1 and 2 hang
				go func() {
					all[n].Wait(t.Context())
					passed <- n
					time.Sleep(patienceInLine / 2)
					all[n].Leave()
				}()
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if all[2].Wait(ctx); time.Since(began) != time.Millisecond {
				t.Errorf("a canceled call waited for %s", time.Since(began))
			}
			for i, want := range []int{3, 4, 5} {
				n := <-passed
				if took := time.Since(began); n != want || took != patienceInLine+time.Duration(i)*patienceInLine/2 {
					t.Errorf("call %d passed after %s, not %d", n, took, want)
				}
			}
			late := join(&l, 1)[0]
			began = time.Now()
			late.Wait(t.Context())
			if took := time.Since(began); took != patienceInLine/2 {
				t.Errorf("a call after all these waited for %s", took)
			}
			all[0].Leave() // nobody waits any more
		})
	})
	t.Run("some follow one", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var l Line
			all, passed := join(&l, 3), make(chan int, 3)
			var first, second, nobody Arrival
			first.Follow(all[1])
			second.Follow(&first)
			all[1].Leave()
			nobody.Follow(all[1])
			for n, a := range []*Arrival{&first, &second, all[2]} {
				go func() {
					a.Wait(t.Context())
					passed <- n
					a.Leave()
				}()
			}
			nobody.Wait(t.Context())
			if synctest.Wait(); len(passed) > 0 {
				t.Error("a call has not waited for the first one")
			}
			all[0].Leave()
			for want := range 3 {
				if n := <-passed; n != want {
					t.Errorf("call %d passed, not %d", n, want)
				}
			}
		})
	})
	t.Run("no line", func(*testing.T) {
		for _, a := range []*Arrival{nil, {}} {
			a.Wait(t.Context())
			a.Leave()
		}
	})
}
