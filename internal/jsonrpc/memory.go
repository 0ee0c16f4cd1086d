package jsonrpc

import (
	"bytes"
	"errors"
	"io"
	"runtime"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
)

// minMemory is the size from which on a message takes a lease of the memory for messages.
const minMemory = 128 << 10

// Memory is room for one large message, and the lease for it.
type Memory struct {
	bytes   []byte
	lease   *budget.Lease // for all of bytes
	cleanup runtime.Cleanup
}

// newMemory returns memory for size bytes that takes the place of old. old may be nil, and still holds the message. With
// an error the lease of old is free.
func newMemory(account *budget.Account, size int, old *Memory) (*Memory, error) {
	const step = 1 << 20
	size = (size + step - 1) / step * step
	var held *budget.Lease
	if old != nil {
		held = old.lease
	}
	lease, err := account.Take(int64(size), held)
	if err != nil {
		return nil, err
	}
	m := &Memory{bytes: make([]byte, 0, size), lease: lease}
	if lease != nil {
		// Without a call of Free, the lease ends with the last reader of a part.
		m.cleanup = runtime.AddCleanup(&m.bytes[:1][0], (*budget.Lease).Free, lease)
	}
	return m, nil
}

// Free ends the lease. The bytes stay readable.
func (m *Memory) Free() {
	if m == nil || m.lease == nil {
		return
	}
	m.cleanup.Stop()
	m.lease.Free()
	m.lease = nil
}

// Received is one message.
type Received struct {
	Text   []byte
	Memory *Memory // holds Text; nil for a text that is not large
}

// gathering puts a message together whose size is not known beforehand.
type gathering struct {
	account *budget.Account
	bytes   []byte
	memory  *Memory // holds bytes; nil while they are few
	most    int     // what more room than this is not needed for; 0: not known
	err     error   // there was no room for more; nothing is gathered from then on
}

func (g *gathering) append(part []byte) {
	if len(part) > cap(g.bytes)-len(g.bytes) && !g.grow(len(part)) {
		return
	}
	g.bytes = append(g.bytes, part...)
}

// grow makes room for more bytes, and reports whether there is some.
func (g *gathering) grow(more int) bool {
	need := len(g.bytes) + more
	if need < minMemory {
		if cap(g.bytes) > 0 { // not the first part: many are to come
			need *= 2
		}
		g.bytes = append(make([]byte, 0, need), g.bytes...)
		return true
	}
	size := 2 * need
	if g.most > 0 {
		size = max(need, min(size, g.most))
	}
	return g.room(size)
}

// room moves what is gathered to memory of size bytes.
func (g *gathering) room(size int) bool {
	old := g.memory
	m, err := newMemory(g.account, size, old)
	if g.err = err; err != nil {
		return false
	}
	g.memory = m
	g.bytes = append(m.bytes[:0], g.bytes...)
	old.Free()
	return true
}

// drop gives up what was gathered.
func (g *gathering) drop() {
	g.memory.Free()
	g.bytes, g.memory = nil, nil
}

// received returns text, a part of what was gathered, with the memory that holds it.
func (g *gathering) received(text []byte) Received {
	return Received{Text: text, Memory: g.memory}
}

// reserve makes room for size bytes in all.
func (g *gathering) reserve(size int) {
	if size < minMemory {
		g.bytes = append(make([]byte, 0, size), g.bytes...)
		return
	}
	g.room(size)
}

// ReadFrom implements io.ReaderFrom.
func (g *gathering) ReadFrom(r io.Reader) (n int64, err error) {
	for err == nil {
		if len(g.bytes) == cap(g.bytes) && !g.grow(bytes.MinRead) {
			return n, g.err
		}
		var m int
		m, err = r.Read(g.bytes[len(g.bytes):cap(g.bytes)])
		g.bytes = g.bytes[:len(g.bytes)+m]
		n += int64(m)
	}
	if err == io.EOF {
		err = nil
	}
	return n, err
}

// ErrBodyTooLarge says that a body is over its limit.
var ErrBodyTooLarge = errors.New("larger than the size limit")

// ReadBody reads a body of at most limit bytes. size is what it is said to have, or negative.
func ReadBody(body io.Reader, size, limit int64, account *budget.Account) (Received, error) {
	if size > limit {
		return Received{}, ErrBodyTooLarge
	}
	g := gathering{account: account, most: int(limit) + bytes.MinRead}
	// One byte more than the body has, so that its end is found without more room.
	g.reserve(int(max(size, bytes.MinRead-1)) + 1)
	err := g.err
	if err == nil {
		_, err = g.ReadFrom(io.LimitReader(body, limit+1))
	}
	if err == nil && int64(len(g.bytes)) > limit {
		err = ErrBodyTooLarge
	}
	if err != nil {
		g.drop()
		return Received{}, err
	}
	return g.received(g.bytes), nil
}
