package downstream

import (
	"context"
	"sync"
)

// backlog is what a client on a pipe has not taken in yet. While that is too much, no more of the client's messages are
// read: whoever does not read holds up its own calls, and fills no memory. Make one with newBacklog.
type backlog struct {
	turns chan struct{} // holds a token for each call that is being served

	mu    sync.Mutex
	bytes int           // of messages that wait to be written, or are being written
	room  chan struct{} // closed when there is room again; nil while nobody waits for that
}

const (
	// maxBacklog is how many bytes may wait. Each message counts as at least minBacklog.
	maxBacklog = 16 << 20
	minBacklog = 4 << 10
	// maxServed is how many calls of a client on a pipe are served at the same time, up to when the client has the answer.
	// Others wait; what the client says besides (answers, cancellations) does not.
	maxServed = 128
)

func newBacklog() *backlog { return &backlog{turns: make(chan struct{}, maxServed)} }

// turn waits until a call may be served, or ctx is done, and returns what ends it.
func (b *backlog) turn(ctx context.Context) (end func()) {
	select {
	case b.turns <- struct{}{}:
		return func() { <-b.turns }
	case <-ctx.Done():
		return func() {}
	}
}

// begin counts a message of so many bytes, until done is called.
func (b *backlog) begin(bytes int) (done func()) {
	bytes = max(bytes, minBacklog)
	b.add(bytes)
	return func() { b.add(-bytes) }
}

func (b *backlog) add(bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.bytes += bytes
	if b.room != nil && b.bytes <= maxBacklog {
		close(b.room)
		b.room = nil
	}
}

// wait returns when there is room, or one of the channels is closed.
func (b *backlog) wait(ended, closed <-chan struct{}) {
	b.mu.Lock()
	if b.bytes <= maxBacklog {
		b.mu.Unlock()
		return
	}
	if b.room == nil {
		b.room = make(chan struct{})
	}
	room := b.room
	b.mu.Unlock()
	select {
	case <-room:
	case <-ended:
	case <-closed:
	}
}
