package upstream

import (
	"bytes"
	"io"
	"runtime"
	"testing"
	"testing/iotest"
)

func TestMemories(t *testing.T) {
	t.Parallel()
	var m memories
	take := func(size int) *memory {
		f, err := m.take(size, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	a := take(minMemory)
	if cap(a.bytes) < minMemory {
		t.Fatalf("%d bytes", cap(a.bytes))
	}
	m.put(a, minMemory)
	if b := take(1); b != a {
		t.Error("free memory is not used")
	}
	if b := take(1); b == a {
		t.Error("memory is used twice at once")
	}
	m.put(a, minMemory)
	if b := take(cap(a.bytes) + 1); b == a {
		t.Error("memory is used for more than it holds")
	}
	large := take(64 << 20)
	m.put(large, minMemory)
	if b := take(64 << 20); b == large {
		t.Error("memory far beyond what it is used for is kept")
	}
	for range 3 * maxFree {
		m.put(&memory{bytes: make([]byte, 0, minMemory)}, minMemory)
	}
	if len(m.free) > maxFree {
		t.Errorf("%d memories are free", len(m.free))
	}
	runtime.GC()
	for _, w := range m.free {
		if w.Value() != nil && w.Value() != a {
			t.Error("free memory is held")
		}
	}
	runtime.KeepAlive(a)
}

func TestGathering(t *testing.T) {
	t.Parallel()
	want := bytes.Repeat([]byte("0123456789"), 300_000)
	var m memories
	for _, reserve := range []int{0, 100, len(want) - 1, len(want) + 1} {
		byParts, byReading := gathering{from: &m}, gathering{from: &m}
		byReading.reserve(reserve)
		for rest := want; len(rest) > 0; {
			n := min(len(rest), 60_001)
			byParts.append(rest[:n])
			rest = rest[n:]
		}
		n, err := byReading.ReadFrom(iotest.DataErrReader(bytes.NewReader(want)))
		if err != nil || n != int64(len(want)) || !bytes.Equal(byReading.bytes, want) || !bytes.Equal(byParts.bytes, want) {
			t.Errorf("reserved %d: read %d bytes, %v, or other ones", reserve, n, err)
		}
		for _, g := range []gathering{byParts, byReading} {
			if r := g.received(g.bytes); r.memory == nil || &r.memory.bytes[:1][0] != &r.text[0] {
				t.Errorf("reserved %d: the message is not in its memory", reserve)
			} else {
				r.free()
			}
		}
	}
	broken := gathering{from: &m}
	if _, err := broken.ReadFrom(iotest.ErrReader(io.ErrUnexpectedEOF)); err != io.ErrUnexpectedEOF {
		t.Errorf("error %v", err)
	}
}
