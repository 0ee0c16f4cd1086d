package jsonrpc

import (
	"bytes"
	"io"
	"runtime"
	"testing"
	"testing/iotest"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
)

func TestGathering(t *testing.T) {
	t.Parallel()
	want := bytes.Repeat([]byte("0123456789"), 300_000)
	for _, reserve := range []int{0, 100, len(want) - 1, len(want) + 1} {
		byParts, byReading := gathering{}, gathering{}
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
			if r := g.received(g.bytes); r.Memory == nil || &r.Memory.bytes[:1][0] != &r.Text[0] {
				t.Errorf("reserved %d: the message is not in its memory", reserve)
			} else {
				r.Memory.Free()
			}
		}
	}
	broken := gathering{}
	if _, err := broken.ReadFrom(iotest.ErrReader(io.ErrUnexpectedEOF)); err != io.ErrUnexpectedEOF {
		t.Errorf("error %v", err)
	}
}

// TestMemoryThatNobodyFreesIsCollected forgets a message. Whoever waits for its room gets it from the garbage collector.
func TestMemoryThatNobodyFreesIsCollected(t *testing.T) {
	t.Parallel()
	b := budget.New(16 << 20)
	a := b.Account("a")
	held, err := newMemory(a, 9<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	part := held.bytes[:1]
	runtime.KeepAlive(held)
	if _, err := a.Take(9<<20, nil); err == nil { // a part of it keeps all of it
		t.Error("memory that is still read was taken for free")
	}
	runtime.KeepAlive(part)
	l, err := a.Take(9<<20, nil)
	if err != nil {
		t.Errorf("memory that nobody reads is held: %v", err)
	}
	l.Free()
}
