package child

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlots: how many servers are starting after a while, of many that take long, by how busy the processors are.
func TestSlots(t *testing.T) {
	t.Parallel()
	const parallel, servers = 3, 40
	for name, c := range map[string]struct {
		busy  float64 // share of all processors
		known bool
		least int // of the servers that have begun to start after slotTime/2
		most  int
	}{
		"idle":    {0.1, true, servers, servers},
		"busy":    {0.9, true, parallel, parallel},
		"unknown": {0, false, parallel, parallel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s := NewSlots(parallel, func() (time.Duration, bool) {
					return time.Duration(c.busy * float64(runtime.GOMAXPROCS(0)) * float64(time.Since(began))), c.known
				})
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				var mu sync.Mutex
				starting := 0
				for range servers {
					running.Go(func() {
						free, ok := s.Take(ctx)
						if !ok {
							return
						}
						defer free()
						mu.Lock()
						starting++
						mu.Unlock()
						<-ctx.Done()
					})
				}
				check := func(at time.Duration, least, most int) {
					<-time.After(at - time.Since(began))
					synctest.Wait()
					mu.Lock()
					defer mu.Unlock()
					if starting < least || starting > most {
						t.Errorf("after %s %d servers have begun to start, want %d to %d", at, starting, least, most)
					}
				}
				check(slotTime/2, c.least, c.most)
				check(slotTime*3/2, min(2*parallel, servers), max(2*parallel, c.most))
				cancel()
				running.Wait()
				if n := len(s.places); n != 0 {
					t.Errorf("%d places are still taken", n)
				}
			})
		})
	}
}
