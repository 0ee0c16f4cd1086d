package upstream

import (
	"bytes"
	"io"
	"sync"
	"weak"
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
type memory struct{ bytes []byte }

// memories are those of one server that may be used again. They are not held: the garbage collector takes what it finds
// here, so one large message does not make the hub larger for ever. The zero value is ready.
type memories struct {
	mu   sync.Mutex
	free []weak.Pointer[memory]
}

// take returns the largest free memory, or a new one where none has room for size bytes. Its content is arbitrary.
func (m *memories) take(size int) *memory {
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
		const step = 1 << 20
		return &memory{bytes: make([]byte, 0, (size+step-1)/step*step)}
	}
	m.free = append(m.free[:at], m.free[at+1:]...)
	return best
}

// put gives back memory that nobody reads any more. used is how much of it the message needed: what is far larger is left
// to the garbage collector.
func (m *memories) put(f *memory, used int) {
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

	look  *lookout // on what is gathered; nil where there is none
	ahead *ahead   // what was done so far; nil while nothing was
}

func (g *gathering) append(part []byte) {
	if len(part) > cap(g.bytes)-len(g.bytes) {
		g.grow(len(part))
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

// grow makes room for more bytes.
func (g *gathering) grow(more int) {
	need := len(g.bytes) + more
	if need < minMemory {
		if cap(g.bytes) > 0 { // not the first part: many are to come
			need *= 2
		}
		g.bytes = append(make([]byte, 0, need), g.bytes...)
		return
	}
	const fast = 16 << 20 // up to here it is better to take too much than to copy often
	size := need + need/2
	if need < fast {
		size = 4 * need
	}
	g.memory = g.from.take(size)
	g.bytes = append(g.memory.bytes[:0], g.bytes...)
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
	g.memory = g.from.take(size)
	g.bytes = append(g.memory.bytes[:0], g.bytes...)
}

// maxRead is how much is read at once: what was read is looked at while it is still in the processor's cache, and while
// the server writes more.
const maxRead = 256 << 10

// ReadFrom implements io.ReaderFrom.
func (g *gathering) ReadFrom(r io.Reader) (n int64, err error) {
	for {
		m, err := g.read(r, maxRead)
		n += int64(m)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// read reads once, at most so many bytes.
func (g *gathering) read(r io.Reader, most int) (n int, err error) {
	if len(g.bytes) == cap(g.bytes) {
		g.grow(bytes.MinRead)
	}
	n, err = r.Read(g.bytes[len(g.bytes):min(cap(g.bytes), len(g.bytes)+most)])
	g.bytes = g.bytes[:len(g.bytes)+n]
	if n > 0 {
		g.added()
	}
	return n, err
}
