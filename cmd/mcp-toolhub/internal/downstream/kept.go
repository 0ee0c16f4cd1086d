package downstream

import (
	"bytes"

	"github.com/mcp-toolhub/mcp-toolhub/internal/queue"
)

// kept holds what a server has said of a suspended call, the oldest first. It is bounded.
type kept struct {
	waiting queue.Queue[note]
	lost    int64 // those that made room for others, or found none
}

// maxKept and maxKeptBytes bound what is kept: each waiting call may keep as much. That is half of what may wait for a
// client, so that what the server says next does not push it out.
const (
	maxKept      = maxQueuedProgress / 2
	maxKeptBytes = 256 << 10
)

// add keeps one. Where there is no room, the oldest progress goes first, because a later report
// makes up for it, and then the oldest of all.
func (k *kept) add(n note) {
	if len(n.params) > maxKeptBytes {
		k.lost++
		return
	}
	n.params = bytes.Clone(n.params) // rather than the whole message that it came in
	k.waiting.DropFirst = func(n note) bool { return n.method == noteProgress }
	k.lost += int64(k.waiting.Put(n, queue.Bounds{Items: maxKept, Bytes: maxKeptBytes}))
}
