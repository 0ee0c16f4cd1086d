package upstream

import (
	"bytes"
	"io"
	"runtime"
	"sync"
	"weak"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
)

const (
	// minMemory is the size from which on a message is read into memory that is used again, is checked while it is being
	// read, and has a digest of its result.
	minMemory = 128 << 10
	// maxFree is how many memories wait for their next use.
	maxFree = 4
)

// memory is room for one large message. Fresh memory costs more time than all else that happens to such a message,
// because the system hands it out in pages of zeros.
type memory struct {
	bytes   []byte
	lease   *budget.Lease // for all of bytes, while a message is in it
	cleanup runtime.Cleanup
}

// leased notes the lease of the memory. It ends when the memory is put back, or else with the last that reads a part of it.
func (m *memory) leased(l *budget.Lease) *memory {
	m.lease = l
	if l != nil {
		m.cleanup = runtime.AddCleanup(&m.bytes[:1][0], (*budget.Lease).Free, l)
	}
	return m
}

// end frees the lease.
func (m *memory) end() {
	if m == nil || m.lease == nil {
		return
	}
	m.cleanup.Stop()
	m.lease.Free()
	m.lease = nil
}

// memories are those of one server that may be used again. They are not held: the garbage collector takes what it finds
// here, so one large message does not make the hub larger for ever. The zero value is ready.
type memories struct {
	account *budget.Account // nil: without bounds

	mu   sync.Mutex
	free []weak.Pointer[memory]
}

// take returns the largest free memory, or a new one where none has room for size bytes. Its content is arbitrary. It
// takes the place of old, which may be nil and still holds the message: with an error old's lease is free.
func (m *memories) take(size int, old *memory) (*memory, error) {
	f := m.reuse(size)
	if f == nil {
		const step = 1 << 20
		size = (size + step - 1) / step * step
	} else {
		size = cap(f.bytes)
	}
	var held *budget.Lease
	if old != nil {
		held = old.lease
	}
	lease, err := m.account.Take(int64(size), held)
	if err != nil {
		return nil, err
	}
	if f == nil {
		f = &memory{bytes: make([]byte, 0, size)}
	}
	return f.leased(lease), nil
}

// reuse returns the largest free memory that has room for size bytes, nil where there is none.
func (m *memories) reuse(size int) *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	var best *memory
	at := -1
	for i, w := range m.free {
		if f := w.Value(); f != nil && cap(f.bytes) >= size && (best == nil || cap(f.bytes) > cap(best.bytes)) {
			best, at = f, i
		}
	}
	if best == nil {
		return nil
	}
	m.free = append(m.free[:at], m.free[at+1:]...)
	return best
}

// put gives back memory that nobody reads any more. used is how much of it the message needed: what is far larger is left
// to the garbage collector.
func (m *memories) put(f *memory, used int) {
	f.end()
	if cap(f.bytes) > 8*max(used, minMemory) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.free) >= maxFree {
		m.free = append(m.free[:0], m.free[1:]...) // the oldest: it may be gone anyway
	}
	m.free = append(m.free, weak.Make(f))
}

// received is one message, in memory that may be used again where there is one.
type received struct {
	text   []byte
	from   *memories
	memory *memory // nil for a text that is not large
	ahead  *ahead  // nil for a text of which nothing was done while it was being read
}

// free gives the memory back, if nobody reads the text or a part of it any more.
func (r received) free() {
	if r.memory != nil {
		r.from.put(r.memory, len(r.text))
	}
}

// gathering puts a message together whose size is not known beforehand.
type gathering struct {
	from   *memories
	bytes  []byte
	memory *memory // holds bytes; nil while they are few
	most   int     // what more room than this is not needed for; 0: not known
	err    error   // there was no room for more; nothing is gathered from then on

	look  *lookout // on what is gathered; nil where there is none
	ahead *ahead   // what was done so far; nil while nothing was
}

func (g *gathering) append(part []byte) {
	if len(part) > cap(g.bytes)-len(g.bytes) && !g.grow(len(part)) {
		return
	}
	g.bytes = append(g.bytes, part...)
	g.added()
}

// added follows each addition to bytes.
func (g *gathering) added() {
	if g.memory == nil {
		return
	}
	if g.ahead == nil {
		g.ahead = g.look.begin(g.bytes)
	}
	if g.ahead != nil {
		g.ahead.more(g.bytes)
	}
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
	const fast = 16 << 20 // up to here it is better to take too much than to copy often
	size := need + need/2
	if need < fast {
		size = 4 * need
	}
	if g.most > 0 {
		size = max(need, min(size, g.most))
	}
	return g.room(size)
}

// room moves what is gathered to memory of size bytes.
func (g *gathering) room(size int) bool {
	old := g.memory
	m, err := g.from.take(size, old)
	if g.err = err; err != nil {
		return false
	}
	g.memory = m
	g.bytes = append(m.bytes[:0], g.bytes...)
	old.end()
	return true
}

// drop gives up what was gathered.
func (g *gathering) drop() {
	g.memory.end()
	g.bytes, g.memory, g.ahead = nil, nil, nil
}

// received is the message, of which text is the part that matters.
func (g *gathering) received(text []byte) received {
	if g.ahead != nil {
		g.ahead.all = g.bytes
	}
	return received{text: text, from: g.from, memory: g.memory, ahead: g.ahead}
}

// reserve makes room for size bytes in all.
func (g *gathering) reserve(size int) {
	if size < minMemory {
		g.bytes = append(make([]byte, 0, size), g.bytes...)
		return
	}
	g.room(size)
}

// maxRead is how much is read at once: what was read is looked at while it is still in the processor's cache, and while
// the server writes more.
const maxRead = 256 << 10

// ReadFrom implements io.ReaderFrom.
func (g *gathering) ReadFrom(r io.Reader) (n int64, err error) {
	for {
		m, err := g.read(r, maxRead)
		n += int64(m)
		if err == nil {
			err = g.err
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// read reads once, at most so many bytes; nothing where there is no room.
func (g *gathering) read(r io.Reader, most int) (n int, err error) {
	if g.err != nil || len(g.bytes) == cap(g.bytes) && !g.grow(bytes.MinRead) {
		return 0, nil
	}
	n, err = r.Read(g.bytes[len(g.bytes):min(cap(g.bytes), len(g.bytes)+most)])
	g.bytes = g.bytes[:len(g.bytes)+n]
	if n > 0 {
		g.added()
	}
	return n, err
}
