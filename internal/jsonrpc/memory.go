package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
)

// Received is one message.
type Received struct {
	Text []byte
	Room *budget.Room // that Text takes; nil for a text that is not large
}

// gathering puts a message together whose size is not known beforehand. It grows by pieces, so that
// no large one is copied before all of it is there.
type gathering struct {
	memory *budget.Share // nil: without bounds
	source io.Reader     // of the message
	room   *budget.Room
	full   [][]byte // the pieces before bytes
	before int      // their size
	bytes  []byte
	err    error // there was no room for more; nothing is gathered from then on
}

// maxPiece is the size in bytes of a piece.
const maxPiece = budget.Small

// size returns the number of bytes of the message so far.
func (g *gathering) size() int { return g.before + len(g.bytes) }

// append adds part, unless there is no room for all of it.
func (g *gathering) append(part []byte) {
	if !g.reserve(len(part)) {
		return
	}
	for len(part) > 0 {
		g.grow(len(part))
		n := copy(g.bytes[len(g.bytes):cap(g.bytes)], part)
		g.bytes, part = g.bytes[:len(g.bytes)+n], part[n:]
	}
	g.room.Came()
}

// reserve reports whether the memory has room for so many more bytes.
func (g *gathering) reserve(more int) bool {
	if g.err == nil && g.size()+more > budget.Small {
		if g.room == nil {
			g.room = g.memory.Room(g.source)
		}
		g.err = g.room.Grow(int64(g.size() + more))
	}
	return g.err == nil
}

// grow makes room behind bytes where there is none. more bytes are known to come.
func (g *gathering) grow(more int) {
	had := cap(g.bytes)
	switch {
	case len(g.bytes) < had:
	case had >= maxPiece:
		g.full, g.before = append(g.full, g.bytes), g.before+had
		g.bytes = make([]byte, 0, maxPiece)
	default: // the first part is often the only one
		g.bytes = append(make([]byte, 0, min(max(had+more, 2*had), maxPiece)), g.bytes...)
	}
}

// see shows what was gathered to add, piece by piece.
func (g *gathering) see(add func(piece []byte)) {
	for _, piece := range g.full {
		add(piece)
	}
	add(g.bytes)
}

// drop gives up what was gathered.
func (g *gathering) drop() {
	g.full, g.before, g.bytes = nil, 0, nil // first: who takes the room next may collect the garbage
	g.room.Free()
}

// join makes one piece of the message.
func (g *gathering) join() {
	if g.full != nil {
		g.bytes = slices.Concat(append(g.full, g.bytes)...)
		g.full, g.before = nil, 0
	}
}

// received returns the message that was gathered.
func (g *gathering) received() Received {
	g.join()
	g.room.Whole(int64(len(g.bytes)))
	return Received{Text: g.bytes, Room: g.room}
}

// ErrBodyTooLarge says that a body is over its limit.
var ErrBodyTooLarge = errors.New("larger than the size limit")

// ReadBody reads a body of at most limit bytes. size is what it is said to have, or negative.
func ReadBody(body io.Reader, size, limit int64, memory *budget.Share) (Received, error) {
	if size > limit {
		return Received{}, ErrBodyTooLarge
	}
	g := gathering{memory: memory, source: body}
	if size > budget.Small {
		g.room = memory.Room(body)
		g.err = g.room.Take(size + 1)
	}
	if g.err == nil { // one byte more than the body has, so that its end is found without more room
		g.bytes = make([]byte, 0, max(size, bytes.MinRead-1)+1)
	}
	err := g.err
	for rest := io.LimitReader(body, limit+1); err == nil; {
		if g.grow(bytes.MinRead); !g.reserve(1) {
			err = g.err
			break
		}
		var n int
		n, err = rest.Read(g.bytes[len(g.bytes):cap(g.bytes)])
		g.bytes = g.bytes[:len(g.bytes)+n]
		g.room.Came()
	}
	switch {
	case err != io.EOF:
	case int64(g.size()) > limit:
		err = ErrBodyTooLarge
	default:
		return g.received(), nil
	}
	g.drop()
	return Received{}, g.room.Err(err)
}
