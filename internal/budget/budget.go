// Package budget bounds the memory that large messages take in all, and shares it fairly among servers.
//
// The receiver of a large message takes a lease before it allocates the memory, and frees the lease when nobody reads the
// message any more. Messages below 128 KiB take none, so they never wait here.
//
// # Two parts
//
// Messages up to Small have a quarter of the budget, larger ones the rest. Neither waits for the other.
//
// # Sharing
//
// An account, one for each server, may hold at most twice of what is left for all others in a part. One busy server therefore
// gets two thirds, two get two fifths each, and three get two sevenths. There is always room left for a server that comes
// later: that it is busy takes from the shares of the others, and no share is set aside for servers that are not. Where
// nothing else is held a lease is had whatever its size, and counts as the whole part at most. Servers take turns.
//
// # Why nothing waits for ever
//
//   - A message that grows holds no memory that others need: beyond Small it grows on the disk, as a Spool, and takes one
//     lease when all of it has come. So a server that sends slowly, or stops, holds up nobody else.
//   - Who holds a lease waits for none. It ends with its call, or with its client, which loses its connection when it does
//     not read. A lease that nobody has freed is freed with its memory by the garbage collector, which runs while a lease is
//     waited for.
//   - Whoever has waited for a second, and not for its own account alone, is overtaken by nobody.
//   - A wait ends when nothing was freed for Patience.
package budget

import (
	"cmp"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Patience is the time after which a message gives up waiting for a lease, if nobody has freed one in that time. A client that does not
// read loses its connection before that.
const Patience = 40 * time.Second

// Small is the size in bytes up to which messages have a part of the budget for themselves, and grow in memory.
const Small = 1 << 20

const (
	collectEvery = time.Second // the time between two runs of the garbage collector while a lease is waited for
	inTurn       = time.Second // who has waited for so long is overtaken by nobody
)

// Why a lease is refused.
var (
	// ErrTooLarge: the message would be too large even if there were no other one.
	ErrTooLarge = errors.New("the message is larger than the memory for messages allows")
	// ErrBusy: other messages held the memory for as long as anybody waits.
	ErrBusy = errors.New("other messages take up the memory for messages")
)

// Budget is the memory for messages. It is safe for concurrent use.
type Budget struct {
	spools spoolDir

	mu           sync.Mutex
	largest      int64 // bytes of one message
	small, large part
	collected    time.Time // when the garbage collector was last called here
	closed       bool
	accounts     map[string]*Account
}

// part is the part of a budget for messages of some sizes. Its fields are guarded by Budget.mu.
type part struct {
	total   int64
	used    int64
	freed   int64     // since the garbage collector was last called: it may still be there
	changed time.Time // when a lease was last freed
	turns   int64     // leases had so far
	waiting []*waiter
}

// Account is the part of a budget that one server uses. A nil *Account is without bounds.
type Account struct {
	budget       *Budget
	small, large share
	spooled      int64 // bytes on the disk; guarded by budget.mu
}

// share is the memory of one part of the budget that one account holds.
type share struct {
	part *part
	used int64
	turn int64 // of its latest lease: the account whose turn is the longest ago comes first
}

// Lease is memory that is held. A nil *Lease holds nothing.
type Lease struct {
	budget *Budget
	share  *share
	size   int64 // 0 once it is freed; guarded by budget.mu
}

// waiter is a lease that is waited for.
type waiter struct {
	lease *Lease
	since time.Time
	ready chan struct{} // closed when the lease is had
}

// New returns a budget of the given size in bytes; 0 is the default. Messages that grow are kept in dir meanwhile, which is
// made when there is one; "" is the system's directory for temporary files.
func New(size int64, dir string) *Budget {
	b := &Budget{accounts: make(map[string]*Account), spools: spoolDir{path: dir}}
	b.resize(size)
	return b
}

// Resize makes the budget one of size bytes; 0 is the default. What is held stays held.
func (b *Budget) Resize(size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.resize(size)
}

func (b *Budget) resize(size int64) {
	b.largest = size - size/4
	if size == 0 {
		b.largest = Largest()
		size = max(min(b.largest, usual), least)
	}
	b.small.total, b.large.total = size/4, size-size/4
	b.grant(&b.small)
	b.grant(&b.large)
}

// Close refuses what waits and what is asked for later.
func (b *Budget) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, p := range []*part{&b.small, &b.large} {
		for _, w := range p.waiting {
			close(w.ready)
		}
		p.waiting = nil
	}
}

// Account returns the account of that name.
func (b *Budget) Account(name string) *Account {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.accounts[name]
	if a == nil {
		a = &Account{budget: b, small: share{part: &b.small}, large: share{part: &b.large}}
		b.accounts[name] = a
	}
	return a
}

// Take returns a lease of size bytes, and waits for it where it must. The error is ErrTooLarge or ErrBusy.
func (a *Account) Take(size int64) (*Lease, error) {
	if a == nil {
		return nil, nil
	}
	b := a.budget
	l := &Lease{budget: b, share: &a.small}
	if size > Small {
		l.share = &a.large
	}
	p := l.share.part
	b.mu.Lock()
	if b.closed || size > b.largest {
		defer b.mu.Unlock()
		if b.closed {
			return nil, ErrBusy
		}
		return nil, ErrTooLarge
	}
	l.size = min(size, p.total)
	w := &waiter{lease: l, since: time.Now(), ready: make(chan struct{})}
	p.waiting = append(p.waiting, w)
	b.grant(p)
	b.mu.Unlock()
	if !w.wait() {
		return nil, ErrBusy
	}
	if p == &b.large {
		b.collect(func() bool { return p.used+p.freed > p.total }, debug.FreeOSMemory)
	}
	return l, nil
}

// Largest is the size in bytes of the largest message that Take would ever give room to.
func (a *Account) Largest() int64 {
	a.budget.mu.Lock()
	defer a.budget.mu.Unlock()
	return a.budget.largest
}

// wait returns when the lease is had, and then true, or when it is refused.
func (w *waiter) wait() bool {
	b, p := w.lease.budget, w.lease.share.part
	if had(w.ready) {
		return true
	}
	again := time.NewTicker(collectEvery)
	defer again.Stop()
	for {
		select {
		case <-w.ready:
			b.mu.Lock()
			defer b.mu.Unlock()
			return !b.closed
		case <-again.C:
		}
		b.collect(func() bool { return time.Since(b.collected) >= collectEvery }, runtime.GC) // frees what nobody else has freed
		b.mu.Lock()
		b.grant(p) // somebody may be in turn by now
		i := slices.Index(p.waiting, w)
		refused := i >= 0 && min(time.Since(w.since), time.Since(p.changed)) >= Patience
		if refused {
			p.waiting = slices.Delete(p.waiting, i, i+1)
			b.grant(p) // it may have held up others
		}
		b.mu.Unlock()
		if refused {
			return false
		}
	}
}

func had(ready <-chan struct{}) bool {
	select {
	case <-ready:
		return true
	default:
		return false
	}
}

// collect runs the garbage collector if that is due, which is asked with b.mu held. Memory that was freed is there until then.
func (b *Budget) collect(due func() bool, run func()) {
	b.mu.Lock()
	is := due()
	if is {
		b.collected, b.small.freed, b.large.freed = time.Now(), 0, 0
	}
	b.mu.Unlock()
	if is {
		run()
	}
}

// Free gives the memory back. Twice is harmless.
func (l *Lease) Free() {
	if l == nil {
		return
	}
	b := l.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if l.size == 0 {
		return
	}
	p := l.share.part
	p.used -= l.size
	p.freed += l.size
	p.changed = time.Now()
	l.share.used -= l.size
	l.size = 0
	b.grant(p)
}

// fits reports whether the lease can be had now. Budget.mu is held.
func (l *Lease) fits() bool {
	p := l.share.part
	left := p.total - p.used - l.size
	return p.used == 0 || left >= 0 && l.share.used+l.size <= 2*left
}

// keepsOut reports whether w, which does not fit, has waited for others for so long that they take no more before it.
func (w *waiter) keepsOut() bool {
	s := w.lease.share
	return time.Since(w.since) >= inTurn && (s.used == 0 || s.used+w.lease.size <= s.part.total*2/3)
}

// grant gives leases to those who wait, in their order: of each account the first ones that fit. b.mu is held.
func (b *Budget) grant(p *part) {
	for w := p.next(); w != nil; w = p.next() {
		s := w.lease.share
		p.used += w.lease.size
		p.turns++
		s.used, s.turn = s.used+w.lease.size, p.turns
		close(w.ready)
		i := slices.Index(p.waiting, w)
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
}

// next returns who has a lease next; nil where nobody can have one now.
func (p *part) next() *waiter {
	slices.SortStableFunc(p.waiting, func(a, b *waiter) int { return cmp.Compare(a.lease.share.turn, b.lease.share.turn) })
	var short *share
	for _, w := range p.waiting { // those of an account stand together
		switch {
		case w.lease.share == short:
		case w.lease.fits():
			return w
		case w.keepsOut():
			return nil
		default:
			short = w.lease.share
		}
	}
	return nil
}

const (
	least = 64 << 20 // of a budget where nothing is configured
	usual = 96 << 20 // with it a hub stays below 300 MB while results of 64 MiB come
	most  = 2 << 30  // of one message
)

// Largest is the size of the largest message where nothing is configured: a quarter of the memory of the machine, or of the
// cgroup where that is less, and at most 2 GiB.
func Largest() int64 {
	size := uint64(4 * most)
	for _, limit := range []memlimit.Provider{memlimit.FromSystem, memlimit.FromCgroup} {
		if n, err := limit(); err == nil && n > 0 {
			size = min(size, n)
		}
	}
	return max(int64(size/4), least)
}
