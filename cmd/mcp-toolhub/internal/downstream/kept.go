package downstream

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// kept is what a server has said of work that waits for its client's next request, the oldest first. It is bounded.
type kept struct {
	all  []saying
	size int   // of their params, in bytes
	lost int64 // those that made room for others, or found none
}

// saying is a notification of a server that belongs to a call.
type saying struct {
	method string
	level  int // of a log message
	params json.RawMessage
}

// maxKept and maxKeptBytes bound what is kept: each waiting call may keep as much. That is half of what may wait for a
// client, so that what the server says next does not push it out.
const (
	maxKept      = maxQueuedProgress / 2
	maxKeptBytes = 256 << 10
)

// add keeps one. Where there is no room, the oldest progress goes first, because a later report makes up for it, and then
// the oldest of all.
func (k *kept) add(n saying) {
	if len(n.params) > maxKeptBytes {
		k.lost++
		return
	}
	n.params = bytes.Clone(n.params) // rather than the whole message that it came in
	k.all = append(k.all, n)
	k.size += len(n.params)
	for len(k.all) > maxKept || k.size > maxKeptBytes {
		i := max(0, slices.IndexFunc(k.all, func(n saying) bool { return n.method == noteProgress }))
		k.size -= len(k.all[i].params)
		k.all = slices.Delete(k.all, i, i+1)
		k.lost++
	}
}

// tell passes one on to the request that attends the work. k.mu is held.
func (k *parkable) tell(n saying) {
	switch {
	case n.method == noteMessage && n.level < k.least:
	case k.turn == nil:
		k.kept.add(n)
	case n.method == noteProgress:
		k.turn.progress.take(tool.Progress{Params: n.params})
	default:
		k.turn.progress.add(n.method, n.params)
	}
}

// report passes progress to the request that attends the work, or keeps it for the next one.
func (k *parkable) report(u tool.Progress) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tell(saying{method: noteProgress, params: u.Params})
}

// hears reports whether no request waits in vain: the one that attends the work takes progress, or there is none.
func (k *parkable) hears() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.turn == nil || k.turn.progress.token != nil
}

// say passes anything else on, likewise.
func (k *parkable) say(n saying) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tell(n)
}

// attach makes t the request that attends the work. It gets what was kept first; lost is how much could not be kept.
func (k *parkable) attach(t *turn) (lost int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.kept
	k.turn, k.least, k.kept = t, t.peer.leastLevel(), kept{}
	for _, n := range was.all {
		k.tell(n)
	}
	return was.lost
}

// detach leaves the work without one. Nothing more goes to the request before.
func (k *parkable) detach() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turn = nil
}
