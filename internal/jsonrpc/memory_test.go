package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
)

func TestGathering(t *testing.T) {
	t.Parallel()
	b := budget.New(0)
	defer b.Close()
	bounded := b.Share()
	for name, memory := range map[string]*budget.Share{"no bounds": nil, "bounds": bounded} {
		for _, size := range []int{0, 1, 100, 700_000, budget.Small - 1, budget.Small, budget.Small + 1, 5_000_000} {
			want := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
			byParts := gathering{memory: memory}
			for rest := want; len(rest) > 0; {
				n := min(len(rest), 60_001)
				byParts.append(rest[:n])
				rest = rest[n:]
			}
			all := map[string]Received{"by parts": byParts.received()}
			for _, stated := range []int{-1, size} {
				got, err := ReadBody(iotest.DataErrReader(bytes.NewReader(want)), int64(stated), 8<<20, memory)
				if err != nil {
					t.Fatalf("%s: %d of %d bytes: %v", name, stated, size, err)
				}
				all[fmt.Sprint(stated)] = got
			}
			for how, got := range all {
				if !bytes.Equal(got.Text, want) {
					t.Errorf("%s: %d bytes came %s as %d, or other ones", name, size, how, len(got.Text))
				}
				if (got.Room != nil) != (memory != nil && size > budget.Small) {
					t.Errorf("%s: %d bytes came %s with room %v", name, size, how, got.Room)
				}
				got.Room.Free()
			}
		}
		for _, size := range []int64{-1, 100, 3 << 20} {
			broken := io.MultiReader(bytes.NewReader(make([]byte, 2<<20)), iotest.ErrReader(io.ErrUnexpectedEOF))
			if _, err := ReadBody(broken, size, 8<<20, memory); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s: error %v", name, err)
			}
		}
		if _, err := ReadBody(bytes.NewReader(make([]byte, 2<<20)), -1, 2<<20-1, memory); !errors.As(err, new(*TooLarge)) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	r := bounded.Room(nil)
	if err := r.Take(bounded.Largest()); err != nil {
		t.Errorf("something is held: %v", err)
	}
	r.Free()
}

// TestLooksAreBounded: a text that comes in small parts, each with a brace at its end, costs no more than a few reads of it.
func TestLooksAreBounded(t *testing.T) {
	t.Parallel()
	var seen looks
	text := []byte(`{"a":[`)
	for range 1 << 14 {
		if text = append(text, "{},{}"...); seen.isObject(text) {
			t.Fatal("an open array is a whole object")
		}
		text = append(text, ',')
	}
	if int(seen) > 9*len(text) {
		t.Errorf("%d bytes were looked at of %d", seen, len(text))
	}
	if whole := []byte(`{"a":[{}]}`); !new(looks).isObject(whole) || !isObject(append(whole, '\n')) {
		t.Error("a whole object is none")
	}
}
