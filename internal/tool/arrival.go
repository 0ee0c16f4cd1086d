package tool

import (
	"context"
	"sync"
	"time"
)

// Line keeps the calls that a client writes behind each other on one stream in that order, until
// they have reached the queues of their servers. For example, a client writes "append a" and
// "append b" at once. Each call gets a goroutine, and the second one may be faster: it waits here
// until the first one is in the queue, whose order counts from then on.
//
// The zero value is an empty line. It is safe for concurrent use.
type Line struct {
	mu          sync.Mutex
	first, last *Arrival
	aside       *Line // of the calls that stand aside; nil where none has
}

// Arrival is a call's place in a Line. A nil Arrival and the zero value have none: they wait for
// nobody, and nobody waits for them.
type Arrival struct {
	line *Line // set before others know of the call, and changed by StandAside alone

	// The line's mutex guards the rest.
	in         bool
	prev, next *Arrival
	// when the call became the first one; when it came, where those before it have lost their
	// places
	since time.Time
	turn  chan struct{} // closed when the call is the first one; nil where it does not wait
}

// patienceInLine bounds how long calls wait for one before them. It is long for what that one does
// before it reaches the queue, which takes microseconds, and short enough that one that hangs, on a
// file system say, does not hold up its client for good.
const patienceInLine = 5 * time.Second

// Join puts a at the end of the line. Its caller sees to it that a leaves in the end.
func (l *Line) Join(a *Arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.enter(l, l.last)
}

// Follow puts a right behind other. If other has no place, a gets none either, and Follow returns
// false. Like Join, it is called before others know of a.
func (a *Arrival) Follow(other *Arrival) bool {
	if other == nil || other.line == nil {
		return false
	}
	l := other.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if other.in {
		a.enter(l, other)
	}
	return other.in
}

// enter puts a behind prev, or at the front where that is nil. The line's mutex is held.
func (a *Arrival) enter(l *Line, prev *Arrival) {
	a.line, a.in, a.since = l, true, time.Now()
	a.prev, a.next = prev, l.first
	if prev != nil {
		a.next, prev.next = prev.next, a
	} else {
		l.first = a
	}
	if a.next != nil {
		a.next.prev = a
	} else {
		l.last = a
	}
}

// Leave takes a out of the line. Calls that may take long before they reach the queue leave before
// that: those that run hooks or ask a person. Nothing happens where a is in no line.
func (a *Arrival) Leave() {
	if a == nil || a.line == nil {
		return
	}
	a.line.mu.Lock()
	defer a.line.mu.Unlock()
	a.leave(false)
}

// StandAside takes a out of the line, for a call that may have to wait long, and keeps its order
// among the others that stand aside. For example, three calls wait for a server that starts, and
// calls of other servers pass them. When it has started, they go on in the order in which they were
// written.
func (a *Arrival) StandAside(ctx context.Context) {
	a.Wait(ctx)
	if a == nil || a.line == nil {
		return
	}
	l := a.line
	l.mu.Lock()
	defer l.mu.Unlock()
	if !a.in {
		return
	}
	a.leave(false)
	if l.aside == nil {
		l.aside = new(Line)
	}
	l.aside.Join(a)
}

// leave is Leave; the line's mutex is held. The call is late if it has held up others for too long.
func (a *Arrival) leave(late bool) {
	if !a.in {
		return
	}
	l := a.line
	a.in = false
	wasFirst := a.prev == nil
	if wasFirst {
		l.first = a.next
	} else {
		a.prev.next = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	} else {
		l.last = a.prev
	}
	next := l.first
	if !wasFirst || next == nil {
		return
	}
	waited := next.turn != nil
	if waited {
		close(next.turn)
		next.turn = nil
	}
	if waited || !late {
		next.since = time.Now()
	}
}

// Wait waits until a is the first in its line, or ctx is done. Calls that hold up others for
// patienceInLine lose their places. That counts from when a begins to wait: until then it may be
// that the ones before it were not served either, because too many were.
func (a *Arrival) Wait(ctx context.Context) {
	if a == nil || a.line == nil {
		return
	}
	l, began := a.line, time.Now()
	l.mu.Lock()
	left := l.passLate(began)
	if !a.in || l.first == a {
		l.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	a.turn = turn
	l.mu.Unlock()
	limit := time.NewTimer(left)
	defer limit.Stop()
	for {
		select {
		case <-turn:
			return
		case <-ctx.Done():
			l.mu.Lock()
			a.turn = nil
			l.mu.Unlock()
			return
		case <-limit.C:
			l.mu.Lock()
			limit.Reset(l.passLate(began))
			l.mu.Unlock()
		}
	}
}

// passLate takes the first calls out that have held up a call, which has waited since began, for
// too long. It returns for how long the first one of the rest may. l.mu is held.
func (l *Line) passLate(began time.Time) (left time.Duration) {
	for l.first != nil {
		since := l.first.since
		if since.Before(began) {
			since = began
		}
		if left = patienceInLine - time.Since(since); left > 0 {
			return left
		}
		l.first.leave(true)
	}
	return patienceInLine
}
