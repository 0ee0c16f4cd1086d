package transport

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

const directRequest = "POST /mcp HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\n{}"

// directCall is a DirectCall as pendingRequest is one.
type directCall struct {
	text string

	mu      sync.Mutex
	begun   int
	back    int
	aborted bool
	flight  func()
}

func (c *directCall) Begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun++
	return !c.aborted
}

func (c *directCall) TakeBack() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.back++
}

func (c *directCall) Fly(abort func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flight = abort
	return !c.aborted
}

func (c *directCall) Fail(error) {}

func (c *directCall) Append(b []byte) []byte { return append(b, c.text...) }

func (c *directCall) abort() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.aborted = true
	if c.flight != nil {
		c.flight()
	}
}

// rawServer answers connections with what serve writes.
func rawServer(t *testing.T, serve func(conn net.Conn, r *bufio.Reader)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			go func() {
				defer func() { _ = conn.Close() }()
				serve(conn, bufio.NewReader(conn))
			}()
		}
	})
	return l.Addr().String()
}

// readOne reads one request, and reports whether there was one.
func readOne(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err == nil {
		_, err = io.Copy(io.Discard, req.Body)
	}
	return err == nil
}

func directTo(t *testing.T, addr string) *Direct {
	d := newDirect(&http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
		DialContext: (&net.Dialer{}).DialContext}, &url.URL{Scheme: "http", Host: addr})
	if d == nil {
		t.Skip("this system has no Direct")
	}
	t.Cleanup(d.Close)
	return d
}

// seen is what a client makes of an answer.
type seen struct {
	status int
	media  string
	body   string
	failed bool // to read the head or the body
}

func look(resp *http.Response, err error) seen {
	if err != nil {
		return seen{failed: true}
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	return seen{status: resp.StatusCode, media: MediaType(resp), body: string(body), failed: err != nil}
}

func (d *Direct) idleNow() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.idle)
}

// age makes the idle connections so old that nobody takes them for open unseen.
func (d *Direct) age() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.idle {
		c.since = c.since.Add(-freshTime)
	}
}

// TestDirectAnswers gives answers of all kinds to a Direct and to net/http, which must make the same of them, and checks which
// connections are used again.
func TestDirectAnswers(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for _, tt := range []struct {
		name, answer string
		again        bool
	}{
		{"length", head + "Content-Length: 2\r\n\r\n{}", true},
		{"chunked", head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", true},
		{"chunk extension", head + "Transfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\n\r\n", true},
		{"trailer", head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nA: b\r\n\r\n", true},
		{"announced trailer", head + "Trailer: A\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nA: b\r\n\r\n", true},
		{"truncated", head + "Content-Length: 3\r\n\r\n{}", false},
		{"truncated chunk", head + "Transfer-Encoding: chunked\r\n\r\n3\r\n{}", false},
		{"truncated after a chunk", head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", false},
		{"truncated before the last line", head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n", false},
		{"more than its length", head + "Content-Length: 2\r\n\r\n{}{}", false},
		{"more than its chunk", head + "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n", false},
		{"chunk without size", head + "Transfer-Encoding: chunked\r\n\r\n\r\n{}\r\n0\r\n\r\n", false},
		{"chunk of bad size", head + "Transfer-Encoding: chunked\r\n\r\nxy\r\n{}\r\n0\r\n\r\n", false},
		{"chunk of huge size", head + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n{}", false},
		{"chunk lines end in LF", head + "Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n", false},
		{"flood of extensions", head + "Transfer-Encoding: chunked\r\n\r\n" +
			strings.Repeat("1;"+strings.Repeat("x", 2000)+"\r\n{\r\n", 20) + "0\r\n\r\n", false},
		{"both headers", head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true},
		{"two lengths", head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}{", false},
		{"the same length twice", head + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", true},
		{"negative length", head + "Content-Length: -2\r\n\r\n{}", false},
		{"signed length", head + "Content-Length: +2\r\n\r\n{}", false},
		{"no length", head + "\r\n{}", false},
		{"close", head + "Connection: close\r\nContent-Length: 2\r\n\r\n{}", false},
		{"keep-alive", head + "Connection: keep-alive\r\nKeep-Alive: max=1\r\nContent-Length: 2\r\n\r\n{}", true},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", false},
		{"HTTP/1.0 without length", "HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n{}", false},
		{"HTTP/1.0 keep-alive", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}", true},
		{"100 before", "HTTP/1.1 100 Continue\r\n\r\n" + head + "Content-Length: 2\r\n\r\n{}", true},
		{"103 before", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + head + "Content-Length: 2\r\n\r\n{}", true},
		{"too many before", strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 10000) + head + "Content-Length: 2\r\n\r\n{}", false},
		{"202", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", true},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", true},
		{"404", "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", true},
		{"large head", head + "X: " + strings.Repeat("x", 100<<10) + "\r\nContent-Length: 2\r\n\r\n{}", true},
		{"head over the limit", head + "X: " + strings.Repeat("x", 300<<10) + "\r\nContent-Length: 2\r\n\r\n{}", false},
		{"flood of headers", head + strings.Repeat("X: y\r\n", 100<<10) + "Content-Length: 2\r\n\r\n{}", false},
		{"LF head", strings.ReplaceAll(head, "\r", "") + "Content-Length: 2\n\n{}", true},
		{"folded header", head + "X: a\r\n b\r\nContent-Length: 2\r\n\r\n{}", true},
		{"space before colon", head + "Content-Length : 2\r\n\r\n{}", false},
		{"empty header", head + "X:\r\nContent-Length: 2\r\n\r\n{}", true},
		{"types", head + "Content-Type: text/event-stream\r\nContent-Length: 2\r\n\r\n{}", true},
		{"binary header", head + "X: \x01\r\nContent-Length: 2\r\n\r\n{}", false},
		{"no HTTP", "hello\r\n\r\n", false},
		{"nothing", "", false},
		{"half a head", head, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addr := rawServer(t, func(conn net.Conn, r *bufio.Reader) {
				if !readOne(r) {
					return
				}
				_, _ = io.WriteString(conn, tt.answer)
				if tt.again {
					_, _ = io.Copy(io.Discard, conn)
				}
			})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			std := &http.Transport{DisableKeepAlives: !tt.again, MaxResponseHeaderBytes: maxHead}
			defer std.CloseIdleConnections()
			want := look(std.RoundTrip(req))
			d := directTo(t, addr)
			got := look(d.Do(t.Context(), &directCall{text: directRequest}))
			if want.failed && got.failed {
				got.body, want.body = "", "" // how far it was read is all the same
			}
			if got != want {
				t.Errorf("Direct: %.300q, net/http: %.300q", fmt.Sprint(got), fmt.Sprint(want))
			}
			d.age()
			if c := d.take(); (c != nil) != tt.again {
				t.Errorf("connection can be used again: %v", c != nil)
			} else if c != nil {
				_ = c.Close()
			}
		})
	}
}

// TestDirectIsCutShort aborts calls in each phase.
func TestDirectIsCutShort(t *testing.T) {
	t.Parallel()
	const chunked = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
	for _, phase := range []struct{ name, answer string }{
		{"dial", ""},
		{"write", ""},
		{"before the head", ""},
		{"between", "HTTP/1.1 100 Continue\r\n\r\n"},
		{"head", "HTTP/1.1 200 OK\r\nContent-"},
		{"head of another kind", "HTTP/1.1 404 Not Found\r\nContent-"},
		{"body", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{"},
		{"body of another kind", "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{"},
		{"chunk", chunked + "2\r\n{"},
		{"between chunks", chunked + "1\r\n{\r\n"},
		{"last line", chunked + "2\r\n{}\r\n0\r\n"},
	} {
		t.Run(phase.name, func(t *testing.T) {
			t.Parallel()
			closed, reached := make(chan struct{}), make(chan struct{}, 1)
			addr := rawServer(t, func(conn net.Conn, r *bufio.Reader) {
				if readOne(r) {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 0\r\n\r\n")
				}
				if readOne(r) {
					_, _ = io.WriteString(conn, phase.answer)
					reached <- struct{}{}
				}
				_, _ = io.Copy(io.Discard, r)
				close(closed)
			})
			d := directTo(t, addr)
			call := &directCall{text: directRequest}
			switch phase.name {
			case "dial":
				close(closed)
				d.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
					reached <- struct{}{}
					<-ctx.Done()
					return nil, ctx.Err()
				}
			case "write":
				close(closed)
				near, far := net.Pipe()
				defer func() { _ = far.Close() }()
				d.dial = func(context.Context, string, string) (net.Conn, error) { return near, nil }
				reached <- struct{}{}
			default: // a connection that was used before
				_ = look(d.Do(t.Context(), &directCall{text: directRequest}))
			}
			go func() {
				<-reached
				time.Sleep(5 * time.Millisecond)
				call.abort()
			}()
			resp, err := d.Do(t.Context(), call)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			if err == nil || (phase.name == "dial") != (call.begun == 0) {
				t.Errorf("begun %d times, error: %v", call.begun, err)
			}
			<-closed
			if n := d.idleNow(); n != 0 {
				t.Errorf("%d connections are idle", n)
			}
		})
	}
}

// brittleConn is a connection whose writes fail from the second on, after so many bytes.
type brittleConn struct {
	*net.TCPConn
	after  int
	writes atomic.Int32
}

func (c *brittleConn) Write(p []byte) (int, error) {
	if c.writes.Add(1) == 1 {
		return c.TCPConn.Write(p)
	}
	n, _ := c.TCPConn.Write(p[:c.after])
	return n, io.ErrClosedPipe
}

// TestDirectSendsOnce checks what becomes of a request when the connection that it was to travel on breaks: it is sent again
// where not a byte has left, and never otherwise.
func TestDirectSendsOnce(t *testing.T) {
	t.Parallel()
	const answer = "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 0\r\n\r\n"
	for _, tt := range []struct {
		name   string
		second func(conn net.Conn, r *bufio.Reader) // what the first connection does after one answer
		after  int                                  // bytes that the second write gets out; negative: all
		want   int                                  // requests that the server has read in full
		fails  bool
	}{
		{"closed while idle", func(conn net.Conn, _ *bufio.Reader) { _ = conn.Close() }, -1, 2, false},
		{"speaks while idle", func(conn net.Conn, _ *bufio.Reader) { _, _ = io.WriteString(conn, answer) }, -1, 2, false},
		{"closed once the request is there", nil, -1, 2, true},
		{"nothing written", nil, 0, 2, false},
		{"one byte written", nil, 1, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var requests, conns atomic.Int32
			idle := make(chan struct{})
			addr := rawServer(t, func(conn net.Conn, r *bufio.Reader) {
				if !readOne(r) {
					return
				}
				requests.Add(1)
				_, _ = io.WriteString(conn, answer)
				if conns.Add(1) > 1 {
					return
				}
				if tt.second != nil {
					tt.second(conn, r)
					close(idle)
					_, _ = io.Copy(io.Discard, conn)
					return
				}
				close(idle)
				if readOne(r) {
					requests.Add(1)
				}
			})
			d := directTo(t, addr)
			if dial := d.dial; tt.after >= 0 {
				d.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, err := dial(ctx, network, addr)
					if err != nil {
						return nil, err
					}
					return &brittleConn{TCPConn: c.(*net.TCPConn), after: tt.after}, nil
				}
			}
			if got := look(d.Do(t.Context(), &directCall{text: directRequest})); got.failed {
				t.Fatal("the first request failed")
			}
			<-idle
			if tt.second != nil {
				for d.idle[0].settle() == nil { // until what it did has arrived
					time.Sleep(time.Millisecond)
				}
			}
			call := &directCall{text: directRequest}
			if got := look(d.Do(t.Context(), call)); got.failed != tt.fails {
				t.Errorf("the second request failed: %v", got.failed)
			}
			if n := int(requests.Load()); n != tt.want {
				t.Errorf("the server has read %d requests, not %d", n, tt.want)
			}
			if sent := call.begun - call.back; sent != 1 {
				t.Errorf("the request counts as sent %d times", sent)
			}
		})
	}
}

// TestDirectStream checks that a connection is used again once the event stream has ended whose response was taken, and given
// up where that lasts.
func TestDirectStream(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, end string
		again     bool
	}{
		{"ends", "0\r\n\r\n", true},
		{"another event", "9\r\ndata: x\n\n\r\n0\r\n\r\n", true},
		{"does not end", "", false},
		{"ends malformed", "x\r\n", false},
		{"goes on and on", "8000\r\n" + strings.Repeat("x", 0x8000) + "\r\n8000\r\n" + strings.Repeat("x", 0x8000) +
			"\r\n8000\r\n" + strings.Repeat("x", 0x8000) + "\r\n0\r\n\r\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			addr := rawServer(t, func(conn net.Conn, r *bufio.Reader) {
				if !readOne(r) {
					return
				}
				_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"+
					"a\r\ndata: {}\n\n\r\n")
				<-over
				_, _ = io.WriteString(conn, tt.end)
				_, _ = io.Copy(io.Discard, conn)
			})
			d := directTo(t, addr)
			resp, err := d.Do(t.Context(), &directCall{text: directRequest})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			last := d.idle[0]
			last.since = time.Now().Add(time.Hour) // however long this takes
			if c := d.take(); c != nil {
				t.Error("a connection is used before its stream has ended")
			}
			if n := d.idleNow(); n != 1 {
				t.Fatalf("%d connections wait for their streams' end", n)
			}
			close(over)
			for tt.again && last.settle() != nil { // until the end has arrived
				time.Sleep(time.Millisecond)
			}
			last.since = time.Now().Add(-restTime)
			c := d.take()
			if (c != nil) != tt.again {
				t.Errorf("connection can be used again: %v", c != nil)
			}
			if c != nil {
				_ = c.Close()
			}
			if n := d.idleNow(); n != 0 {
				t.Errorf("%d connections are left", n)
			}
		})
	}
}

// TestDirectKeepsFew checks the bounds of idle connections: how many, and how long.
func TestDirectKeepsFew(t *testing.T) {
	t.Parallel()
	addr := rawServer(t, func(conn net.Conn, r *bufio.Reader) {
		for {
			if !readOne(r) {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\nContent-Length: 0\r\n\r\n")
		}
	})
	d := directTo(t, addr)
	var all []*http.Response
	for range maxIdlePerHost + 5 {
		resp, err := d.Do(t.Context(), &directCall{text: directRequest})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, resp)
	}
	for _, resp := range all {
		_, _ = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		_ = resp.Body.Close() // twice is harmless
	}
	if n := d.idleNow(); n != maxIdlePerHost {
		t.Errorf("%d connections are idle", n)
	}
	d.sweep.Reset(0)
	for d.idleNow() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// TestDirectIsForPlainHTTP checks which servers are reached directly.
func TestDirectIsForPlainHTTP(t *testing.T) {
	t.Parallel()
	if !canReadAtOnce {
		t.Skip("this system has no Direct")
	}
	for raw, want := range map[string]string{
		"http://127.0.0.1:80/mcp":        "127.0.0.1:80",
		"http://[::1]:8080/mcp":          "[::1]:8080",
		"http://[fe80::1%25eth0]:80/mcp": "[fe80::1%eth0]:80",
		"http://example.com/mcp":         "example.com:80",
		"https://example.com/mcp":        "",
		"http://bücher.example/mcp":      "",
		"http://user@example.com/mcp":    "",
		"http://proxied.example/mcp":     "",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		d := newDirect(&http.Transport{Proxy: func(r *http.Request) (*url.URL, error) {
			if r.URL.Hostname() == "proxied.example" {
				return &url.URL{Scheme: "http", Host: "proxy.example"}, nil
			}
			return nil, nil
		}}, u)
		if got := ""; d != nil {
			if got = d.addr; got != want {
				t.Errorf("%s: %q", raw, got)
			}
		} else if want != "" {
			t.Errorf("%s: not direct", raw)
		}
	}
}

// TestDirectHead checks that a server gets the same head over both ways.
func TestDirectHead(t *testing.T) {
	t.Parallel()
	type request struct {
		host, uri, body string
		header          http.Header
	}
	got := make(chan request, 2)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Header.Del("Accept-Encoding") // which net/http alone sends
		got <- request{host: r.Host, uri: r.RequestURI, body: string(body), header: r.Header}
		w.Header().Set("Content-Type", "application/json")
	}))
	defer srv.Close()
	addr := strings.TrimPrefix(srv.URL, "http://")
	for _, tt := range []struct {
		url     string
		headers map[string]string
		direct  bool
	}{
		{"http://" + addr + "/mcp?a=b%20c#x", nil, true},
		{"http://" + addr, map[string]string{"authorization": "Bearer x", "X-Key": "a\tb", "Content-Length": "7"}, true},
		{"http://user:pass@" + addr + "/mcp", nil, false},
		{"http://" + addr + "/%2Fmcp", map[string]string{"Host": "other.example", "User-Agent": "me"}, true},
		{"http://user@" + addr + "/mcp", map[string]string{"Authorization": "mine"}, false},
		{"http://" + addr, map[string]string{"Expect": "100-continue"}, false},
		{"http://" + addr, map[string]string{"Connection": "close"}, false},
		{"http://" + addr, map[string]string{"mcp-name": "x"}, false},
		{"http://" + addr, map[string]string{"X-Name": "ü"}, true},
	} {
		s, err := NewHTTP(settings.Server{URL: tt.url, Headers: tt.headers}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		newRequest := func(body string) *http.Request {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL.String(), strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", "application/json")
			req.Header.Set("Mcp-Session-Id", "7")
			return req
		}
		head := s.Head(newRequest(""))
		if (head != nil) != (tt.direct && canReadAtOnce) {
			t.Errorf("%v %v: head is %q", tt.url, tt.headers, head)
		}
		if head == nil {
			continue
		}
		resp, err := s.Client(s.Pool).Do(newRequest("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		want := <-got
		call := &directCall{text: string(head) + "Content-Length: 2\r\n\r\n{}"}
		if seen := look(s.Direct.Do(t.Context(), call)); seen.status != http.StatusOK || seen.failed {
			t.Fatalf("%+v", seen)
		}
		if have := <-got; fmt.Sprint(have) != fmt.Sprint(want) {
			t.Errorf("Direct sends %v, net/http %v", have, want)
		}
	}
}
