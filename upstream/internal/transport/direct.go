package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	// MaxDirect is the size in bytes above which a request goes through net/http, which reads while it writes: a server may
	// answer before it has taken a large request in.
	MaxDirect = 64 << 10

	maxIdleTime    = 90 * time.Second // of a connection
	maxHead        = 256 << 10        // bytes of a response's head
	directBuffer   = 4 << 10
	maxKeptRequest = 16 << 10 // bytes of a connection's buffer for requests

	// The end of an event stream has often not come when its response has. A connection is used again if the end comes so soon.
	restTime = 50 * time.Millisecond
)

var (
	errAborted    = errors.New("the request was given up")
	errNotWritten = errors.New("the request was not written")
	errNotYet     = errors.New("nothing to read yet")
	errHeadSize   = fmt.Errorf("the head of the response is over %d bytes", maxHead)
)

// Direct exchanges requests over plain HTTP/1.1 on the goroutine of the caller, which writes the request and reads the
// response. net/http has two more goroutines for each connection.
//
// A request is sent a second time in one case only: the connection had been used before, and not a byte of the request could be
// written to it.
type Direct struct {
	addr string
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu     sync.Mutex
	idle   []*directConn // the one that was used last is last
	sweep  *time.Timer   // closes those that nobody has used for long; nil while none is idle
	closed bool
}

// newDirect returns a Direct to u that connects as pool does, or nil where only pool can reach that: over TLS, through a proxy, by
// a name that is not ASCII, or where the system cannot tell whether a connection is still open.
func newDirect(pool *http.Transport, u *url.URL) *Direct {
	if proxy, err := pool.Proxy(&http.Request{URL: u}); proxy != nil || err != nil || !canReadAtOnce || u.Scheme != "http" ||
		!IsPlain(u.Hostname()) {
		return nil
	}
	return &Direct{addr: net.JoinHostPort(u.Hostname(), Port(u)), dial: pool.DialContext}
}

// DirectCall is a request that a Direct exchanges.
type DirectCall interface {
	Begin() bool // the request is about to be written; false if nobody waits for it any more
	TakeBack()   // not a byte of it has left after all

	// Fly says what to abort when the request is given up, nil for nothing. It returns false if the request was given up already;
	// then Abort has been or will never be called.
	Fly(f Flight) bool

	// Attend is called before what may take long and has no deadline: somebody else has to watch over the request from now on.
	Attend()

	// Append appends the request, head and body.
	Append(b []byte) []byte
}

// Flight is what a request is under way on.
type Flight interface {
	Abort()   // ends it at once. It does not block.
	Untimed() // takes its deadline away
}

// ContextFlight is a Flight that ends with a context.
type ContextFlight context.CancelFunc

// Abort implements Flight.
func (f ContextFlight) Abort() { f() }

// Untimed implements Flight: the context has no deadline.
func (f ContextFlight) Untimed() {}

// Do sends the request of call and returns the answer once its head was read. Reading the body ends at deadline, unless
// somebody attends the call. Redirects are not followed.
func (d *Direct) Do(ctx context.Context, call DirectCall, deadline time.Time) (*http.Response, error) {
	for {
		c := d.take(deadline)
		used := c != nil
		if !used {
			var err error
			if c, err = d.connect(ctx, call); err != nil {
				return nil, err
			}
		}
		if !call.Fly(c) {
			_ = c.Close()
			return nil, errAborted
		}
		resp, err := c.exchange(call)
		if err == nil {
			return resp, nil
		}
		call.Fly(nil)
		_ = c.Close()
		if !used || !errors.Is(err, errNotWritten) || errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
	}
}

// connect opens a connection.
func (d *Direct) connect(ctx context.Context, call DirectCall) (*directConn, error) {
	call.Attend()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if !call.Fly(ContextFlight(cancel)) {
		return nil, errAborted
	}
	conn, err := d.dial(ctx, "tcp", d.addr)
	if err != nil {
		return nil, err
	}
	c := &directConn{Conn: conn, pool: d, now: readAtOnce(conn), asked: http.Request{Method: http.MethodPost}}
	c.r = bufio.NewReaderSize(c, directBuffer)
	return c, nil
}

// take returns an idle connection that the server has not closed, or nil.
func (d *Direct) take(deadline time.Time) *directConn {
	var busy []*directConn // whose last answer has not ended yet
	defer func() {
		if busy != nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.idle = append(d.idle, busy...)
		}
	}()
	for {
		d.mu.Lock()
		n := len(d.idle) - 1
		if n < 0 {
			d.mu.Unlock()
			return nil
		}
		c := d.idle[n]
		d.idle[n], d.idle = nil, d.idle[:n]
		d.mu.Unlock()
		err := c.SetDeadline(deadline)
		if err == nil {
			err = c.settle()
		}
		switch idle := time.Since(c.since); {
		case err == nil && idle < maxIdleTime:
			return c
		case errors.Is(err, errNotYet) && idle < restTime:
			busy = append(busy, c)
		default:
			_ = c.Close()
		}
	}
}

// put takes a connection back.
func (d *Direct) put(c *directConn) {
	c.since = time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.idle) >= maxIdlePerHost {
		_ = c.Close()
		return
	}
	d.idle = append(d.idle, c)
	if d.sweep == nil {
		d.sweep = time.AfterFunc(maxIdleTime, d.closeOld)
	}
}

// closeOld closes the connections that nobody has used for long.
func (d *Direct) closeOld() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.idle = slices.DeleteFunc(d.idle, func(c *directConn) bool {
		old := d.closed || time.Since(c.since) >= maxIdleTime
		if old {
			_ = c.Close()
		}
		return old
	})
	d.sweep = nil
	if len(d.idle) > 0 {
		d.sweep = time.AfterFunc(maxIdleTime/2, d.closeOld)
	}
}

// Close closes the idle connections, and the others once they are not used any more.
func (d *Direct) Close() {
	d.mu.Lock()
	d.closed = true
	if d.sweep != nil {
		d.sweep.Stop()
	}
	d.mu.Unlock()
	d.closeOld()
}

// directConn is one connection of a Direct. One request at a time uses it.
type directConn struct {
	net.Conn
	pool *Direct
	r    *bufio.Reader             // reads c itself
	now  func([]byte) (int, error) // reads what is there without waiting; 0 and nil where there is nothing
	out  []byte                    // the request

	failed error        // of the last read that failed
	left   int          // bytes that may still be read
	nowait bool         // reads must not wait
	rest   io.Reader    // of the last answer, whose end had not come; nil where there is none
	asked  http.Request // what is answered, as ReadResponse wants to know
	since  time.Time    // idle since
}

// Abort implements Flight.
func (c *directConn) Abort() { _ = c.Close() }

// Untimed implements Flight.
func (c *directConn) Untimed() { _ = c.SetDeadline(time.Time{}) }

// Read implements io.Reader, for r.
func (c *directConn) Read(p []byte) (n int, err error) {
	if c.left <= 0 {
		return 0, errHeadSize
	}
	p = p[:min(len(p), c.left)]
	if !c.nowait {
		n, err = c.Conn.Read(p)
	} else if n, err = c.now(p); n == 0 && err == nil {
		err = errNotYet
	}
	c.left -= n
	c.failed = err
	return n, err
}

// unbounded is more than any body.
const unbounded = int(^uint(0) >> 1)

// settle reads the end of the last answer, and makes sure that the server has neither closed the connection nor said anything
// since. It does not wait; errNotYet says that the last answer has not ended.
func (c *directConn) settle() error {
	c.nowait, c.left = true, directBuffer
	defer func() { c.nowait = false }()
	var err error
	for err == nil {
		_, err = c.r.Peek(c.r.Buffered() + 1)
	}
	if !errors.Is(err, errNotYet) {
		return err
	}
	if c.rest != nil {
		if text, _ := c.r.Peek(c.r.Buffered()); !bytes.HasSuffix(text, []byte("0\r\n\r\n")) {
			return errNotYet
		}
		if _, err := io.Copy(io.Discard, c.rest); err != nil {
			return fmt.Errorf("the last answer is malformed: %v", err)
		}
		c.rest = nil
	}
	if c.r.Buffered() > 0 {
		return errors.New("the server has said something unasked")
	}
	return nil
}

// exchange writes the request and reads the head of the answer.
func (c *directConn) exchange(call DirectCall) (*http.Response, error) {
	c.out = call.Append(c.out[:0])
	if !call.Begin() {
		return nil, errAborted
	}
	n, err := c.Write(c.out)
	if cap(c.out) > maxKeptRequest {
		c.out = nil
	}
	if err != nil {
		if n == 0 {
			call.TakeBack()
			err = errors.Join(errNotWritten, err)
		}
		return nil, err
	}
	c.left = maxHead
	resp, err := c.readAnswer(call)
	c.left = unbounded
	return resp, c.cause(err)
}

// readAnswer reads the head of the answer to call, after those of answers before it.
func (c *directConn) readAnswer(call DirectCall) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(c.r, &c.asked)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			last := resp.Close || resp.StatusCode < 200
			resp.Body = &directBody{conn: c, call: call, text: resp.Body, last: last, stream: resp.ContentLength < 0}
			return resp, nil
		}
	}
}

// cause is why reading failed with err, of which ReadResponse may have made another one.
func (c *directConn) cause(err error) error {
	if err != nil && err != io.EOF && c.failed != nil && c.failed != io.EOF {
		return c.failed
	}
	return err
}

// directBody is the body of an answer. Closing it gives the connection back.
type directBody struct {
	conn   *directConn
	call   DirectCall
	text   io.Reader
	last   bool  // the connection cannot be used after it
	stream bool  // it is chunked, or lasts until the connection ends
	err    error // that reading ended with
	closed bool
}

// IsDirect reports whether body came over a Direct, so that closing it does not take the connection with it.
func IsDirect(body io.Reader) bool {
	_, ok := body.(*directBody)
	return ok
}

// Read implements io.Reader.
func (b *directBody) Read(p []byte) (n int, err error) {
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err = b.text.Read(p)
	b.err = b.conn.cause(err)
	return n, b.err
}

// Close implements io.Closer. A chunked body need not have been read to its end.
func (b *directBody) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	whole := b.err == io.EOF || b.text == http.NoBody
	if !b.call.Fly(nil) || b.last || !whole && (b.err != nil || !b.stream) {
		return b.conn.Close()
	}
	if !whole {
		b.conn.rest = b.text
	}
	b.conn.pool.put(b.conn)
	return nil
}

// isToken reports whether text can be the name of a header.
func isToken(text string) bool {
	for i := range len(text) {
		if b := text[i]; (b|0x20 < 'a' || b|0x20 > 'z') && (b < '0' || b > '9') && b != '-' && b != '_' {
			return false
		}
	}
	return text != ""
}

// IsPlain reports whether text can be the value of a header, and is ASCII.
func IsPlain(text string) bool {
	for i := range len(text) {
		if b := text[i]; b != '\t' && (b < ' ' || b > '~') {
			return false
		}
	}
	return true
}
