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

// Lines is the wire to a child process: one message a line. Whoever posts while nobody writes, writes as much as the pipe takes at
// once, its own message and what others have posted meanwhile. A goroutine writes what has to wait, so that a child that does not
// read its input blocks only itself.
type Lines struct {
	in    io.WriteCloser // the child's stdin
	out   io.ReadCloser  // the child's stdout
	lines *jsonrpc.LineReader

	try     func([]byte) (int, error) // writes what can be written without waiting; nil where there is no such way
	wake    chan struct{}             // hands the writing over to the goroutine
	stop    chan struct{}
	once    sync.Once
	running sync.WaitGroup

	mu      sync.Mutex
	writing bool       // somebody writes, and mu is free meanwhile
	waiting []Outgoing // posted, and not begun to be written
	bytes   int        // of these

	// Whoever writes has these.
	text  []byte     // the lines that are written
	begun []Outgoing // the messages in text

	breaking sync.Once
	Broken   chan struct{} // closed a while after the child has stopped taking in what is written
}

// brokenAfter bounds how long a child that has stopped reading may go on to write.
const brokenAfter = 500 * time.Millisecond

// NewLines returns the wire over a child's stdin and stdout. limit bounds each message, memory that of large ones.
func NewLines(in io.WriteCloser, out io.ReadCloser, limit int, memory *budget.Share) *Lines {
	w := &Lines{
		in:    in,
		out:   out,
		lines: jsonrpc.NewLineReader(out, func() int { return limit }, memory),
		try:   writeAtOnce(in),
		wake:  make(chan struct{}, 1),
		stop:  make(chan struct{}),

		Broken: make(chan struct{}),
	}
	w.running.Go(w.writeAll)
	return w
}

func (w *Lines) Read() (jsonrpc.Received, error) {
	got, err := w.lines.Next()
	return got, OversizeOf(err)
}

func (w *Lines) Post(m Outgoing) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if wait.IsClosed(w.stop) {
		return ErrClosed
	}
	if n := len(w.waiting); n >= maxQueuedLines || n > 0 && w.bytes+len(m.Data) > maxQueuedBytes {
		return errQueueFull
	}
	w.waiting = append(w.waiting, m)
	w.bytes += len(m.Data)
	if w.writing {
		return nil
	}
	w.writing = true
	for range maxRounds {
		if len(w.waiting) == 0 {
			w.writing = false
			return nil
		}
		if !w.writeNow() {
			break
		}
	}
	wait.Signal(w.wake)
	return nil
}

const (
	// maxAtOnce is the size in bytes up to which lines are put together.
	maxAtOnce = 64 << 10
	// maxRounds bounds how often Post writes.
	maxRounds = 8
)

// begin takes messages that wait, and begins them as text: as many as are written at once, at least one. w.mu is held.
func (w *Lines) begin() {
	n, size := 0, 0
	for n < len(w.waiting) && (n == 0 || size+len(w.waiting[n].Data) < maxAtOnce) {
		size += len(w.waiting[n].Data) + 1
		w.bytes -= len(w.waiting[n].Data)
		n++
	}
	w.begun = append(w.begun[:0], w.waiting[:n]...)
	w.waiting = slices.Delete(w.waiting, 0, n)
	if n == 1 {
		w.text = nil
		if m := w.begun[0]; m.Start() {
			w.text = append(m.Data, '\n') // usually there is room
		}
		return
	}
	w.text = make([]byte, 0, size)
	for _, m := range w.begun {
		if m.Start() {
			w.text = append(append(w.text, m.Data...), '\n')
		}
	}
}

// writeNow writes lines that wait unless they would have to wait any longer, and reports whether they are taken care of. w.mu is
// held, and free meanwhile.
func (w *Lines) writeNow() bool {
	if w.try == nil || len(w.waiting[0].Data) > maxAtOnce {
		return false
	}
	w.begin()
	w.mu.Unlock()
	defer w.mu.Lock()
	n, err := 0, error(nil)
	if len(w.text) > 0 {
		n, err = w.try(w.text)
	}
	if err == nil && n < len(w.text) {
		w.text = w.text[n:]
		return false
	}
	w.finish(err, n == 0)
	return true
}

// finish reports how the writing of text went. untouched says that not a byte of it has left.
func (w *Lines) finish(err error, untouched bool) {
	if err != nil {
		w.isBroken()
	}
	for _, m := range w.begun {
		if err != nil && untouched && m.Call != nil {
			m.Call.TakeBack()
		}
		m.Finish(err)
	}
	clear(w.begun)
	w.begun, w.text = w.begun[:0], nil
}

// isBroken notes that a write has failed: the child has closed its stdin or died. Usually its stdout ends as well, and then the
// reader reports that.
func (w *Lines) isBroken() {
	w.breaking.Do(func() {
		// In two steps: if the machine stands still for one of them, the reader still has time.
		time.AfterFunc(brokenAfter/2, func() { time.AfterFunc(brokenAfter/2, func() { close(w.Broken) }) })
	})
}

// writeAll writes whatever was handed over, several lines with one system call where they wait.
func (w *Lines) writeAll() {
	for {
		select {
		case <-w.stop:
			return
		case <-w.wake:
		}
		w.mu.Lock()
		for len(w.begun) > 0 || len(w.waiting) > 0 {
			if len(w.begun) == 0 {
				w.begin()
			}
			w.mu.Unlock()
			var err error
			if len(w.text) > 0 {
				_, err = w.in.Write(w.text)
			}
			w.finish(err, false)
			w.mu.Lock()
		}
		w.writing = false
		w.mu.Unlock()
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
	w.running.Wait()
}
