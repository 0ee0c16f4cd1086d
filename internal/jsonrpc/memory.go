package jsonrpc

import (
	"bytes"
	"cmp"
	"io"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Received is one message.
type Received struct {
	Text []byte
	Room *budget.Room // that Text takes; nil for a text that is not large
}

// gathering puts a message together whose size is not known beforehand.
type gathering struct {
	memory *budget.Share // nil: without bounds
	source io.Reader     // of the message
	most   int           // bytes that are gathered before it is too large
	room   *budget.Room
	bytes  []byte
	err    error // there was no room for more; nothing is gathered from then on
}

// append adds part, unless there is no room for all of it.
func (g *gathering) append(part []byte) {
	if g.reserve(len(part)) {
		g.bytes = append(g.bytes, part...)
		g.room.Came()
	}
}

// reserve makes space for so many more bytes, and reports whether the memory has room for them. What
// is gathered doubles until it is large: then there is room for all of it, and nothing is copied
// while the rest comes.
func (g *gathering) reserve(more int) bool {
	size := len(g.bytes) + more
	if g.err == nil && size > budget.Small {
		if g.room == nil {
			g.room = g.memory.Room(g.source)
		}
		g.err = g.room.Grow(int64(size))
	}
	if g.err == nil && size > cap(g.bytes) {
		next := 2 * len(g.bytes)
		if g.room != nil && next > large {
			next = int(g.memory.Largest())
		}
		g.bytes = append(make([]byte, 0, max(size, min(next, g.most))), g.bytes...)
	}
	return g.err == nil
}

// large is the size in bytes of a message that is not to be copied.
const large = 8 << 20

// drop gives up what was gathered.
func (g *gathering) drop() {
	g.bytes = nil // first: who takes the room next may collect the garbage
	g.room.Free()
}

// received returns the message that was gathered.
func (g *gathering) received() Received {
	if g.room != nil && len(g.bytes) < cap(g.bytes)/2 {
		g.bytes = bytes.Clone(g.bytes)
	}
	g.room.Whole(int64(cap(g.bytes)))
	return Received{Text: g.bytes, Room: g.room}
}

// bodyEnd bounds the wait for the end of a body that already holds a whole JSON text. Some servers
// announce more bytes than they send, or never end the body.
const bodyEnd = 50 * time.Millisecond

// ReadBody reads a body of at most limit bytes, and may close it. size is what it is said to have,
// or negative. The error of a body that is too large, or has no room, is a *TooLarge.
func ReadBody(body io.Reader, size, limit int64, memory *budget.Share) (Received, error) {
	over := &TooLarge{Limit: int(limit), About: &rawjson.Skim{}}
	if size > limit {
		return Received{}, over
	}
	g := gathering{memory: memory, source: body, most: int(limit) + 2} // and one for its end
	if size > budget.Small {
		g.room = memory.Room(body)
		g.err = g.room.Take(size + 1)
	}
	if g.err == nil { // one byte more than the body has, so that its end is found without more room
		g.bytes = make([]byte, 0, max(size, bytes.MinRead-1)+1)
	}
	err, whole, seen := g.err, false, looks(0)
	late := time.AfterFunc(time.Hour, func() {
		if c, ok := body.(io.Closer); ok {
			_ = c.Close()
		}
	})
	defer late.Stop()
	for rest := io.LimitReader(body, limit+1); err == nil; {
		if !g.reserve(1) {
			err = g.err
			break
		}
		var n int
		n, err = rest.Read(g.bytes[len(g.bytes):cap(g.bytes)])
		g.bytes = g.bytes[:len(g.bytes)+n]
		g.room.Came()
		if whole = int64(len(g.bytes)) != size && (whole && n == 0 || seen.isObject(g.bytes)); whole && err == nil {
			late.Reset(bodyEnd)
		}
	}
	switch {
	case err != io.EOF && !whole:
	case int64(len(g.bytes)) > limit:
		err = over
	default:
		return g.received(), nil
	}
	g.drop()
	if over.NoRoom = cmp.Or(g.room.Err(nil), g.err); over.NoRoom != nil {
		err = over
	}
	return Received{}, err
}
