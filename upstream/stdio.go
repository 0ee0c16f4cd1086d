package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

const (
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

func newLineWire(in io.WriteCloser, out io.ReadCloser, limit int) *lineWire {
	w := &lineWire{
		in:    in,
		out:   out,
		lines: newLineReader(out, limit),
		queue: make(chan outMessage, maxQueuedLines),
		stop:  make(chan struct{}),
	}
	w.writing.Go(w.writeAll)
	return w
}

func (w *lineWire) read() ([]byte, error) { return w.lines.next() }

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
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// next returns the next line that is not blank, without outer white space. It is the caller's to keep. A line over the
// limit is read to its end, dropped, and reported as an *oversize. A last line without line break counts.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.line()
		var large *oversize
		if errors.As(err, &large) {
			return nil, err
		}
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			return trimmed, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// appendLarge is append for texts that may become large: doubling costs half the memory that append's growth does.
func appendLarge(to, part []byte) []byte {
	if len(part) > cap(to)-len(to) {
		to = slices.Grow(to, max(len(part), len(to)))
	}
	return append(to, part...)
}

func (l *lineReader) line() ([]byte, error) {
	var line []byte
	var skip *rawjson.Skim // not nil once the line is too large
	for {
		part, err := l.r.ReadSlice('\n')
		if skip == nil && len(line)+len(part) > l.limit {
			skip = &rawjson.Skim{}
			skip.Add(line)
			line = nil
		}
		if skip != nil {
			skip.Add(part)
		} else {
			line = appendLarge(line, part)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if skip != nil {
			return nil, newOversize(l.limit, skip)
		}
		return line, err
	}
}
