package downstream

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/queue"
)

// kept holds what a server has said of a suspended call, the oldest first. It is bounded.
type kept struct {
	waiting queue.Queue[saying]
	lost    int64 // those that made room for others, or found none
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

// Size implements queue.Item.
func (n saying) Size() int { return len(n.params) }

// Key implements queue.Item: each counts.
func (n saying) Key() string { return "" }

// add keeps one. Where there is no room, the oldest progress goes first, because a later report makes up for it, and then
// the oldest of all.
func (k *kept) add(n saying) {
	if len(n.params) > maxKeptBytes {
		k.lost++
		return
	}
	n.params = bytes.Clone(n.params) // rather than the whole message that it came in
	k.waiting.DropFirst = func(n saying) bool { return n.method == noteProgress }
	k.lost += int64(k.waiting.Put(n, queue.Bounds{Items: maxKept, Bytes: maxKeptBytes}))
}
