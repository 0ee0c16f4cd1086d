package downstream

import (
	"bytes"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/queue"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// callNotes passes on what a server says of a call before its result: progress under the client's
// own token, and log messages. A client that does not read holds up its own answer only: not the
// call, its limits, or its place at the server. While the call is suspended, what its server says
// waits for the next attempt.
type callNotes struct {
	*parts
	session string // key of the client's
	view    bool   // a direct view: messages need not say which server they are of

	mu      sync.Mutex
	to      *attempt // nil while the call is suspended
	peer    *peer    // of the latest attempt
	waiting queue.Queue[note]
	lost    int64 // while suspended: those that made room for others, or found none
	sending bool
	idle    sync.Cond // signalled when sending ends
}

// maxQueued bounds the notifications that wait for a client that does not read. While its call is
// suspended maxKept and maxKeptBytes do. That is half, so that what the server says next does not
// push out what was kept.
const (
	maxQueued    = 256
	maxKept      = maxQueued / 2
	maxKeptBytes = 256 << 10
)

// report takes progress.
func (q *callNotes) report(u tool.Progress) { q.add(note{method: tool.NoteProgress, params: u.Params}) }

// add takes one notification. Where there is no room, the oldest progress goes first, because a
// later report makes up for it, and then the oldest of all.
func (q *callNotes) add(n note) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.wants(n) {
		return
	}
	q.waiting.DropFirst = func(n note) bool { return n.method == tool.NoteProgress }
	if q.to != nil {
		q.waiting.Put(n, queue.Bounds{Items: maxQueued})
		q.begin()
		return
	}
	if len(n.params) > maxKeptBytes {
		q.lost++
		return
	}
	n.params = bytes.Clone(n.params) // rather than the whole message that it came in
	q.lost += int64(q.waiting.Put(n, queue.Bounds{Items: maxKept, Bytes: maxKeptBytes}))
}

// wants reports whether the attempt, or perhaps the next one, takes n. q.mu is held.
func (q *callNotes) wants(n note) bool {
	switch n.method {
	case tool.NoteProgress:
		return q.to == nil || q.to.token != nil
	case tool.NoteMessage:
		return n.level >= q.peer.leastLevel()
	}
	return true
}

// begin begins to send what waits. q.mu is held.
func (q *callNotes) begin() {
	if !q.sending && q.waiting.Len() > 0 {
		q.sending = true
		go q.send()
	}
}

func (q *callNotes) send() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for to := q.to; to != nil; to = q.to {
		n, ok := q.waiting.Next()
		if !ok {
			break
		}
		if q.wants(n) {
			q.mu.Unlock()
			to.notify(n)
			q.mu.Lock()
		}
	}
	q.sending = false
	q.idle.Broadcast()
}

// notify sends a notification to the attempt's client.
func (a *attempt) notify(n note) {
	if n.method == tool.NoteProgress {
		params, err := rawjson.Set(n.params, "progressToken", a.token)
		if a.token == nil || err != nil {
			return
		}
		n.params = params
	}
	a.reply.notify(n.method, n.params)
}

// sent waits until every notification so far has been sent.
func (q *callNotes) sent() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.sending {
		q.idle.Wait()
	}
}

// hears reports whether the attempt takes progress, if there is one.
func (q *callNotes) hears() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.to == nil || q.to.token != nil
}

// attach makes a, a retry, the attempt. It gets what was kept first; lost says how much could not be kept.
func (q *callNotes) attach(a *attempt) (lost int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	lost = q.lost
	q.to, q.peer, q.lost = a, a.peer, 0
	q.begin()
	return lost
}

// detach takes the attempt away, if there is one, when everything has been sent: nothing arrives
// after its answer.
func (q *callNotes) detach() {
	q.mu.Lock()
	to := q.to
	if q.to = nil; to == nil {
		q.mu.Unlock()
		return
	}
	for q.sending {
		q.idle.Wait()
	}
	rest := slices.DeleteFunc(q.waiting.All(), func(n note) bool { return !q.wants(n) })
	q.mu.Unlock()
	for _, n := range rest {
		to.notify(n)
	}
}
