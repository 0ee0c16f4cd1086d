// Package budget bounds the memory that large messages take in all, and shares it fairly among servers.
//
// The receiver of a large message takes a lease before it allocates the memory, and frees the lease when nobody reads the
// message any more. Small messages take none, so they never wait here.
//
// # Sharing
//
// An account, one for each server, may hold at most twice of what is left for all others. One busy server therefore gets
// two thirds of the budget, two get two fifths each, and three get two sevenths. There is always room left for a server
// that comes later: that it is busy takes from the shares of the others, and no share is set aside for servers that are
// not. A lease that does not fit waits for at most Patience, and is then refused.
//
// # Why nothing waits for ever
//
// A message grows while it is received, so it holds one lease while it waits for a larger one. That is how deadlocks come
// about: all hold a part, and nobody gets the rest. Three rules keep it from happening.
//
//   - What could not be had if the account were the only one, with nothing but this message, is refused at once. So each
//     lease that waits can be had once the others are free.
//   - No wait is longer than Patience. A message whose wait is over is given up: what it holds is free in the same moment,
//     before the next wait can end. Of messages that wait for each other some fail, and the others go on.
//   - Messages that hold a part come before those that hold nothing. A message that could begin does not keep one from
//     its end.
//
// A message that does not wait ends by itself: one that is being received ends with its call, and one that is being written
// ends with its client. A lease that nobody has freed is freed with its memory by the garbage collector, which runs while a
// lease is waited for.
package budget

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Patience is the longest wait for a lease.
const Patience = 5 * time.Second

// collectEvery is the time between two runs of the garbage collector while a lease is waited for.
const collectEvery = time.Second

// Why a lease is refused.
var (
	// ErrTooLarge: the message would be too large even if there were no other one.
	ErrTooLarge = errors.New("the message is larger than the memory for messages allows")
	// ErrBusy: other messages held the memory for as long as anybody waits.
	ErrBusy = errors.New("other messages take up the memory for messages")
)

// Budget is the memory for messages. It is safe for concurrent use.
type Budget struct {
	collecting sync.Mutex

	mu       sync.Mutex
	total    int64
	used     int64
	closed   bool
	accounts map[string]*Account
	waiting  []*waiter // those that hold a part first, each kind in the order of their coming
}

// Account is the part of a budget that one server uses. A nil *Account is without bounds.
type Account struct {
	budget *Budget
	used   int64 // guarded by budget.mu
}

// Lease is memory that is held. A nil *Lease holds nothing.
type Lease struct {
	account *Account
	size    int64 // 0 once it is freed; guarded by account.budget.mu
}

// waiter is a lease that is waited for.
type waiter struct {
	lease *Lease
	held  *Lease
	ready chan struct{} // closed when the lease is had
}

// New returns a budget of total bytes.
func New(total int64) *Budget {
	return &Budget{total: total, accounts: make(map[string]*Account)}
}

// Total is the size of the budget in bytes.
func (b *Budget) Total() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total
}

// Resize makes the budget one of total bytes. What is held stays held.
func (b *Budget) Resize(total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total = total
	b.grant()
}

// Close refuses what waits and what is asked for later.
func (b *Budget) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, w := range b.waiting {
		close(w.ready)
	}
	b.waiting = nil
}

// Account returns the account of that name.
func (b *Budget) Account(name string) *Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if a == nil {
		a = &Account{budget: b}
		b.accounts[name] = a
	}
	return a
}

// Take returns a lease of size bytes for a message that holds held already, and waits for it where it must. The caller
// frees held once the message is in the new memory. With an error, ErrTooLarge or ErrBusy, held is freed: the message is
// lost.
func (a *Account) Take(size int64, held *Lease) (*Lease, error) {
	if a == nil {
		return nil, nil
	}
	b := a.budget
	l := &Lease{account: a, size: size}
	b.mu.Lock()
	if most := b.total * 2 / 3; b.closed || size+held.bytes() > most {
		defer b.mu.Unlock()
		b.free(held)
		if b.closed {
			return nil, ErrBusy
		}
		return nil, ErrTooLarge
	}
	first := held != nil || !slices.ContainsFunc(b.waiting, func(w *waiter) bool { return w.lease.account == a })
	if first && b.fits(l) {
		defer b.mu.Unlock()
		b.hold(l)
		return l, nil
	}
	w := &waiter{lease: l, held: held, ready: make(chan struct{})}
	at := len(b.waiting)
	if held != nil {
		if i := slices.IndexFunc(b.waiting, func(w *waiter) bool { return w.held == nil }); i >= 0 {
			at = i
		}
	}
	b.waiting = slices.Insert(b.waiting, at, w)
	b.mu.Unlock()
	w.wait(b)
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(b.waiting, w)
	if i < 0 && !b.closed {
		return l, nil
	}
	if i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	}
	b.free(held)
	return nil, ErrBusy
}

// wait returns when the lease is had, refused, or was waited for long enough.
func (w *waiter) wait(b *Budget) {
	limit := time.NewTimer(Patience)
	defer limit.Stop()
	again := time.NewTicker(collectEvery)
	defer again.Stop()
	for {
		select {
		case <-w.ready:
			return
		case <-limit.C:
			return
		case <-again.C:
			if b.collecting.TryLock() {
				runtime.GC() // frees what nobody else has freed
				b.collecting.Unlock()
			}
		}
	}
}

// Free gives the memory back. Twice is harmless.
func (l *Lease) Free() {
	if l == nil {
		return
	}
	b := l.account.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free(l)
}

// bytes is the size of the lease. b.mu is held.
func (l *Lease) bytes() int64 {
	if l == nil {
		return 0
	}
	return l.size
}

// fits reports whether the lease can be had now. b.mu is held.
func (b *Budget) fits(l *Lease) bool {
	left := b.total - b.used - l.size
	return left >= 0 && l.account.used+l.size <= 2*left
}

// hold counts the lease as held. b.mu is held.
func (b *Budget) hold(l *Lease) {
	b.used += l.size
	l.account.used += l.size
}

// free is Free with b.mu held.
func (b *Budget) free(l *Lease) {
	if l.bytes() == 0 {
		return
	}
	b.used -= l.size
	l.account.used -= l.size
	l.size = 0
	b.grant()
}

// grant gives leases to those who wait, in their order: of each account the first ones that fit. b.mu is held.
func (b *Budget) grant() {
	short := make(map[*Account]bool)
	b.waiting = slices.DeleteFunc(b.waiting, func(w *waiter) bool {
		if short[w.lease.account] || !b.fits(w.lease) {
			short[w.lease.account] = true
			return false
		}
		b.hold(w.lease)
		close(w.ready)
		return true
	})
}

// The default budget is a quarter of the memory that the process may use, between these bounds.
const (
	least = 64 << 20
	most  = 2 << 30
)

// Default is the size of the budget where nothing else is configured: a quarter of the memory of the machine, or of the
// cgroup where that is less, and at most 2 GiB.
func Default() int64 {
	size := uint64(4 * most)
	for _, limit := range []memlimit.Provider{memlimit.FromSystem, memlimit.FromCgroup} {
		if n, err := limit(); err == nil && n > 0 {
			size = min(size, n)
		}
	}
	return max(int64(size/4), least)
}
