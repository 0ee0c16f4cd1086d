package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
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

// takeMemory returns memory for size bytes.
func takeMemory(account *budget.Account, size int) (*Memory, error) {
	const step = 1 << 20
	lease, err := account.Take(int64((size + step - 1) / step * step))
	if err != nil {
		return nil, err
	}
	return newMemory(lease, size), nil
}

// newMemory returns memory for size bytes, for which lease was taken.
func newMemory(lease *budget.Lease, size int) *Memory {
	m := &Memory{bytes: make([]byte, 0, size), lease: lease}
	if lease != nil {
		// Without a call of Free, the lease ends with the last reader of a part.
		m.cleanup = runtime.AddCleanup(&m.bytes[:1][0], (*budget.Lease).Free, lease)
	}
	return m
}

// Free ends the lease. The bytes stay readable.
func (m *Memory) Free() {
	m.take().Free()
}

// take returns the lease, which is for other memory from now on.
func (m *Memory) take() *budget.Lease {
	if m == nil || m.lease == nil {
		return nil
	}
	lease := m.lease
	m.cleanup.Stop()
	m.lease = nil
	return lease
}

// Received is one message.
type Received struct {
	Text   []byte
	Memory *Memory // holds Text; nil for a text that is not large
}

// gathering puts a message together whose size is not known beforehand, or that may be long in coming. It grows in memory up to
// budget.Small, and beyond that on the disk.
type gathering struct {
	account *budget.Account
	bytes   []byte
	memory  *Memory       // holds bytes; nil while they are few
	spool   *budget.Spool // holds the message in place of bytes; nil while it is in memory
	most    int           // what more room than this is not needed for
	whole   bool          // memory has a lease for most: nothing more is asked for
	err     error         // there was no room for more; nothing is gathered from then on
}

// size returns the number of bytes of the message so far.
func (g *gathering) size() int {
	if g.spool != nil {
		return int(g.spool.Size())
	}
	return len(g.bytes)
}

func (g *gathering) append(part []byte) {
	if g.spool == nil && len(part) > cap(g.bytes)-len(g.bytes) && !g.grow(len(part)) {
		return
	}
	if g.spool != nil && !g.spill(part) {
		return
	}
	if g.spool == nil {
		g.bytes = append(g.bytes, part...)
	}
}

// grow makes room for more bytes, in memory or on the disk, and reports whether there is some.
func (g *gathering) grow(more int) bool {
	need := len(g.bytes) + more
	switch {
	case need < minMemory:
		if cap(g.bytes) > 0 { // not the first part: many are to come
			need *= 2
		}
		g.bytes = append(make([]byte, 0, need), g.bytes...)
		return true
	case g.account == nil || g.whole:
		g.move(newMemory(g.memory.take(), max(need, min(2*need, g.most))))
		return true
	case need > budget.Small:
		return g.toDisk()
	}
	var m *Memory
	if m, g.err = takeMemory(g.account, budget.Small); g.err != nil {
		return false
	}
	g.move(m)
	return true
}

// move moves what is gathered to m.
func (g *gathering) move(m *Memory) {
	old := g.memory
	g.memory = m
	g.bytes = append(m.bytes[:0], g.bytes...)
	old.Free()
}

// toDisk lets the message grow on the disk from now on.
func (g *gathering) toDisk() bool {
	var err error
	if g.spool, err = g.account.Spool(); err != nil {
		return g.toMemory(0)
	}
	held, memory := g.bytes, g.memory
	g.bytes, g.memory = nil, nil
	if g.append(held); g.err != nil {
		g.bytes, g.memory = held, memory
		return false
	}
	memory.Free()
	return true
}

// spill adds to what is on the disk. Where the disk cannot be used, what was there is in memory afterwards, without part.
func (g *gathering) spill(part []byte) bool {
	_, err := g.spool.Write(part)
	if errors.Is(err, budget.ErrBusy) {
		g.err = err
		return false
	}
	return err == nil || g.toMemory(len(part))
}

// toMemory lets the message grow in memory from now on, as the disk cannot be used. There is room for the largest one, so that it
// does not hold some while it waits for more. A server that sends slowly holds up others then.
func (g *gathering) toMemory(more int) bool {
	lease, err := g.account.Take(min(int64(g.most), g.account.Largest()))
	if err != nil {
		g.err = err
		return false
	}
	m := newMemory(lease, g.size()+max(more, minMemory))
	if g.spool == nil {
		g.move(m)
	} else if g.err = g.fill(m); g.err != nil {
		return false
	}
	g.whole = true
	return true
}

// load brings the message into memory. With an error it stays where it is.
func (g *gathering) load() error {
	if g.err != nil || g.spool == nil {
		return g.err
	}
	m, err := takeMemory(g.account, g.size())
	if err == nil {
		err = g.fill(m)
	}
	g.err = err
	return err
}

// fill moves the message from the disk to m.
func (g *gathering) fill(m *Memory) error {
	text := m.bytes[:g.size()]
	if _, err := io.ReadFull(g.spool.Reader(), text); err != nil {
		m.Free()
		return fmt.Errorf("%w: the disk does not give back what it was given: %w", budget.ErrBusy, err)
	}
	g.spool.Close()
	g.bytes, g.memory, g.spool = text, m, nil
	return nil
}

// drop gives up what was gathered, and shows it to see before, piece by piece.
func (g *gathering) drop(see func(piece []byte)) {
	see(g.bytes)
	if g.spool != nil {
		piece := make([]byte, lineBuffer)
		for from, n, err := g.spool.Reader(), 0, error(nil); err == nil; see(piece[:n]) {
			n, err = from.Read(piece)
		}
	}
	g.free()
}

// free gives up what was gathered.
func (g *gathering) free() {
	g.memory.Free()
	g.spool.Close()
	g.bytes, g.memory, g.spool = nil, nil, nil
}

// received returns text, a part of what was gathered, with the memory that holds it.
func (g *gathering) received(text []byte) Received {
	return Received{Text: text, Memory: g.memory}
}

// ReadFrom implements io.ReaderFrom.
func (g *gathering) ReadFrom(r io.Reader) (n int64, err error) {
	var buf []byte // nil while the message is in memory
	for err == nil {
		if g.spool == nil && len(g.bytes) == cap(g.bytes) && !g.grow(bytes.MinRead) {
			return n, g.err
		}
		to := g.bytes[len(g.bytes):cap(g.bytes)]
		if g.spool != nil {
			if buf == nil {
				buf = make([]byte, lineBuffer)
			}
			to = buf
		}
		var m int
		m, err = r.Read(to)
		n += int64(m)
		if g.spool != nil {
			if g.append(to[:m]); g.err != nil {
				return n, g.err
			}
			continue
		}
		g.bytes = g.bytes[:len(g.bytes)+m]
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
	g.grow(int(max(size, bytes.MinRead-1)) + 1)
	err := g.err
	if err == nil {
		_, err = g.ReadFrom(io.LimitReader(body, limit+1))
	}
	if err == nil && int64(g.size()) > limit {
		err = ErrBodyTooLarge
	}
	if err == nil {
		err = g.load()
	}
	if err != nil {
		g.free()
		return Received{}, err
	}
	return g.received(g.bytes), nil
}
