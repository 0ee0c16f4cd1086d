package upstream

import (
	"bytes"
	"io"
	"sync"
	"weak"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	// minMemory is the size from which on a message is read into memory that is used again, or of which there is a digest.
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
}

func (g *gathering) append(part []byte) {
	if len(part) > cap(g.bytes)-len(g.bytes) {
		g.grow(len(part))
	}
	g.bytes = append(g.bytes, part...)
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
	return received{text: text, from: g.from, memory: g.memory}
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

// ReadFrom implements io.ReaderFrom.
func (g *gathering) ReadFrom(r io.Reader) (n int64, err error) {
	for {
		if len(g.bytes) == cap(g.bytes) {
			g.grow(bytes.MinRead)
		}
		m, err := r.Read(g.bytes[len(g.bytes):cap(g.bytes)])
		g.bytes = g.bytes[:len(g.bytes)+m]
		n += int64(m)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// digesting is the digest of a result that is being computed on another core, while the message is checked.
type digesting struct {
	of   []byte
	done chan struct{}
	sum  string
}

// digestAhead starts the digest of the result in a large response. That is taken to be its last member, as it nearly
// always is: whoever knows the response must ask isOf. It returns nil for any other message.
func digestAhead(message []byte) *digesting {
	if len(message) < minMemory {
		return nil
	}
	const key = `"result":`
	at := bytes.Index(message[:256], []byte(key))
	end := bytes.LastIndexByte(message, '}')
	if at < 0 || end < at+len(key) {
		return nil
	}
	return digestOf(bytes.TrimSpace(message[at+len(key) : end]))
}

func digestOf(text []byte) *digesting {
	d := &digesting{of: text, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		d.sum = tool.Digest(text)
	}()
	return d
}

// isOf reports whether the digest is of this very text.
func (d *digesting) isOf(text []byte) bool {
	return d != nil && len(text) > 0 && len(text) == len(d.of) && &text[0] == &d.of[0]
}

func (d *digesting) wait() string {
	<-d.done
	return d.sum
}

// in is the answer with what belongs to a large result: the memory that it was read into, and its digest. ahead is the
// digest that was begun for the message, or nil.
func (a answer) in(got received, ahead *digesting) answer {
	if len(a.result) < minMemory {
		return a
	}
	if !ahead.isOf(a.result) {
		if ahead != nil {
			ahead.wait() // it reads the memory that the answer is going to free
		}
		ahead = digestOf(a.result)
	}
	a.got, a.digest = got, ahead
	return a
}
