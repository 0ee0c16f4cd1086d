package budget

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// take is Take, of which must says whether the lease is to be had.
func take(t *testing.T, a *Account, size int64, held *Lease, want error) *Lease {
	t.Helper()
	l, err := a.Take(size, held)
	if !errors.Is(err, want) {
		t.Fatalf("a lease of %d bytes: %v, want %v", size, err, want)
	}
	return l
}

// check holds that what is counted is what is held.
func (b *Budget) check(t *testing.T, used int64, waiting int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := int64(0)
	for _, a := range b.accounts {
		sum += a.used
	}
	if b.used != used || sum != used || len(b.waiting) != waiting {
		t.Errorf("%d bytes are held, %d by accounts, %d wait: want %d and %d", b.used, sum, len(b.waiting), used, waiting)
	}
}

func TestServersShareTheBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(700)
		first, second, third := b.Account("a"), b.Account("b"), b.Account("c")
		fill := func(a *Account) (held int64) {
			for {
				b.mu.Lock()
				fits := b.fits(&Lease{account: a, size: 10})
				b.mu.Unlock()
				if !fits {
					return a.used
				}
				take(t, a, 10, nil, nil)
			}
		}
		if got := fill(first); got != 460 { // two thirds
			t.Errorf("the only server holds %d", got)
		}
		if got := fill(second); got != 160 { // two thirds of the rest
			t.Errorf("a second server holds %d", got)
		}
		began := time.Now()
		take(t, third, 50, nil, nil)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a third server has waited %s for its first message", waited)
		}
		began = time.Now()
		take(t, first, 10, nil, ErrBusy)
		if waited := time.Since(began); waited != Patience {
			t.Errorf("the first server has waited %s", waited)
		}
		b.check(t, 670, 0)
		var none *Account
		if l := take(t, none, 1<<40, nil, nil); l != nil {
			t.Error("an account without bounds gives a lease")
		}
		(*Lease)(nil).Free()
	})
}

// TestALeaseIsHadWhenOthersAreFree waits behind what is held, and comes in its turn.
func TestALeaseIsHadWhenOthersAreFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(300)
		a := b.Account("a")
		begun, other := take(t, a, 20, nil, nil), take(t, a, 170, nil, nil)
		order := make(chan string, 3)
		var waiting sync.WaitGroup
		ask := func(name string, size int64, held *Lease) {
			waiting.Go(func() {
				l := take(t, a, size, held, nil)
				held.Free()
				order <- name
				l.Free()
			})
			synctest.Wait()
		}
		ask("large", 150, nil)
		ask("small", 1, nil) // would fit, and still does not overtake
		ask("begun", 160, begun)
		b.check(t, 190, 3)
		time.Sleep(Patience - time.Second) // virtual time
		other.Free()
		other.Free()
		waiting.Wait()
		if got := []string{<-order, <-order, <-order}; got[0] != "begun" || got[1] == got[2] {
			t.Errorf("the order was %q", got)
		}
		b.check(t, 0, 0)
	})
}

func TestWhatNeverFitsIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(300)
		a, began := b.Account("a"), time.Now()
		take(t, a, 201, nil, ErrTooLarge)
		held := take(t, a, 90, nil, nil)
		take(t, a, 111, held, ErrTooLarge) // both at the same time, while the message is moved
		b.check(t, 0, 0)
		take(t, a, 200, nil, nil)
		b.Resize(150)
		take(t, a, 101, nil, ErrTooLarge)
		var waiting sync.WaitGroup
		waiting.Go(func() { take(t, a, 100, nil, nil) })
		waiting.Go(func() { take(t, b.Account("b"), 10, nil, nil) })
		synctest.Wait()
		b.check(t, 200, 2)
		b.Resize(900)
		waiting.Wait()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("refused after %s", waited)
		}
		waiting.Go(func() { take(t, a, 500, nil, ErrBusy) })
		synctest.Wait()
		b.Close()
		waiting.Wait()
		take(t, a, 1, nil, ErrBusy)
	})
}

// TestMessagesThatWaitForEachOtherDoNotDeadlock lets eight messages grow that could not all be had together: some fail,
// the others come to their end, and nothing is left behind.
func TestMessagesThatWaitForEachOtherDoNotDeadlock(t *testing.T) {
	t.Parallel()
	for _, servers := range []int{1, 3, 8} {
		synctest.Test(t, func(t *testing.T) {
			b := New(1 << 20)
			names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
			var messages sync.WaitGroup
			var mu sync.Mutex
			ended, failed := 0, 0
			began := time.Now()
			for i := range 8 {
				messages.Go(func() {
					a := b.Account(names[i%servers])
					var held *Lease
					for size := int64(16 << 10); size <= 256<<10; size *= 2 {
						l, err := a.Take(size, held)
						if err != nil {
							mu.Lock()
							failed++
							mu.Unlock()
							return
						}
						held.Free()
						held = l
						time.Sleep(time.Millisecond) // virtual time
					}
					mu.Lock()
					ended++
					mu.Unlock()
					held.Free()
				})
			}
			messages.Wait()
			if ended == 0 || ended+failed != 8 {
				t.Errorf("%d servers: %d messages came to their end, %d failed", servers, ended, failed)
			}
			if took := time.Since(began); took > 5*Patience {
				t.Errorf("%d servers: all were through after %s", servers, took)
			}
			t.Logf("%d servers: %d messages came to their end, %d failed, after %s", servers, ended, failed, time.Since(began))
			b.check(t, 0, 0)
		})
	}
}

// TestTheBudgetHoldsUnderLoad takes and frees at random, and holds that the budget is never exceeded.
func TestTheBudgetHoldsUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(10_000)
		var messages sync.WaitGroup
		for i := range 20 {
			messages.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				a := b.Account(string(rune('a' + i%4)))
				for range 50 {
					l, err := a.Take(1+r.Int64N(4_000), nil)
					b.mu.Lock()
					if b.used > b.total || b.used < 0 {
						t.Errorf("%d of %d bytes are held", b.used, b.total)
					}
					b.mu.Unlock()
					time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond) // virtual time
					if err == nil {
						l.Free()
					}
				}
			})
		}
		messages.Wait()
		b.check(t, 0, 0)
	})
}

func TestDefaultIsWithinItsBounds(t *testing.T) {
	t.Parallel()
	if got := Default(); got < least || got > most {
		t.Errorf("the default is %d bytes", got)
	}
}
