// Package budget bounds the memory that large messages take in all.
//
// A message of at most Small bytes takes no room here: Go's memory limit bounds those. A larger one
// takes room before its memory is allocated, and gives it back once it is written out. One message
// may have three quarters of the budget. Where its size is not known, it takes that while it comes,
// and keeps what it needs.
//
// Of each server one such message at a time comes. If another message waits, one that has brought
// nothing for Stall, or is not whole after Late, is given up: its source is closed. So a server
// that stops within large messages holds up others for Stall.
package budget

import (
	"context"
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"golang.org/x/sync/semaphore"
)

// Small is the size in bytes up to which a message takes no room.
const Small = 1 << 20

const (
	Patience = 40 * time.Second // a message that waits for room gives up after as long without any that came free
	Stall    = 3 * time.Second
	Late     = 30 * time.Second
)

// Why there is no room.
var (
	// ErrTooLarge: the message would be too large even if there were no other one.
	ErrTooLarge = errors.New("the message is larger than the memory for messages allows")
	// ErrBusy: other messages held the memory, and none of it came free for Patience.
	ErrBusy = errors.New("other messages take up the memory for messages")
	// ErrLate: the message was given up while it came.
	ErrLate = errors.New("the message came too slowly, and other messages waited for its memory")
)

// Budget is the memory for messages. It is safe for concurrent use.
type Budget struct {
	closed chan struct{}
	close  sync.Once

	mu      sync.Mutex
	size    int64
	room    *semaphore.Weighted // of size
	coming  map[*Room]time.Time // rooms of messages that are not whole, and since when
	freed   time.Time           // when a message came whole, or room was given back
	garbage int64               // about how many bytes messages have left since the last collection
}

// Share is what one server has of a budget. A nil *Share is without bounds.
type Share struct {
	budget *Budget
	coming chan struct{} // has one element while a message comes
}

// Room is what one message takes of the memory. Its methods may be called concurrently. A nil *Room takes nothing.
type Room struct {
	share  *Share
	source io.Closer    // of the message; nil where it cannot be closed
	late   atomic.Bool  // its source was closed
	last   atomic.Int64 // when a part of it came, as of time.Time.UnixNano

	// Guarded by Budget.mu:
	held  *semaphore.Weighted // what has size; nil where nothing was taken
	size  int64
	comes bool // it has share.coming
}

// Default is the size in bytes of a budget where nothing is configured: 96 MiB, or a quarter of the
// memory of the machine or of the cgroup where that is less.
func Default() int64 {
	size := uint64(96 << 20)
	for _, limit := range []memlimit.Provider{memlimit.FromSystem, memlimit.FromCgroup} {
		if n, err := limit(); err == nil && n > 0 {
			size = min(size, n/4)
		}
	}
	return max(int64(size), 16<<20)
}

// New returns a budget of the given size in bytes; 0 is Default.
func New(size int64) *Budget {
	b := &Budget{closed: make(chan struct{}), coming: make(map[*Room]time.Time)}
	b.Resize(size)
	return b
}

// Resize makes the budget one of size bytes; 0 is Default. What is held does not count in the new one.
func (b *Budget) Resize(size int64) {
	if size == 0 {
		size = Default()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.size, b.room = size, semaphore.NewWeighted(size)
}

// Close refuses what waits for room and what is asked for later.
func (b *Budget) Close() { b.close.Do(func() { close(b.closed) }) }

// Size returns the bytes that all messages may take.
func (b *Budget) Size() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.size
}

// Share returns a share for one more server.
func (b *Budget) Share() *Share { return &Share{budget: b, coming: make(chan struct{}, 1)} }

// Largest returns the size in bytes of the largest message.
func (s *Share) Largest() int64 { return s.budget.Size() / 4 * 3 }

// Room returns the room of a message from source, which takes nothing yet.
func (s *Share) Room(source io.Reader) *Room {
	if s == nil {
		return nil
	}
	r := &Room{share: s}
	r.source, _ = source.(io.Closer)
	runtime.SetFinalizer(r, (*Room).Free) // for a message that nobody has written out
	return r
}

// Take makes room for a message of size bytes, once, and waits where it must. The error is ErrTooLarge or ErrBusy.
func (r *Room) Take(size int64) error {
	if r == nil || size <= Small {
		return nil
	}
	b := r.share.budget
	if size > r.share.Largest() {
		return ErrTooLarge
	}
	select {
	case <-b.closed:
		return ErrBusy
	default:
	}
	b.mu.Lock()
	room := b.room
	b.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go b.giveUp(ctx, cancel)
	select {
	case r.share.coming <- struct{}{}:
	case <-ctx.Done():
		return ErrBusy
	}
	if room.Acquire(ctx, size) != nil {
		<-r.share.coming
		return ErrBusy
	}
	r.Came()
	b.mu.Lock()
	r.held, r.size, r.comes, b.coming[r] = room, size, true, time.Now()
	collect := b.garbage > b.size/2
	if collect {
		b.garbage = 0
	}
	b.mu.Unlock()
	if collect {
		debug.FreeOSMemory()
	}
	return nil
}

// Grow makes room for a message that has size bytes so far and goes on.
func (r *Room) Grow(size int64) error {
	if r == nil {
		return nil
	}
	r.share.budget.mu.Lock()
	has := r.size
	r.share.budget.mu.Unlock()
	switch {
	case size <= has:
		return nil
	case has > 0:
		return ErrTooLarge
	}
	return r.Take(max(size, r.share.Largest()))
}

// Came says that a part of the message has come.
func (r *Room) Came() {
	if r != nil {
		r.last.Store(time.Now().UnixNano())
	}
}

// Err returns ErrLate where the source of the message was closed, else err, with which reading it has ended.
func (r *Room) Err(err error) error {
	if r != nil && r.late.Load() {
		return ErrLate
	}
	return err
}

// Whole says that all of the message has come, and takes size bytes.
func (r *Room) Whole(size int64) {
	if r == nil {
		return
	}
	r.share.budget.mu.Lock()
	defer r.share.budget.mu.Unlock()
	r.keep(size)
}

// Free gives the room back. Twice is harmless.
func (r *Room) Free() { r.Whole(0) }

// keep ends the coming of the message, and gives back what it holds beyond size bytes. Budget.mu is held.
func (r *Room) keep(size int64) {
	delete(r.share.budget.coming, r)
	if r.comes {
		<-r.share.coming
		r.comes = false
		r.share.budget.freed = time.Now()
	}
	if r.held != nil && size < r.size {
		r.share.budget.freed = time.Now()
		left := r.size - size
		if size > 0 { // what the message came in was not much larger than it is
			left = min(left, 2*size)
		}
		r.share.budget.garbage += left
		r.held.Release(r.size - size)
		r.size = size
	}
}

// giveUp, until ctx is done, closes the sources of messages that stop or are late, and frees the
// room of what nobody reads any more. It cancels ctx after Patience.
func (b *Budget) giveUp(ctx context.Context, cancel context.CancelFunc) {
	began := time.Now()
	tick := time.NewTicker(Stall)
	defer tick.Stop()
	for {
		select {
		case <-b.closed:
			cancel()
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		runtime.GC()
		b.mu.Lock()
		if time.Since(began) >= Patience && time.Since(b.freed) >= Patience {
			cancel()
		}
		for r, since := range b.coming {
			stopped := time.Since(time.Unix(0, r.last.Load())) >= Stall
			if r.source != nil && !r.late.Load() && (stopped || time.Since(since) >= Late) {
				r.late.Store(true)
				_ = r.source.Close() // its reader frees the room
			}
		}
		b.mu.Unlock()
	}
}
