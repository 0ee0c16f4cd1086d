package transport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestLinesStayWhole has many writers post to a pipe that is full again and again: no message may be lost, torn, or
// overtake another one of the same writer.
func TestLinesStayWhole(t *testing.T) {
	t.Parallel()
	r, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, never, err := os.Pipe() // of the child's stdout nothing is read
	if err != nil {
		t.Fatal(err)
	}
	defer never.Close()
	w := NewLines(in, out, 1<<20, nil)
	const writers, each = 8, 60
	var posting, finished sync.WaitGroup
	for p := range writers {
		posting.Go(func() {
			for i := range each {
				m := Outgoing{Data: fmt.Appendf(nil, "%d %d %s.", p, i, strings.Repeat("x", i*i*7)), Done: make(chan error, 1)}
				if err := w.Post(m); err != nil {
					t.Error(err)
				}
				finished.Go(func() {
					if err := <-m.Done; err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
	next := make([]int, writers)
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for n := 0; n < writers*each && lines.Scan(); n++ {
		var p, i int
		if _, err := fmt.Sscanf(lines.Text(), "%d %d", &p, &i); err != nil || len(lines.Text()) != len(fmt.Sprintf("%d %d .", p, i))+i*i*7 {
			t.Fatalf("line %d is torn: %.60q", n, lines.Text())
		}
		if i != next[p] {
			t.Fatalf("message %d of writer %d came when %d was due", i, p, next[p])
		}
		next[p]++
	}
	posting.Wait()
	finished.Wait()
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	if w.bytes != 0 || len(w.waiting) != 0 {
		t.Errorf("%d messages of %d bytes are said to wait", len(w.waiting), w.bytes)
	}
	w.mu.Unlock()
	w.Close()
	w.Release()
	if err := w.Post(Outgoing{Data: []byte("late")}); err == nil {
		t.Error("a message was taken after the end")
	}
}

// written is a call that notes what becomes of it.
type written struct{ begun, back, failed atomic.Int32 }

func (c *written) Begin() bool { c.begun.Add(1); return true }
func (c *written) TakeBack()   { c.back.Add(1) }
func (c *written) Fail(error)  { c.failed.Add(1) }

// slowStdin is the stdin of a child: each write tells begun, and waits until release says how it goes.
type slowStdin struct {
	begun   chan string
	release chan error
}

func (s *slowStdin) Write(text []byte) (int, error) {
	s.begun <- string(text)
	if err := <-s.release; err != nil {
		return 0, err
	}
	return len(text), nil
}

func (s *slowStdin) Close() error { return nil }

// TestLinesThatDoNotLeave: a call counts as sent from its own write on, and not where not a byte of it has left.
func TestLinesThatDoNotLeave(t *testing.T) {
	t.Parallel()
	out, never, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer never.Close()
	in := &slowStdin{make(chan string), make(chan error)}
	w := NewLines(in, out, 1<<20, nil)
	defer w.Release()
	first := Outgoing{Data: []byte("first"), Done: make(chan error, 1)}
	if err := w.Post(first); err != nil {
		t.Fatal(err)
	}
	got := <-in.begun
	call, last := &written{}, make(chan error, 1)
	for _, m := range []Outgoing{
		{Data: []byte("a"), Call: call}, {Data: []byte("b"), Call: call}, {Data: []byte("c"), Call: call}, {Data: []byte("d"), Done: last},
	} {
		if err := w.Post(m); err != nil {
			t.Fatal(err)
		}
	}
	if call.begun.Load() != 0 {
		t.Error("a message that waits is said to be sent")
	}
	in.release <- nil
	if err := <-first.Done; err != nil {
		t.Error(err)
	}
	gone := errors.New("gone")
	for range 4 {
		got += <-in.begun
		in.release <- gone
	}
	if err := <-last; err != gone {
		t.Errorf("the last message ended with %v", err)
	}
	if got != "first\na\nb\nc\nd\n" {
		t.Errorf("wrote %q", got)
	}
	if call.begun.Load() != 3 || call.back.Load() != 3 || call.failed.Load() != 3 {
		t.Errorf("of three calls %d were begun, %d taken back, %d failed", call.begun.Load(), call.back.Load(), call.failed.Load())
	}
}

// TestLinesLeaveBeforeTheEnd: what was posted before the wire was closed is written, then the child's stdin ends.
func TestLinesLeaveBeforeTheEnd(t *testing.T) {
	t.Parallel()
	r, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out, never, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer never.Close()
	w := NewLines(in, out, 1<<20, nil)
	defer w.Release()
	var want strings.Builder
	for i := range 100 {
		line := fmt.Sprint(i, strings.Repeat("x", 1000))
		want.WriteString(line + "\n")
		if err := w.Post(Outgoing{Data: []byte(line)}); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != want.String() {
		t.Errorf("%d of %d bytes were written: %v", len(got), want.Len(), err)
	}
}
