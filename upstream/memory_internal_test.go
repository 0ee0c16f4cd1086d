package upstream

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
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
			if r := g.received(g.bytes); r.memory == nil || &r.memory.bytes[:1][0] != &r.text[0] {
				t.Errorf("reserved %d: the message is not in its memory", reserve)
			} else {
				r.memory.free()
			}
		}
	}
	broken := gathering{}
	if _, err := broken.ReadFrom(iotest.ErrReader(io.ErrUnexpectedEOF)); err != io.ErrUnexpectedEOF {
		t.Errorf("error %v", err)
	}
}
