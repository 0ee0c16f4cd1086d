package downstream

import (
	"bytes"
	"encoding/json"
	"slices"
)

// kept holds what a server has said of a suspended call, the oldest first. It is bounded.
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
