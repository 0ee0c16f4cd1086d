package transport

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"sync"
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
	if n := w.behind.Load(); n != 0 {
		t.Errorf("%d messages are said to be behind", n)
	}
	w.Close()
	w.Release()
	if err := w.Post(Outgoing{Data: []byte("late")}); err == nil {
		t.Error("a message was taken after the end")
	}
}
