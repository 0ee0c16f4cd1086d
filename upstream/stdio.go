package upstream

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
)

const (
	maxQueuedLines = 4096
	maxQueuedBytes = 64 << 20
)

// errQueueFull means that a server does not take in what it is sent.
var errQueueFull = errors.New("the server does not read its input")

// lineWire is the wire to a child process: one message a line. Whoever posts a message writes it, as far as the pipe
// takes it at once. What it does not take, and what is posted meanwhile, is written by a goroutine, so that a child that
// does not read its input blocks nobody but itself.
type lineWire struct {
	in    io.WriteCloser // the child's stdin
	out   io.ReadCloser  // the child's stdout
	lines *jsonrpc.LineReader

	try     func([]byte) (int, error) // writes what can be written without waiting; nil where there is no such way
	turn    sync.Mutex                // held by who writes
	begun   *outMessage               // a message of which only data is left to write; turn is held
	behind  atomic.Int64              // messages that are queued, begun, or being written by the goroutine
	poke    chan struct{}             // tells the goroutine of a begun message
	queue   chan outMessage
	queued  atomic.Int64 // bytes
	stop    chan struct{}
	once    sync.Once
	writing sync.WaitGroup

	breaking sync.Once
	broken   chan struct{} // closed a while after the child has stopped taking in what is written
}

// brokenAfter is how long a child that takes in nothing more may go on to write.
const brokenAfter = 500 * time.Millisecond

func newLineWire(in io.WriteCloser, out io.ReadCloser, limit int, account *budget.Account) *lineWire {
	w := &lineWire{
		in:    in,
		out:   out,
		lines: jsonrpc.NewLineReader(out, func() int { return limit }, account),
		try:   writeAtOnce(in),
		poke:  make(chan struct{}, 1),
		queue: make(chan outMessage, maxQueuedLines),
		stop:  make(chan struct{}),

		broken: make(chan struct{}),
	}
	w.writing.Go(w.writeAll)
	return w
}

func (w *lineWire) read() (jsonrpc.Received, error) {
	got, err := w.lines.Next()
	return got, oversizeOf(err)
}

func (w *lineWire) post(m outMessage) error {
	select {
	case <-w.stop:
		return errClosed
	default:
	}
	if w.writeNow(&m) {
		return nil
	}
	if w.queued.Add(int64(len(m.data))) > maxQueuedBytes && len(w.queue) > 0 {
		w.queued.Add(-int64(len(m.data)))
		return errQueueFull
	}
	w.behind.Add(1)
	select {
	case w.queue <- m:
		return nil
	default:
		w.behind.Add(-1)
		w.queued.Add(-int64(len(m.data)))
		return errQueueFull
	}
}

// maxAtOnce is the size in bytes up to which a message is written by who posts it.
const maxAtOnce = 64 << 10

// writeNow writes m unless there is something to wait for, and reports whether it has taken m over.
func (w *lineWire) writeNow(m *outMessage) bool {
	if w.try == nil || len(m.data) > maxAtOnce || w.behind.Load() > 0 || !w.turn.TryLock() {
		return false
	}
	defer w.turn.Unlock()
	if w.behind.Load() > 0 {
		return false // what came first goes first
	}
	if !m.start() {
		m.finish(nil)
		return true
	}
	line := append(m.data, '\n')
	n, err := w.try(line)
	if err == nil && n < len(line) {
		rest := *m
		rest.data = line[n:]
		w.begun = &rest
		w.behind.Add(1)
		signal(w.poke)
		return true
	}
	if err != nil {
		w.isBroken()
		if n == 0 && m.call != nil {
			m.call.takeBack()
		}
	}
	m.finish(err)
	return true
}

// isBroken notes that a write has failed: the child has closed its stdin or died. Usually its stdout ends as well, which
// the reader finds, and then that counts.
func (w *lineWire) isBroken() {
	w.breaking.Do(func() {
		// In two steps, of which the hub may lose one to standing still: the reader is to have its time.
		time.AfterFunc(brokenAfter/2, func() { time.AfterFunc(brokenAfter/2, func() { close(w.broken) }) })
	})
}

// writeAll writes what is left of a begun message, and queued ones, several with one system call where they wait.
func (w *lineWire) writeAll() {
	buf := bufio.NewWriterSize(w.in, 64<<10)
	for {
		select {
		case <-w.stop:
			return
		case <-w.poke:
			w.turn.Lock()
			begun := w.begun
			w.begun = nil
			if begun != nil {
				_, err := w.in.Write(begun.data)
				if err != nil {
					w.isBroken()
				}
				begun.finish(err)
				w.behind.Add(-1)
			}
			w.turn.Unlock()
		case m := <-w.queue:
			w.turn.Lock()
			err := w.writeQueued(buf, m)
			w.turn.Unlock()
			if err != nil {
				w.isBroken() // until the session ends, what is posted is answered here
				w.refuse(err)
				return
			}
		}
	}
}

// writeQueued writes m and what is queued after it, and after what is left of a begun message. w.turn is held.
func (w *lineWire) writeQueued(buf *bufio.Writer, m outMessage) error {
	var unflushed []outMessage
	if w.begun != nil {
		_, _ = buf.Write(w.begun.data)
		unflushed = append(unflushed, *w.begun)
		w.begun = nil
	}
	for more := true; more; {
		w.queued.Add(-int64(len(m.data)))
		if m.start() {
			_, _ = buf.Write(m.data) // bufio keeps the error for Flush
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
		m.finish(err)
	}
	return err
}

// refuse answers everything that is posted from now on with err.
func (w *lineWire) refuse(err error) {
	for {
		select {
		case <-w.stop:
			return
		case m := <-w.queue:
			w.behind.Add(-1)
			w.queued.Add(-int64(len(m.data)))
			m.finish(err)
		}
	}
}

// close closes the child's stdin and goes on to read its stdout, so that a child that ends in good order can finish its
// last message.
func (w *lineWire) close() {
	w.once.Do(func() {
		close(w.stop)
		_ = w.in.Close() // unblocks a write that waits for a child that does not read
	})
}

func (w *lineWire) release() {
	w.close()
	_ = w.out.Close()
	w.writing.Wait()
}
