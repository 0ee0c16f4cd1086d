package transport

import (
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

const (
	maxQueuedLines = 4096
	maxQueuedBytes = 64 << 20
)

// errQueueFull means that a server does not read what it is sent.
var errQueueFull = errors.New("the server does not read its input")

// Lines is the wire to a child process: one message a line. A goroutine writes them, so that a
// child that does not read its input blocks only itself.
type Lines struct {
	*jsonrpc.LineReader                // of the child's stdout
	in                  io.WriteCloser // the child's stdin
	out                 io.ReadCloser  // the child's stdout

	wake    chan struct{} // tells the goroutine of messages, and of the end
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	waiting []Outgoing // posted, and not begun to be written
	bytes   int        // of these

	breaking sync.Once
	Broken   chan struct{} // closed a while after the child has stopped taking in what is written
}

// brokenAfter bounds how long a child that has stopped reading may go on to write.
const brokenAfter = 500 * time.Millisecond

// NewLines returns the wire over a child's stdin and stdout. limit bounds each message, memory that of large ones.
func NewLines(in io.WriteCloser, out io.ReadCloser, limit int, memory *budget.Share) *Lines {
	w := &Lines{
		LineReader: jsonrpc.NewLineReader(out, func() int { return limit }, memory),
		in:         in,
		out:        out,
		wake:       make(chan struct{}, 1),
		Broken:     make(chan struct{}),
	}
	w.running.Go(w.writeAll)
	return w
}

func (w *Lines) Post(m Outgoing) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return ErrClosed
	}
	if n := len(w.waiting); n >= maxQueuedLines || n > 0 && w.bytes+len(m.Data) > maxQueuedBytes {
		return errQueueFull
	}
	w.waiting = append(w.waiting, m)
	w.bytes += len(m.Data)
	wait.Signal(w.wake)
	return nil
}

// writeAll writes what was posted, unless nobody waits for it any more, and closes the child's stdin once nothing more
// can be posted.
func (w *Lines) writeAll() {
	defer func() { _ = w.in.Close() }()
	for {
		w.mu.Lock()
		if len(w.waiting) == 0 {
			closed := w.closed
			w.mu.Unlock()
			if closed {
				return
			}
			<-w.wake
			continue
		}
		m := w.waiting[0]
		w.waiting = slices.Delete(w.waiting, 0, 1)
		w.bytes -= len(m.Data)
		w.mu.Unlock()
		if m.Call != nil && !m.Call.Begin() {
			continue
		}
		n, err := w.in.Write(append(m.Data, '\n')) // usually there is room
		if err != nil {
			w.isBroken()
			if n == 0 && m.Call != nil {
				m.Call.TakeBack()
			}
		}
		m.Finish(err)
	}
}

// isBroken notes that a write has failed: the child has closed its stdin or died. Usually its
// stdout ends as well, and then the reader reports that.
func (w *Lines) isBroken() {
	w.breaking.Do(func() {
		// In two steps: if the machine stands still for one of them, the reader still has time.
		time.AfterFunc(brokenAfter/2, func() { time.AfterFunc(brokenAfter/2, func() { close(w.Broken) }) })
	})
}

// Close has the child's stdin closed once what was posted is written, and goes on to read its
// stdout, so that a child that ends in good order can finish its last message.
func (w *Lines) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	wait.Signal(w.wake)
}

func (w *Lines) Release() {
	w.Close()
	_ = w.in.Close() // unblocks a write that waits for a child that does not read
	_ = w.out.Close()
	w.running.Wait()
}
