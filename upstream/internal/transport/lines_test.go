package transport

import (
	"bufio"
	"errors"
	"fmt"
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
	if w.writing || w.bytes != 0 || len(w.waiting) != 0 {
		t.Errorf("%d messages of %d bytes are said to wait, somebody writes: %v", len(w.waiting), w.bytes, w.writing)
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

// TestLinesLeaveTogether: what is posted while somebody writes is left to them, leaves with one write, and fails together.
func TestLinesLeaveTogether(t *testing.T) {
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
	gone := errors.New("gone")
	begun, release, texts := make(chan struct{}), make(chan error), make(chan string, 10)
	w.try = func(text []byte) (int, error) {
		begun <- struct{}{}
		texts <- string(text)
		if err := <-release; err != nil {
			return 0, err
		}
		return len(text), nil
	}
	first := make(chan error, 1)
	go func() { first <- w.Post(Outgoing{Data: []byte("first")}) }()
	<-begun
	call := &written{}
	for _, text := range []string{"a", "b", "c"} {
		if err := w.Post(Outgoing{Data: []byte(text), Call: call}); err != nil {
			t.Fatal(err)
		}
	}
	if call.begun.Load() != 0 {
		t.Error("a message that waits is said to be sent")
	}
	release <- nil
	<-begun
	release <- gone
	if err := <-first; err != nil {
		t.Error(err)
	}
	if got := <-texts + "|" + <-texts; got != "first\n|a\nb\nc\n" {
		t.Errorf("wrote %q", got)
	}
	if call.begun.Load() != 3 || call.back.Load() != 3 || call.failed.Load() != 3 {
		t.Errorf("of three calls %d were begun, %d taken back, %d failed", call.begun.Load(), call.back.Load(), call.failed.Load())
	}
}
