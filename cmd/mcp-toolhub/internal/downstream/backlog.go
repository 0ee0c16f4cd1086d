package downstream

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// backlog counts what a client on a pipe has not taken in yet. While that is too much, no more of
// the client's messages are read: whoever does not read holds up its own calls, and fills no
// memory. Make one with newBacklog.
type backlog struct {
	mu     sync.Mutex
	bytes  int           // of messages that wait to be written, or are being written
	room   chan struct{} // closed when there is room again; nil while nobody waits for that
	served int           // calls that have a turn
	queued []*turn       // calls that wait for one, in the order in which they were written
}

// turn is a call's permission to be served.
type turn struct {
	taken bool          // backlog.mu guards it
	begun chan struct{} // closed when it is taken; nil where that was at once
}

const (
	// maxBacklog bounds how many bytes may wait. Each message counts as at least minBacklog.
	maxBacklog = 16 << 20
	minBacklog = 4 << 10
	// maxServed bounds how many calls of a client on a pipe are served at the same time, up to when
	// the client has the answer. Others wait; what the client says besides (answers, cancellations)
	// does not.
	maxServed = 128
)

func newBacklog() *backlog { return &backlog{} }

// queue takes a turn, or queues for one. The calls of a client are served in the order in which it
// wrote them: one that waits for those before it, to keep their order, must not have the turn that
// they need. over must follow.
func (b *backlog) queue(t *turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.taken = b.served < maxServed; t.taken {
		b.served++
		return
	}
	t.begun = make(chan struct{})
	b.queued = append(b.queued, t)
}

// wait waits until the call may be served, or ctx is done.
func (t *turn) wait(ctx context.Context) {
	if t.begun == nil {
		return
	}
	select {
	case <-t.begun:
	case <-ctx.Done():
	}
}

// over ends a turn, or the wait for it.
func (b *backlog) over(t *turn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !t.taken:
		b.queued = slices.DeleteFunc(b.queued, func(other *turn) bool { return other == t })
	case len(b.queued) > 0:
		next := b.queued[0]
		b.queued[0], b.queued = nil, b.queued[1:]
		next.taken = true
		close(next.begun)
	default:
		b.served--
	}
}

// add counts bytes that wait to be written, or no longer do.
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

// sequel keeps what one client sends after its notifications behind them, as far as the hub passes these on.
type sequel struct {
	mu      sync.Mutex
	last    chan struct{} // closed when the last notification has been passed on; nil where there was none
	waiting atomic.Int64  // notifications that have not been
}

// passOnWithin bounds how long what follows a notification waits for it.
const passOnWithin = 10 * time.Second

// maxSequel bounds the notifications that have not been passed on.
const maxSequel = 1000

// after runs run behind all that was passed on before, and what comes later behind it. It returns
// at once: false where too much waits already, so that run never runs.
func (q *sequel) after(run func()) (taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting.Load() >= maxSequel {
		return false
	}
	q.waiting.Add(1)
	before, mine := q.last, make(chan struct{})
	q.last = mine
	go func() {
		defer close(mine)
		defer q.waiting.Add(-1)
		wait(before)
		run()
	}()
	return true
}

// before returns a function that waits until all notifications so far have been passed on.
func (q *sequel) before() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.last
	if last == nil {
		return func() {}
	}
	select {
	case <-last:
		q.last = nil
		return func() {}
	default:
		return func() { wait(last) }
	}
}

func wait(c <-chan struct{}) {
	if c == nil {
		return
	}
	timer := time.NewTimer(passOnWithin)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	}
}

// lineWriter writes messages to a client on a pipe, each on a line. Whoever writes goes on with
// what others have put meanwhile, many messages with one system call. The first failure stays: the
// client is gone. Make one with newLineWriter.
type lineWriter struct {
	backlog *backlog
	onBreak func() // is called once, when a write has failed

	mu      sync.Mutex
	ended   sync.Cond // signalled when nobody writes any more
	out     io.Writer
	writing bool   // somebody writes, and mu is free meanwhile
	barred  int    // messages that found no room: until nobody writes, all others wait, too
	next    []byte // lines that are written next
	counted int    // what they count in the backlog
	spare   []byte // the buffer that is not in use
	broken  error  // of a write; nothing is written after it
}

func newLineWriter(out io.Writer, b *backlog, onBreak func()) *lineWriter {
	w := &lineWriter{out: out, backlog: b, onBreak: onBreak}
	w.ended.L = &w.mu
	return w
}

func (w *lineWriter) line(text []byte) error { return w.write(whole(text)) }

// write writes a message, or leaves it to who is writing. It keeps no part of text.
func (w *lineWriter) write(text pieces) error {
	text, err := text.line()
	if err != nil {
		return fmt.Errorf("write to client: %w", err)
	}
	size := text.size() + 1
	if size > maxJoined {
		text = text.framed(nil, "\n").toDisk()
		defer text.close()
	}
	counts := max(size, minBacklog)
	w.backlog.add(counts)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writing && (w.barred > 0 || len(w.next)+size > maxJoined) {
		w.barred++
		for w.writing {
			w.ended.Wait()
		}
		w.barred--
	}
	if w.broken != nil {
		w.backlog.add(-counts)
		return w.broken
	}
	if size <= maxJoined {
		w.next, w.counted = append(text.appendTo(w.next), '\n'), w.counted+counts
		if w.writing {
			return nil
		}
	}
	w.writing = true
	if size > maxJoined {
		w.put(text, counts)
	}
	for len(w.next) > 0 && w.broken == nil {
		lines, counted := w.next, w.counted
		w.next, w.counted, w.spare = w.spare[:0], 0, nil
		w.put(whole(lines), counted)
		w.spare = lines
	}
	if w.broken != nil {
		w.backlog.add(-w.counted)
		w.next, w.counted = nil, 0
	}
	w.writing = false
	w.ended.Broadcast()
	return w.broken
}

// put writes text, which counts so much in the backlog. w.mu is held, and free meanwhile.
func (w *lineWriter) put(text pieces, counts int) {
	w.mu.Unlock()
	err := text.writeTo(w.out)
	w.backlog.add(-counts)
	w.mu.Lock()
	if err != nil {
		w.broken = fmt.Errorf("write to client: %w", err)
		w.onBreak()
	}
}

// flush waits until nobody writes any more.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.writing {
		w.ended.Wait()
	}
}
