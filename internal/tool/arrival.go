package tool

import (
	"context"
	"slices"
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
	mu    sync.Mutex
	calls []*Arrival
	since time.Time // when the first one became the first
	aside *Line     // of the calls that stand aside; nil where none has
}

// Arrival is a call's place in a Line. A nil Arrival and the zero value have none: they wait for
// nobody, and nobody waits for them.
type Arrival struct {
	line *Line         // set before others know of the call, and changed by StandAside alone
	turn chan struct{} // closed when the call is the first one; nil while it does not wait
}

// patienceInLine bounds how long calls wait for those before them. It is long for what these do
// before they reach the queue, which takes microseconds, and short enough that one that hangs, on a
// file system say, does not hold up its client for good.
const patienceInLine = 10 * time.Second

// Join puts a at the end of the line. Its caller sees to it that a leaves in the end.
func (l *Line) Join(a *Arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enter(a, len(l.calls))
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
	at := slices.Index(l.calls, other)
	if at >= 0 {
		l.enter(a, at+1)
	}
	return at >= 0
}

// enter puts a at a place of the line. The mutex is held.
func (l *Line) enter(a *Arrival, at int) {
	a.line, l.calls = l, slices.Insert(l.calls, at, a)
	if len(l.calls) == 1 {
		l.since = time.Now()
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
	a.line.leave(a)
}

// leave is Leave, and reports whether a was in the line. The mutex is held.
func (l *Line) leave(a *Arrival) bool {
	at := slices.Index(l.calls, a)
	if at < 0 {
		return false
	}
	if l.calls = slices.Delete(l.calls, at, at+1); at == 0 && len(l.calls) > 0 {
		l.admit()
	}
	return true
}

// admit lets the first call, which has become that, go on if it waits. The mutex is held.
func (l *Line) admit() {
	l.since = time.Now()
	if first := l.calls[0]; first.turn != nil {
		close(first.turn)
		first.turn = nil
	}
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
	if !l.leave(a) {
		return
	}
	if l.aside == nil {
		l.aside = new(Line)
	}
	l.aside.Join(a)
}

// Wait waits until a is the first in its line, or ctx is done. Calls that hold up others for
// patienceInLine lose their places.
func (a *Arrival) Wait(ctx context.Context) {
	if a == nil || a.line == nil {
		return
	}
	l, turn := a.line, make(chan struct{})
	l.mu.Lock()
	waits := slices.Index(l.calls, a) > 0
	if waits {
		a.turn = turn
	}
	l.mu.Unlock()
	for waits {
		select {
		case <-turn:
			waits = false
		case <-ctx.Done():
			l.mu.Lock()
			a.turn, waits = nil, false
			l.mu.Unlock()
		case <-time.After(patienceInLine):
			l.passLate()
		}
	}
}

// passLate takes the first calls out that do not wait themselves, if they have been the first for
// too long.
func (l *Line) passLate() {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := slices.IndexFunc(l.calls, func(a *Arrival) bool { return a.turn != nil })
	if next > 0 && time.Since(l.since) >= patienceInLine {
		l.calls = slices.Delete(l.calls, 0, next)
		l.admit()
	}
}
