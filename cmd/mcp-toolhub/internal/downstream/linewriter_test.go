package downstream

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
)

// gatedWriter notes what it is given, and takes as long as the test wants.
type gatedWriter struct {
	begun, release chan struct{}
	writes         []string
	err            error
}

func (g *gatedWriter) Write(p []byte) (int, error) {
	g.writes = append(g.writes, string(p))
	g.begun <- struct{}{}
	<-g.release
	return len(p), g.err
}

func newGatedWriter() *gatedWriter {
	return &gatedWriter{begun: make(chan struct{}, 100), release: make(chan struct{})}
}

// Messages that come while one is written leave with one write, in their order. Whoever brings them
// does not wait for it.
func TestLinesLeaveTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, b := newGatedWriter(), newBacklog()
		w := newLineWriter(g, b, func() { t.Error("the client is said to be gone") })
		go func() { _ = w.line([]byte("first")) }()
		<-g.begun
		for _, text := range []string{"a", "b", "c"} {
			if err := w.line([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if b.bytes != 4*minBacklog {
			t.Errorf("%d bytes count as waiting", b.bytes)
		}
		flushed := false
		go func() { w.flush(); flushed = true }()
		synctest.Wait()
		if flushed {
			t.Error("flush returns before all is written")
		}
		close(g.release)
		synctest.Wait()
		if got := strings.Join(g.writes, "|"); got != "first\n|a\nb\nc\n" || !flushed || b.bytes != 0 {
			t.Errorf("wrote %q, flushed %v, %d bytes wait", got, flushed, b.bytes)
		}
	})
}

// A message for which there is no room waits, and those that come later wait behind it: it is written at last.
func TestALongLineIsNotOvertaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGatedWriter()
		w := newLineWriter(g, newBacklog(), nil)
		long := strings.Repeat("x", maxJoined)
		for _, text := range []string{"first", long, "later"} {
			go func() { _ = w.line([]byte(text)) }()
			synctest.Wait()
		}
		if len(w.next) > 0 || w.barred != 2 {
			t.Errorf("%d bytes are to be written next, %d messages wait", len(w.next), w.barred)
		}
		close(g.release)
		synctest.Wait()
		if got := strings.Join(g.writes, ""); len(got) != len("first\n\nlater\n")+len(long) ||
			!strings.HasPrefix(got, "first\n") {
			t.Errorf("wrote %d bytes: %.20q", len(got), got)
		}
	})
}

// The first failure stays. What waits is dropped, and no longer counts.
func TestNothingIsWrittenToAClientThatIsGone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, b, breaks := newGatedWriter(), newBacklog(), 0
		g.err = errors.New("gone")
		w := newLineWriter(g, b, func() { breaks++ })
		var first error
		go func() { first = w.line([]byte("first")) }()
		<-g.begun
		if err := w.line([]byte("second")); err != nil {
			t.Fatal(err)
		}
		close(g.release)
		synctest.Wait()
		if err := w.line([]byte("third")); !errors.Is(err, g.err) || !errors.Is(first, g.err) {
			t.Errorf("errors %v, %v", first, err)
		}
		if len(g.writes) != 1 || breaks != 1 || b.bytes != 0 {
			t.Errorf("%d writes, %d breaks, %d bytes wait", len(g.writes), breaks, b.bytes)
		}
	})
}
