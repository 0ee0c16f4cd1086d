package budget

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const mib = 1 << 20

// take is Take, of which must says whether the lease is to be had.
func take(t *testing.T, a *Account, size int64, want error) *Lease {
	t.Helper()
	l, err := a.Take(size)
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
		sum += a.small.used + a.large.used
	}
	held, wait := b.small.used+b.large.used, len(b.small.waiting)+len(b.large.waiting)
	if held != used || sum != used || wait != waiting {
		t.Errorf("%d bytes are held, %d by accounts, %d wait: want %d and %d", held, sum, wait, used, waiting)
	}
}

func TestServersShareTheBudget(t *testing.T) {
	t.Parallel()
	for size, part := range map[int64]int64{1 * mib: 300, 2 * mib: 900} { // of each part
		synctest.Test(t, func(t *testing.T) {
			b := New(1200*mib, "")
			first, second, third := b.Account("a"), b.Account("b"), b.Account("c")
			fill := func(a *Account) (held int64) {
				for {
					l := &Lease{budget: b, size: size, share: &a.small}
					if size > Small {
						l.share = &a.large
					}
					b.mu.Lock()
					fits := l.fits()
					b.mu.Unlock()
					if !fits {
						return l.share.used / mib
					}
					take(t, a, size, nil)
				}
			}
			if got := fill(first); got != part*2/3 { // two thirds
				t.Errorf("the only server holds %d of %d", got, part)
			}
			if got := fill(second); got > part*2/9 || got < part*2/9-2 { // two thirds of the rest
				t.Errorf("a second server holds %d of %d", got, part)
			}
			began := time.Now()
			take(t, third, size, nil)
			if waited := time.Since(began); waited != 0 {
				t.Errorf("a third server has waited %s for its first message", waited)
			}
			began = time.Now()
			take(t, first, size, ErrBusy)
			if waited := time.Since(began); waited != Patience {
				t.Errorf("the first server has waited %s", waited)
			}
		})
	}
	var none *Account
	if l := take(t, none, 1<<40, nil); l != nil {
		t.Error("an account without bounds gives a lease")
	}
	(*Lease)(nil).Free()
}

// queue has an account ask for leases, each from a goroutine of its own, and returns who had one, in turn.
type queue struct {
	t       *testing.T
	asking  sync.WaitGroup
	mu      sync.Mutex
	had     []string
	leases  map[string]*Lease
	refused []string
}

func (q *queue) ask(a *Account, name string, size int64) {
	q.asking.Go(func() {
		l, err := a.Take(size)
		q.mu.Lock()
		defer q.mu.Unlock()
		if err != nil {
			q.refused = append(q.refused, name)
			return
		}
		q.had = append(q.had, name)
		q.leases[name] = l
	})
	synctest.Wait()
}

// expect holds who had leases since the last time, by name, and frees these.
func (q *queue) expect(names ...string) {
	q.t.Helper()
	synctest.Wait()
	q.mu.Lock()
	had := q.had
	q.had = nil
	q.mu.Unlock()
	slices.Sort(had) // what several were told at once they may say in any order
	if !slices.Equal(had, names) {
		q.t.Fatalf("%q had leases, want %q", had, names)
	}
	for _, name := range names {
		q.leases[name].Free()
	}
}

func TestServersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(100*mib, "")
		q := queue{t: t, leases: map[string]*Lease{}}
		for _, name := range []string{"a1", "a2", "a3", "a4", "b1", "b2", "c1"} {
			q.ask(b.Account(name[:1]), name, 60*mib) // one at a time
		}
		for _, name := range []string{"a1", "b1", "c1", "a2", "b2", "a3", "a4"} {
			q.expect(name)
		}
		q.asking.Wait()
		b.check(t, 0, 0)
	})
}

// TestALargeMessageIsNotOvertakenForEver has a message wait that needs all there is, while others come and go.
func TestALargeMessageIsNotOvertakenForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(100*mib, "")
		q := queue{t: t, leases: map[string]*Lease{}}
		first := take(t, b.Account("a"), 10*mib, nil)
		q.ask(b.Account("b"), "large", 70*mib)
		q.ask(b.Account("c"), "overtakes", 10*mib)
		q.expect("overtakes")
		time.Sleep(inTurn) // virtual time
		q.ask(b.Account("c"), "waits", 10*mib)
		q.expect()
		first.Free()
		q.expect("large")
		q.expect("waits")
		q.asking.Wait()

		// Who waits for its own account alone holds up nobody.
		first = take(t, b.Account("a"), 40*mib, nil)
		q.ask(b.Account("a"), "own", 30*mib)
		time.Sleep(2 * inTurn) // virtual time
		q.ask(b.Account("c"), "other", 10*mib)
		q.expect("other")
		first.Free()
		q.expect("own")
		q.asking.Wait()
		b.check(t, 0, 0)
	})
}

func TestSmallAndLargeMessagesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(100*mib, "")
		q := queue{t: t, leases: map[string]*Lease{}}
		a := b.Account("a")
		take(t, a, 75*mib, nil)
		q.ask(a, "waits", 60*mib)
		time.Sleep(2 * inTurn) // virtual time
		began := time.Now()
		for range 16 { // its share
			take(t, a, Small, nil)
		}
		take(t, b.Account("b"), Small, nil)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("small messages have waited %s", waited)
		}
		b.Close()
		q.asking.Wait()

		b = New(100*mib, "")
		for name := range "abcdefgh" {
			for range 25 {
				q.ask(b.Account(string(rune(name))), "small", Small) // some wait
			}
		}
		began = time.Now()
		take(t, b.Account("a"), 75*mib, nil)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a large message has waited %s", waited)
		}
		b.Close()
		q.asking.Wait()
	})
}

func TestWhatNeverFitsIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(400*mib, "")
		a, began := b.Account("a"), time.Now()
		take(t, a, 301*mib, ErrTooLarge)
		all := take(t, a, 300*mib, nil)
		if largest := a.Largest(); largest != 300*mib {
			t.Errorf("%d bytes are the largest message", largest)
		}
		b.Resize(200 * mib)
		take(t, a, 200*mib, ErrTooLarge)
		q := queue{t: t, leases: map[string]*Lease{}}
		q.ask(a, "waits", 100*mib)
		q.ask(b.Account("b"), "waits, too", 10*mib)
		b.check(t, 300*mib, 2)
		b.Resize(900 * mib)
		q.expect("waits", "waits, too")
		all.Free()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("refused after %s", waited)
		}
		b.check(t, 0, 0)
		take(t, a, 600*mib, nil)
		q.ask(a, "closed", 500*mib)
		b.Close()
		q.asking.Wait()
		take(t, a, 1, ErrBusy)

		b = New(0, "") // the largest message may be larger than what several share: then it is alone
		if largest := Largest(); largest > b.large.total {
			l := take(t, b.Account("a"), largest, nil)
			q.ask(b.Account("b"), "next", 2*mib)
			q.expect()
			l.Free()
			q.expect("next")
		}
		b.check(t, 0, 0)
	})
}

// TestAWaitEndsWhenNothingIsFreed: as long as others come to their end, a message waits on.
func TestAWaitEndsWhenNothingIsFreed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(100*mib, "")
		q := queue{t: t, leases: map[string]*Lease{}}
		first, second := take(t, b.Account("a"), 10*mib, nil), take(t, b.Account("b"), 10*mib, nil)
		q.ask(b.Account("c"), "waits", 60*mib)
		time.Sleep(Patience - time.Second) // virtual time
		first.Free()
		first.Free()
		time.Sleep(Patience - time.Second)
		synctest.Wait()
		b.check(t, 10*mib, 1)
		q.ask(b.Account("d"), "behind", 10*mib) // it would have room, and has not waited as long
		time.Sleep(2 * time.Second)
		q.expect("behind")
		q.asking.Wait()
		if len(q.refused) != 1 || q.refused[0] != "waits" {
			t.Errorf("%q were refused", q.refused)
		}
		second.Free()
		b.check(t, 0, 0)
	})
}

// TestTheBudgetHoldsUnderLoad takes and frees at random, and holds that the budget is never exceeded and nobody refused.
func TestTheBudgetHoldsUnderLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := New(100*mib, "")
		var messages sync.WaitGroup
		for i := range 20 {
			messages.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				a := b.Account(string(rune('a' + i%4)))
				for range 15 {
					l := take(t, a, 1+r.Int64N(2*mib<<r.IntN(6)), nil)
					b.mu.Lock()
					for _, p := range []*part{&b.small, &b.large} {
						if p.used > p.total || p.used < 0 {
							t.Errorf("%d of %d bytes are held", p.used, p.total)
						}
					}
					b.mu.Unlock()
					time.Sleep(time.Duration(r.IntN(1000)) * time.Millisecond) // virtual time
					l.Free()
				}
			})
		}
		messages.Wait()
		b.check(t, 0, 0)
	})
}

func TestTheDefaultIsWithinItsBounds(t *testing.T) {
	t.Parallel()
	if got := Largest(); got < least || got > most {
		t.Errorf("the largest message has %d bytes", got)
	}
	b := New(0, "")
	if total := b.small.total + b.large.total; total < least || total > usual {
		t.Errorf("the default is %d bytes", total)
	}
}
