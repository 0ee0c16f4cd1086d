//go:build e2e

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
)

// The byte-splicing proxy is the yardstick: what a process in between costs that understands nothing but message ids.
// It takes for granted what is true of the servers and clients here: ids come early, and are numbers.

// runSplice is the byte-splicing proxy.
func runSplice(spec benchSpec) error {
	server := spec.Servers[0]
	if len(spec.Servers) > 1 {
		return spliceMany(spec)
	}
	if server.URL != "" {
		if spec.Door != "http" {
			return errors.New("stdio in front of HTTP is not among the modes")
		}
		return serveBenchHTTP(&spliceHTTP{url: server.URL, transport: &http.Transport{MaxIdleConnsPerHost: 256}})
	}
	child, err := startBenchChild(server)
	if err != nil {
		return err
	}
	lines := &spliceLines{in: child.in, waiting: make(map[int64]spliceWaiter)}
	ended := make(chan error, 1)
	if spec.Door == "http" {
		go func() { ended <- lines.readAll(child.out, nil) }()
		err = serveBenchHTTP(&spliceDoor{lines: lines})
	} else {
		out := &spliceOut{w: bufio.NewWriterSize(os.Stdout, 64<<10)}
		go func() { ended <- lines.readAll(child.out, out) }()
		err = copyLines(bufio.NewReaderSize(os.Stdin, 64<<10), lines, out)
	}
	_ = child.in.Close()
	return errors.Join(err, <-ended, child.cmd.Wait())
}

// spliceMany serves many stdio servers over HTTP, each at an address of its own.
func spliceMany(spec benchSpec) error {
	mux := http.NewServeMux()
	var children []*benchChild
	ended := make(chan error, len(spec.Servers))
	for i, server := range spec.Servers {
		child, err := startBenchChild(server)
		if err != nil {
			return err
		}
		children = append(children, child)
		lines := &spliceLines{in: child.in, waiting: make(map[int64]spliceWaiter)}
		go func() { ended <- lines.readAll(child.out, nil) }()
		door := &spliceDoor{lines: lines}
		mux.Handle("/"+benchServerID(i), door)
		if i == 0 {
			mux.Handle("/mcp", door)
		}
	}
	err := serveBenchHTTP(mux)
	for _, child := range children {
		_ = child.in.Close()
		err = errors.Join(err, <-ended, child.cmd.Wait())
	}
	return err
}

// spliceHTTP copies requests and responses between HTTP and HTTP.
type spliceHTTP struct {
	url       string
	transport *http.Transport
	buffers   sync.Pool
}

func (p *spliceHTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Requests are small. Passing r.Body on would not do: the transport looks for its end while the response is written
	// already, which is when the server closes it.
	body, err := readRequest(r)
	if err != nil {
		return
	}
	out, err := http.NewRequestWithContext(r.Context(), r.Method, p.url, bytes.NewReader(body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	for _, name := range []string{"Content-Type", "Accept", "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name"} {
		if v, ok := r.Header[name]; ok {
			out.Header[name] = v
		}
	}
	resp, err := p.transport.RoundTrip(out)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = resp.Body.Close() }()
	for _, name := range []string{"Content-Type", "Content-Length", "Mcp-Session-Id", "Cache-Control"} {
		if v, ok := resp.Header[name]; ok {
			w.Header()[name] = v
		}
	}
	w.WriteHeader(resp.StatusCode)
	buf, ok := p.buffers.Get().(*[]byte)
	if !ok {
		b := make([]byte, 32<<10)
		buf = &b
	}
	defer p.buffers.Put(buf)
	_, _ = io.CopyBuffer(w, resp.Body, *buf) // one of the ends is gone
}

func readRequest(r *http.Request) ([]byte, error) {
	var body bytes.Buffer
	body.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := body.ReadFrom(r.Body)
	return body.Bytes(), err
}

// spliceLines sends messages to a stdio server under ids of its own.
type spliceLines struct {
	mu      sync.Mutex
	in      io.Writer
	next    int64
	waiting map[int64]spliceWaiter
}

// spliceWaiter takes the answer to one request, in pieces, and then done.
type spliceWaiter struct {
	id   []byte // as the client sent it
	to   io.Writer
	done func()
}

// send sends a message. The answer to a request goes to to, done is called when it is complete; the number that is
// returned is the request's id at the server, 0 for a notification.
func (s *spliceLines) send(line []byte, to io.Writer, done func()) (int64, error) {
	start, end, isRequest := idSpan(line)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !isRequest {
		_, err := s.in.Write(line)
		return 0, err
	}
	s.next++
	s.waiting[s.next] = spliceWaiter{id: bytes.Clone(line[start:end]), to: to, done: done}
	out := append(make([]byte, 0, len(line)+8), line[:start]...)
	out = strconv.AppendInt(out, s.next, 10)
	_, err := s.in.Write(append(out, line[end:]...))
	return s.next, err
}

// abandon reports whether nothing has been written to the request's writer, and nothing will be.
func (s *spliceLines) abandon(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.waiting[id]
	delete(s.waiting, id)
	return ok
}

// readAll hands out the server's messages. Those that are no answers go to rest, where there is one.
func (s *spliceLines) readAll(r *bufio.Reader, rest *spliceOut) error {
	for {
		head, err := r.ReadSlice('\n')
		if len(head) == 0 && err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		to, done := io.Discard, func() {}
		if rest != nil {
			rest.mu.Lock()
			to, done = rest.w, rest.flush
		}
		if start, end, ok := idSpan(head); ok {
			id, _ := strconv.ParseInt(string(head[start:end]), 10, 64)
			s.mu.Lock()
			w, known := s.waiting[id]
			delete(s.waiting, id)
			s.mu.Unlock()
			if known {
				to, done = w.to, w.done
				_, _ = to.Write(head[:start]) // a client that is gone misses nothing
				_, _ = to.Write(w.id)
				head = head[end:]
			}
		}
		_, _ = to.Write(head)
		for err == bufio.ErrBufferFull {
			head, err = r.ReadSlice('\n')
			_, _ = to.Write(head)
		}
		done()
	}
}

// idSpan finds the id of a message.
func idSpan(line []byte) (start, end int, ok bool) {
	head := line[:min(len(line), 64)]
	i := bytes.Index(head, []byte(`"id":`))
	if i < 0 {
		return 0, 0, false
	}
	start = i + len(`"id":`)
	for end = start; end < len(line) && line[end] >= '0' && line[end] <= '9'; end++ {
	}
	return start, end, end > start
}

// spliceOut is the proxy's stdout. mu is held while a message is written.
type spliceOut struct {
	mu sync.Mutex
	w  *bufio.Writer
}

func (o *spliceOut) flush() {
	_ = o.w.Flush() // the client is gone, and closes stdin too
	o.mu.Unlock()
}

// copyLines sends what the client writes. Answers are written under out's lock, which readAll takes.
func copyLines(in *bufio.Reader, lines *spliceLines, out *spliceOut) error {
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			if _, err := lines.send(line, out.w, out.flush); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// spliceDoor serves a stdio server over HTTP.
type spliceDoor struct {
	lines *spliceLines

	mu          sync.Mutex
	initialized []byte // the server's answer to the first initialize; it takes no second one
}

func (d *spliceDoor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "no standing stream", http.StatusMethodNotAllowed)
		return
	}
	body, err := readRequest(r)
	if err != nil {
		return
	}
	line := append(body, '\n')
	head := line[:min(len(line), 128)]
	switch _, _, isRequest := idSpan(line); {
	case !isRequest:
		w.WriteHeader(http.StatusAccepted) // of notifications there is one, and the proxy has sent it
		return
	case bytes.Contains(head, []byte(`"method":"initialize"`)):
		d.initialize(w, r, line)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	d.exchange(w, r, line)
}

func (d *spliceDoor) exchange(to io.Writer, r *http.Request, line []byte) {
	done := make(chan struct{})
	id, err := d.lines.send(line, to, func() { close(done) })
	if err != nil && d.lines.abandon(id) {
		return
	}
	select {
	case <-done:
	case <-r.Context().Done():
		if !d.lines.abandon(id) {
			<-done
		}
	}
}

func (d *spliceDoor) initialize(w http.ResponseWriter, r *http.Request, line []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.initialized == nil {
		var first bytes.Buffer
		d.exchange(&first, r, line)
		d.initialized = first.Bytes()
		if _, err := d.lines.send([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"), nil, nil); err != nil {
			return
		}
	}
	start, end, _ := idSpan(d.initialized)
	idStart, idEnd, _ := idSpan(line)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Mcp-Session-Id", "splice")
	_, _ = fmt.Fprintf(w, "%s%s%s", d.initialized[:start], line[idStart:idEnd], d.initialized[end:])
}
