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
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// MaxDirect is the size in bytes above which a request goes through net/http, which reads while it writes: a server may
	// answer before it has taken a large request in.
	MaxDirect = 64 << 10

	maxIdleTime    = 90 * time.Second // of all connections
	maxHead        = 256 << 10        // bytes of a response's head
	unbounded      = int(^uint(0) >> 1)
	directBuffer   = 4 << 10
	maxKeptRequest = 16 << 10 // bytes of a connection's buffer for requests

	// The end of an event stream has often not come when its response has. A connection is used again if the end comes so soon.
	restTime = 50 * time.Millisecond

	// A connection that was used so shortly before is taken for open. To ask the system takes as long as to write a request.
	freshTime = 5 * time.Millisecond
)

var (
	errAborted    = errors.New("the request was given up")
	errNotWritten = errors.New("the request was not written")
	errNotYet     = errors.New("nothing to read yet")
	errHeadSize   = fmt.Errorf("the head of the response is over %d bytes", maxHead)

	lastChunk = []byte("0\r\n\r\n")
)

// Direct exchanges requests over plain HTTP/1.1 on the goroutine of the caller, which writes the request and reads the
// response. net/http has two more goroutines for each connection.
//
// A request is sent a second time in one case only: the connection had been used before, and not a byte of the request could be
// written to it. A connection that the server has closed is not used, unless it was closed within freshTime of its last answer.
type Direct struct {
	addr string
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	idle  []*directConn // the one that was used last is last
	sweep *time.Timer   // closes all once none was put back for maxIdleTime
}

// newDirect returns a Direct to u that connects as pool does, or nil where only pool can reach that: over TLS, through a proxy, by
// a name that is not ASCII, with a password, or where the system cannot tell whether a connection is still open.
func newDirect(pool *http.Transport, u *url.URL) *Direct {
	if proxy, err := pool.Proxy(&http.Request{URL: u}); proxy != nil || err != nil || !canReadAtOnce || u.Scheme != "http" ||
		u.User != nil || strings.ContainsFunc(u.Host, func(r rune) bool { return r > '~' }) {
		return nil
	}
	d := &Direct{addr: net.JoinHostPort(u.Hostname(), Port(u)), dial: pool.DialContext}
	d.sweep = time.AfterFunc(maxIdleTime, d.Close)
	return d
}

// DirectCall is a request that a Direct exchanges.
type DirectCall interface {
	PendingCall

	// Fly says what ends the request at once, without blocking, when it is given up; nil for nothing. It returns false if it was
	// given up already; then abort has been or will never be called.
	Fly(abort func()) bool

	// Append appends the request, head and body.
	Append(b []byte) []byte
}

// Aside returns a context that ends when call is given up, and not with ctx.
func Aside(ctx context.Context, call DirectCall) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if !call.Fly(cancel) {
		cancel()
	}
	return ctx, cancel
}

// Do sends the request of call and returns the answer once its head was read. Redirects are not followed.
func (d *Direct) Do(ctx context.Context, call DirectCall) (*http.Response, error) {
	for {
		c := d.take()
		used := c != nil
		if !used {
			var err error
			if c, err = d.connect(ctx, call); err != nil {
				return nil, err
			}
		}
		resp, err := c.exchange(call)
		if err == nil {
			return resp, nil
		}
		c.abort()
		if !used || !errors.Is(err, errNotWritten) {
			return nil, err
		}
	}
}

// connect opens a connection.
func (d *Direct) connect(ctx context.Context, call DirectCall) (*directConn, error) {
	ctx, cancel := Aside(ctx, call)
	defer cancel()
	conn, err := d.dial(ctx, "tcp", d.addr)
	if err != nil {
		return nil, err
	}
	c := &directConn{Conn: conn, pool: d, now: readAtOnce(conn), asked: http.Request{Method: http.MethodPost}}
	c.abort = func() { _ = conn.Close() }
	c.r = bufio.NewReaderSize(c, directBuffer)
	return c, nil
}

// take returns an idle connection that can be used, or nil.
func (d *Direct) take() *directConn {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.idle) - 1; i >= 0; i-- {
		c := d.idle[i]
		err := c.settle()
		if errors.Is(err, errNotYet) && time.Since(c.since) < restTime {
			continue
		}
		d.idle = slices.Delete(d.idle, i, i+1)
		if err == nil {
			return c
		}
		c.abort()
	}
	return nil
}

// put takes a connection back.
func (d *Direct) put(c *directConn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.idle) >= maxIdlePerHost {
		c.abort()
		return
	}
	c.since = time.Now()
	d.idle = append(d.idle, c)
	d.sweep.Reset(maxIdleTime)
}

// Close closes the idle connections.
func (d *Direct) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.idle {
		c.abort()
	}
	d.idle = nil
}

// directConn is one connection of a Direct. One request at a time uses it.
type directConn struct {
	net.Conn
	pool  *Direct
	r     *bufio.Reader             // reads the directConn itself
	now   func([]byte) (int, error) // reads what is there without waiting; 0 and nil where there is nothing
	abort func()                    // closes it
	out   []byte                    // the request

	left   int          // bytes that may still be read
	nowait bool         // reads must not wait
	rest   io.Reader    // of the last answer, whose end had not come; nil where there is none
	asked  http.Request // what is answered, as ReadResponse wants to know
	since  time.Time    // idle since
}

// Read implements io.Reader, for r.
func (c *directConn) Read(p []byte) (n int, err error) {
	if c.nowait {
		if n, err = c.now(p); n == 0 && err == nil {
			err = errNotYet
		}
		return n, err
	}
	if c.left <= 0 {
		return 0, errHeadSize
	}
	n, err = c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// settle reads the end of the last answer, and makes sure that the server has neither closed the connection nor said anything
// since, unless that is too short ago. It does not wait; errNotYet says that the last answer has not ended.
func (c *directConn) settle() error {
	c.nowait = true
	defer func() { c.nowait = false }()
	for c.rest != nil {
		text, _ := c.r.Peek(c.r.Buffered())
		if bytes.HasSuffix(text, lastChunk) {
			if _, err := io.Copy(io.Discard, c.rest); err != nil {
				return fmt.Errorf("the last answer is malformed: %v", err)
			}
			c.rest = nil
		} else if _, err := c.r.Peek(len(text) + 1); err != nil {
			return err
		}
	}
	if c.r.Buffered() == 0 && time.Since(c.since) < freshTime {
		return nil
	}
	if _, err := c.r.Peek(1); !errors.Is(err, errNotYet) {
		return errors.Join(errors.New("the server has closed the connection, or said something unasked"), err)
	}
	return nil
}

// exchange writes the request and reads the head of the answer, after those of answers before it.
func (c *directConn) exchange(call DirectCall) (*http.Response, error) {
	c.out = call.Append(c.out[:0])
	if !call.Fly(c.abort) || !call.Begin() {
		return nil, errAborted
	}
	n, err := c.Write(c.out)
	if cap(c.out) > maxKeptRequest {
		c.out = nil
	}
	if n == 0 && err != nil {
		call.TakeBack()
		return nil, errors.Join(errNotWritten, err)
	}
	c.left = maxHead
	for err == nil {
		var resp *http.Response
		resp, err = http.ReadResponse(c.r, &c.asked)
		if err == nil && resp.StatusCode >= 200 {
			c.left = unbounded
			resp.Body = &directBody{ReadCloser: resp.Body, conn: c, all: c.Conn, call: call, last: resp.Close}
			return resp, nil
		}
	}
	return nil, err
}

// directBody is the body of an answer. Closing it gives the connection back.
type directBody struct {
	io.ReadCloser
	conn *directConn // nil once it is closed
	call DirectCall
	all  net.Conn // the connection, whether it is closed or not
	last bool     // the connection cannot be used after it
	err  error    // that reading ended with
}

// Read implements io.Reader.
func (b *directBody) Read(p []byte) (n int, err error) {
	if b.conn == nil {
		return 0, http.ErrBodyReadAfterClose
	}
	n, b.err = b.ReadCloser.Read(p)
	return n, b.err
}

// Connection implements budget.Connected.
func (b *directBody) Connection() io.Closer { return b.all }

// Close implements io.Closer. The body need not have been read to its end.
func (b *directBody) Close() error {
	c := b.conn
	b.conn = nil
	switch {
	case c == nil:
	case !b.call.Fly(nil), b.last, b.err != nil && b.err != io.EOF:
		return c.Close()
	default:
		if b.err == nil {
			c.rest = b.ReadCloser
		}
		c.pool.put(c)
	}
	return nil
}
