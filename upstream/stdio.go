package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

const (
	maxLine        = 64 << 20 // bytes of one message on stdio or SSE
	maxQueuedLines = 4096
	maxQueuedBytes = 64 << 20
)

// errQueueFull means that a server does not take in what it is sent.
var errQueueFull = errors.New("the server does not read its input")

// lineWire is the wire to a child process: one message a line. A goroutine of its own writes, so that a child that does
// not read its input blocks nobody but itself.
type lineWire struct {
	in    io.WriteCloser // the child's stdin
	out   io.ReadCloser  // the child's stdout
	lines *lineReader

	queue   chan outMessage
	queued  atomic.Int64 // bytes
	stop    chan struct{}
	once    sync.Once
	writing sync.WaitGroup
}

func newLineWire(in io.WriteCloser, out io.ReadCloser) *lineWire {
	w := &lineWire{
		in:    in,
		out:   out,
		lines: newLineReader(out, maxLine),
		queue: make(chan outMessage, maxQueuedLines),
		stop:  make(chan struct{}),
	}
	w.writing.Go(w.writeAll)
	return w
}

func (w *lineWire) read() (received, error) { return w.lines.next() }

func (w *lineWire) post(m outMessage) error {
	if w.queued.Add(int64(len(m.data))) > maxQueuedBytes && len(w.queue) > 0 {
		w.queued.Add(-int64(len(m.data)))
		return errQueueFull
	}
	select {
	case <-w.stop:
		return errClosed
	default:
	}
	select {
	case w.queue <- m:
		return nil
	default:
		w.queued.Add(-int64(len(m.data)))
		return errQueueFull
	}
}

// writeAll writes queued messages, several with one system call where they wait.
func (w *lineWire) writeAll() {
	buf := bufio.NewWriterSize(w.in, 64<<10)
	var unflushed []outMessage
	for {
		var m outMessage
		select {
		case <-w.stop:
			return
		case m = <-w.queue:
		}
		w.queued.Add(-int64(len(m.data)))
		if m.start() {
			_, _ = buf.Write(m.data) // bufio keeps the error for Flush
			_ = buf.WriteByte('\n')
			unflushed = append(unflushed, m)
		}
		if len(w.queue) > 0 && buf.Buffered() > 0 {
			continue
		}
		err := buf.Flush()
		for _, m := range unflushed {
			m.finish(err)
		}
		clear(unflushed)
		unflushed = unflushed[:0]
		if err != nil {
			// The child has closed its stdin or died; the reader finds the end of its stdout. Until then, what is
			// posted is answered here.
			w.refuse(err)
			return
		}
	}
}

// refuse answers everything that is posted from now on with err.
func (w *lineWire) refuse(err error) {
	for {
		select {
		case <-w.stop:
			return
		case m := <-w.queue:
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

// lineReader reads lines of at most limit bytes.
type lineReader struct {
	r     *bufio.Reader
	limit int
	from  memories
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next line that is not blank, without outer white space. It is the caller's to keep. A line over the
// limit is read to its end, dropped, and reported as errSkipped. A last line without line break counts.
func (l *lineReader) next() (received, error) {
	for {
		line, err := l.line()
		if errors.Is(err, errSkipped) {
			return received{}, err
		}
		if trimmed := bytes.TrimSpace(line.bytes); len(trimmed) > 0 {
			return line.received(trimmed), nil
		}
		if err != nil {
			return received{}, err
		}
	}
}

func (l *lineReader) line() (gathering, error) {
	line := gathering{from: &l.from}
	skip := false
	for {
		part, err := l.r.ReadSlice('\n')
		if !skip && len(line.bytes)+len(part) > l.limit {
			skip, line = true, gathering{}
		}
		if !skip {
			line.append(part)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if skip {
			return gathering{}, errSkipped
		}
		return line, err
	}
}
