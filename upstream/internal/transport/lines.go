package transport

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"sync/atomic"
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

// Lines is the wire to a child process: one message a line. post itself writes as much as the pipe takes at once. A
// goroutine writes the rest, and what is posted meanwhile, so that a child that does not read its input blocks only itself.
type Lines struct {
	in    io.WriteCloser // the child's stdin
	out   io.ReadCloser  // the child's stdout
	lines *jsonrpc.LineReader

	try     func([]byte) (int, error) // writes what can be written without waiting; nil where there is no such way
	hold    sync.Mutex                // held by who writes
	begun   *Outgoing                 // a message of which only data is left to write; hold is held
	behind  atomic.Int64              // messages that are queued, begun, or being written by the goroutine
	wake    chan struct{}             // tells the goroutine of a begun message
	queue   chan Outgoing
	queued  atomic.Int64 // bytes
	stop    chan struct{}
	once    sync.Once
	writing sync.WaitGroup

	breaking sync.Once
	Broken   chan struct{} // closed a while after the child has stopped taking in what is written
}

// brokenAfter bounds how long a child that has stopped reading may go on to write.
const brokenAfter = 500 * time.Millisecond

// NewLines returns the wire over a child's stdin and stdout. limit bounds each message, account the memory of large ones.
func NewLines(in io.WriteCloser, out io.ReadCloser, limit int, account *budget.Account) *Lines {
	w := &Lines{
		in:    in,
		out:   out,
		lines: jsonrpc.NewLineReader(out, func() int { return limit }, account),
		try:   writeAtOnce(in),
		wake:  make(chan struct{}, 1),
		queue: make(chan Outgoing, maxQueuedLines),
		stop:  make(chan struct{}),

		Broken: make(chan struct{}),
	}
	w.writing.Go(w.writeAll)
	return w
}

func (w *Lines) Read() (jsonrpc.Received, error) {
	got, err := w.lines.Next()
	return got, OversizeOf(err)
}

func (w *Lines) Post(m Outgoing) error {
	select {
	case <-w.stop:
		return ErrClosed
	default:
	}
	if w.writeNow(&m) {
		return nil
	}
	if w.queued.Add(int64(len(m.Data))) > maxQueuedBytes && len(w.queue) > 0 {
		w.queued.Add(-int64(len(m.Data)))
		return errQueueFull
	}
	w.behind.Add(1)
	select {
	case w.queue <- m:
		return nil
	default:
		w.behind.Add(-1)
		w.queued.Add(-int64(len(m.Data)))
		return errQueueFull
	}
}

// maxAtOnce is the size in bytes up to which post writes a message itself.
const maxAtOnce = 64 << 10

// writeNow writes m unless it would have to wait, and reports whether m is taken care of.
func (w *Lines) writeNow(m *Outgoing) bool {
	if w.try == nil || len(m.Data) > maxAtOnce || w.behind.Load() > 0 || !w.hold.TryLock() {
		return false
	}
	defer w.hold.Unlock()
	if w.behind.Load() > 0 {
		return false // what came first goes first
	}
	if !m.Start() {
		m.Finish(nil)
		return true
	}
	line := append(m.Data, '\n')
	n, err := w.try(line)
	if err == nil && n < len(line) {
		rest := *m
		rest.Data = line[n:]
		w.begun = &rest
		w.behind.Add(1)
		wait.Signal(w.wake)
		return true
	}
	if err != nil {
		w.isBroken()
		if n == 0 && m.Call != nil {
			m.Call.TakeBack()
		}
	}
	m.Finish(err)
	return true
}

// isBroken notes that a write has failed: the child has closed its stdin or died. Usually its stdout ends as well, and then the
// reader reports that.
func (w *Lines) isBroken() {
	w.breaking.Do(func() {
		// In two steps: if the machine stands still for one of them, the reader still has time.
		time.AfterFunc(brokenAfter/2, func() { time.AfterFunc(brokenAfter/2, func() { close(w.Broken) }) })
	})
}

// writeAll writes what is left of a begun message, and queued ones, several with one system call where they wait.
func (w *Lines) writeAll() {
	buf := bufio.NewWriterSize(w.in, 64<<10)
	for {
		select {
		case <-w.stop:
			return
		case <-w.wake:
			w.hold.Lock()
			begun := w.begun
			w.begun = nil
			if begun != nil {
				_, err := w.in.Write(begun.Data)
				if err != nil {
					w.isBroken()
				}
				begun.Finish(err)
				w.behind.Add(-1)
			}
			w.hold.Unlock()
		case m := <-w.queue:
			w.hold.Lock()
			err := w.writeQueued(buf, m)
			w.hold.Unlock()
			if err != nil {
				w.isBroken() // until the session ends, what is posted is answered here
				w.refuse(err)
				return
			}
		}
	}
}

// writeQueued writes m and what is queued after it, and after what is left of a begun message. w.hold is held.
func (w *Lines) writeQueued(buf *bufio.Writer, m Outgoing) error {
	var unflushed []Outgoing
	if w.begun != nil {
		_, _ = buf.Write(w.begun.Data)
		unflushed = append(unflushed, *w.begun)
		w.begun = nil
	}
	for more := true; more; {
		w.queued.Add(-int64(len(m.Data)))
		if m.Start() {
			_, _ = buf.Write(m.Data) // bufio keeps the error for Flush
			_ = buf.WriteByte('\n')
		}
		unflushed = append(unflushed, m)
		if more = buf.Buffered() > 0; more {
			select {
			case m = <-w.queue:
			default:
				more = false
			}
		}
	}
	err := buf.Flush()
	w.behind.Add(-int64(len(unflushed)))
	for _, m := range unflushed {
		m.Finish(err)
	}
	return err
}

// refuse fails everything that is posted from now on with err.
func (w *Lines) refuse(err error) {
	for {
		select {
		case <-w.stop:
			return
		case m := <-w.queue:
			w.behind.Add(-1)
			w.queued.Add(-int64(len(m.Data)))
			m.Finish(err)
		}
	}
}

// Close closes the child's stdin and goes on to read its stdout, so that a child that ends in good order can finish its
// last message.
func (w *Lines) Close() {
	w.once.Do(func() {
		close(w.stop)
		_ = w.in.Close() // unblocks a write that waits for a child that does not read
	})
}

func (w *Lines) Release() {
	w.Close()
	_ = w.out.Close()
	w.writing.Wait()
}
