package approval

import (
	"context"
	"crypto/rand"
	"strings"
)

// newID returns an id that nobody guesses. People type it in another terminal, and URLs hold it.
func newID() ID { return ID("apr_" + strings.ToLower(rand.Text())) }

// Kind says what an Event is about.
type Kind string

const (
	Asked   Kind = "asked"
	Changed Kind = "changed" // more or fewer calls wait for the answer
	Settled Kind = "settled"

	// Lost means that the watcher was too slow and that events are missing before this one: List says how things stand.
	Lost Kind = "lost"
)

// Event is a change of the queue.
type Event struct {
	Kind     Kind `json:"kind"`
	Question View `json:"question"` // zero for Lost
}

// watchBuffer is the number of events that a watcher may be behind.
const watchBuffer = 64

// watcher is one stream. Its fields are guarded by Approvals.mu.
type watcher struct {
	events chan Event
	lost   bool
	ended  bool
}

func (w *watcher) end() {
	if !w.ended {
		w.ended = true
		close(w.events)
	}
}

// Watch returns the changes of the queue from now on, beginning with an Asked for every question
// that is open. The channel is closed when ctx ends or the queue closes. A watcher that does not
// keep up misses events and is told so: it never holds up a call.
func (a *Approvals) Watch(ctx context.Context) <-chan Event {
	a.mu.Lock()
	defer a.mu.Unlock()
	open := a.list()
	w := &watcher{events: make(chan Event, watchBuffer+len(open))}
	for _, v := range open {
		w.events <- Event{Asked, v}
	}
	if a.closed {
		w.end()
		return w.events
	}
	a.watchers[w] = true
	context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.watchers, w)
		w.end()
	})
	return w.events
}

// notify sends an event to all watchers. a.mu is held, so nobody else sends meanwhile.
func (a *Approvals) notify(kind Kind, q *question) {
	for w := range a.watchers {
		if w.lost && len(w.events) > 0 {
			continue // Lost is still to be read: its reader lists the questions
		}
		w.lost = len(w.events) == cap(w.events)-1 // the last place is for the notice
		if w.lost {
			w.events <- Event{Kind: Lost}
			continue
		}
		w.events <- Event{kind, q.copy()}
	}
}
