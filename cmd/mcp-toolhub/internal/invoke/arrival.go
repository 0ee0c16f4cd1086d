package invoke

import (
	"context"
	"sync"
	"time"
)

// Line keeps the calls that a client writes behind each other on one stream in that order, until they have reached the queues of
// their servers. For example, a client writes "append a" and "append b" at once. Each call gets a goroutine, and the second one
// may be faster: it waits here until the first one is in the queue, whose order counts from then on.
//
// The zero value is an empty line. It is safe for concurrent use.
type Line struct {
	mu          sync.Mutex
	first, last *Arrival
}

// Arrival is a call's place in a Line. A nil Arrival and the zero value have none: they wait for nobody, and nobody waits for them.
type Arrival struct {
	line      *Line
	prev, nxt *Arrival
	turn      chan struct{} // closed when the call is the first one; nil where it does not wait
}

// patienceInLine bounds how long a call waits for those before it. It is long for what they do before they reach the queue, which
// takes microseconds, and short enough that one that hangs, on a file system say, does not hold up the rest of its client's calls.
const patienceInLine = time.Second

// Join puts a at the end of the line. Its caller sees to it that a leaves in the end.
func (l *Line) Join(a *Arrival) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a.line, a.prev = l, l.last
	if l.last != nil {
		l.last.nxt = a
	} else {
		l.first = a
	}
	l.last = a
}

// Leave takes a out of the line. Calls that may take long before they reach the queue leave before that: those that run hooks or
// ask a person. Nothing happens where a is in no line.
func (a *Arrival) Leave() {
	if a == nil || a.line == nil {
		return
	}
	l := a.line
	l.mu.Lock()
	defer l.mu.Unlock()
	a.line = nil
	if a.prev != nil {
		a.prev.nxt = a.nxt
	} else {
		l.first = a.nxt
	}
	if a.nxt != nil {
		a.nxt.prev = a.prev
	} else {
		l.last = a.prev
	}
	if next := l.first; next != nil && next.turn != nil {
		close(next.turn)
		next.turn = nil
	}
}

// wait waits until a is the first in its line, at most for patienceInLine or until ctx is done.
func (a *Arrival) wait(ctx context.Context) {
	if a == nil || a.line == nil {
		return
	}
	l := a.line
	l.mu.Lock()
	if l.first == a {
		l.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	a.turn = turn
	l.mu.Unlock()
	limit := time.NewTimer(patienceInLine)
	defer limit.Stop()
	select {
	case <-turn:
	case <-limit.C:
	case <-ctx.Done():
	}
}
