//go:build e2e

package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// benchClient is one MCP client that costs as little as possible, so that what is measured lies beyond it.
type benchClient interface {
	// request sends a request and returns the whole response message, which is valid until the next request. One
	// request at a time.
	request(method, params string) ([]byte, error)
	// notify sends a notification.
	notify(method string) error
	close()
}

// handshake initialises c on the newest protocol revision with sessions, or the one before.
func handshake(c benchClient) error {
	const params = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`
	answer, err := c.request("initialize", params)
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	result, _ := rawjson.Get(answer, "result")
	if v, _ := rawjson.Get(result, "protocolVersion"); string(v) != quoted(rev2025) && string(v) != quoted(rev2025June) {
		return fmt.Errorf("initialize: answer %.300s", answer)
	}
	return c.notify("notifications/initialized")
}

// modernMeta holds the _meta members in which a client of 2026-07-28 describes itself, in each request.
const modernMeta = `"_meta":{` + clientMeta + `{}}`

// modernParams are params with modernMeta.
func modernParams(params string) string {
	if params == "{}" {
		return "{" + modernMeta + "}"
	}
	return params[:len(params)-1] + "," + modernMeta + "}"
}

// listAll reads all pages of tools/list and returns their results.
func listAll(c benchClient) (pages [][]byte, err error) {
	for params := "{}"; ; {
		answer, err := c.request("tools/list", params)
		if err != nil {
			return nil, fmt.Errorf("tools/list: %w", err)
		}
		result, ok := rawjson.Get(answer, "result")
		if !ok {
			return nil, fmt.Errorf("tools/list: answer %.300s", answer)
		}
		pages = append(pages, bytes.Clone(result))
		cursor, ok := rawjson.Get(result, "nextCursor")
		if !ok {
			return pages, nil
		}
		params = `{"cursor":` + string(cursor) + `}`
	}
}

// drainList reads all pages of tools/list and returns how many bytes they have. It looks for the cursor where it is
// written, behind the tools, so that the client's own reading of ten megabytes is not what is measured.
func drainList(c benchClient) (size int, err error) {
	for params := "{}"; ; {
		answer, err := c.request("tools/list", params)
		if err != nil {
			return 0, fmt.Errorf("tools/list: %w", err)
		}
		size += len(answer)
		tail := answer[max(0, len(answer)-300):]
		i := bytes.LastIndex(tail, []byte(`"nextCursor":`))
		if i < 0 {
			return size, nil
		}
		cursor, _, _ := bytes.Cut(tail[i+len(`"nextCursor":`):], []byte("}"))
		params = `{"cursor":` + string(cursor) + `}`
	}
}

// benchIDs are request ids: no two clients of a run use the same one.
type benchIDs struct{ last atomic.Int64 }

func (b *benchIDs) message(method, params string) (id int64, text string) {
	id = b.last.Add(1)
	return id, `{"jsonrpc":"2.0","id":` + strconv.FormatInt(id, 10) + `,"method":"` + method + `","params":` + params + `}`
}

// isAnswerTo reports whether answer is the response to request id. Every server here writes the id early.
func isAnswerTo(answer []byte, id int64) bool {
	start, end, ok := idSpan(answer)
	return ok && string(answer[start:end]) == strconv.FormatInt(id, 10)
}

// httpClient is a client on one keep-alive connection.
type httpClient struct {
	ids  *benchIDs
	head string // of every request, up to the session
	conn net.Conn
	// modern is whether it speaks 2026-07-28: then there is no session, and headers say what the body says.
	modern bool
	in     *bufio.Reader
	out    []byte
	body   bytes.Buffer
}

func dialHTTP(ids *benchIDs, address string) (*httpClient, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, err
	}
	return &httpClient{ids: ids, conn: conn, in: bufio.NewReaderSize(conn, 64<<10),
		head: "POST " + u.Path + " HTTP/1.1\r\nHost: " + u.Host + "\r\nContent-Type: application/json\r\n" +
			"Accept: application/json, text/event-stream\r\n"}, nil
}

func (c *httpClient) request(method, params string) ([]byte, error) {
	about := ""
	if c.modern {
		about = "Mcp-Protocol-Version: " + rev2026 + "\r\nMcp-Method: " + method + "\r\n"
		if rest, ok := strings.CutPrefix(params, `{"name":"`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			about += "Mcp-Name: " + name + "\r\n"
		}
		params = modernParams(params)
	}
	id, text := c.ids.message(method, params)
	header, err := c.post(about, text)
	if err != nil {
		return nil, err
	}
	answer := c.body.Bytes()
	if strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		answer = lastEvent(answer)
	}
	if session := header.Get("Mcp-Session-Id"); session != "" && method == "initialize" {
		version := rev2025
		if bytes.Contains(answer, []byte(quoted(rev2025June))) {
			version = rev2025June
		}
		c.head += "Mcp-Session-Id: " + session + "\r\nMcp-Protocol-Version: " + version + "\r\n"
	}
	if !isAnswerTo(answer, id) {
		return nil, fmt.Errorf("request %d was answered %.300s", id, c.body.Bytes())
	}
	return answer, nil
}

func (c *httpClient) notify(method string) error {
	_, err := c.post("", `{"jsonrpc":"2.0","method":"`+method+`"}`)
	return err
}

func (c *httpClient) close() { _ = c.conn.Close() }

// post sends one message, with these header lines more, and reads the response into body.
func (c *httpClient) post(about, text string) (http.Header, error) {
	c.out = append(append(append(c.out[:0], c.head...), about...), "Content-Length: "...)
	c.out = append(strconv.AppendInt(c.out, int64(len(text)), 10), "\r\n\r\n"...)
	c.out = append(c.out, text...)
	if _, err := c.conn.Write(c.out); err != nil {
		return nil, err
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, err
	}
	c.body.Reset()
	if n := resp.ContentLength; n > 0 {
		c.body.Grow(int(n) + bytes.MinRead)
	}
	if _, err := c.body.ReadFrom(resp.Body); err != nil {
		return nil, err
	}
	if resp.StatusCode >= 300 {
		return nil, fmt.Errorf("status %s: %.300s", resp.Status, c.body.Bytes())
	}
	return resp.Header, resp.Body.Close()
}

// lastEvent is the data of the last event: the response. Messages are written as one line.
func lastEvent(body []byte) []byte {
	i := bytes.LastIndex(body, []byte("\ndata: "))
	if i < 0 && !bytes.HasPrefix(body, []byte("data: ")) {
		return nil
	}
	data := body[max(i+1, 0)+len("data: "):]
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		data = data[:end]
	}
	return data
}

// stdioConn is the one connection to a process on pipes, which any number of clients share.
type stdioConn struct {
	ids    *benchIDs
	modern bool // it speaks 2026-07-28

	writing sync.Mutex
	in      io.Writer

	mu      sync.Mutex
	waiting map[int64]*stdioClient
	ended   bool
}

func newStdioConn(ids *benchIDs, in io.Writer, out io.Reader) *stdioConn {
	c := &stdioConn{ids: ids, in: in, waiting: make(map[int64]*stdioClient)}
	go c.readAll(bufio.NewReaderSize(out, 32<<20)) // a line is always in one piece
	return c
}

// readAll hands out responses until the process ends.
func (c *stdioConn) readAll(r *bufio.Reader) {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ended = true
			for _, w := range c.waiting {
				close(w.answered)
			}
			return
		}
		start, end, ok := idSpan(line)
		if !ok {
			continue // a notification
		}
		id, _ := strconv.ParseInt(string(line[start:end]), 10, 64)
		c.mu.Lock()
		w := c.waiting[id]
		delete(c.waiting, id)
		c.mu.Unlock()
		if w != nil {
			w.answer = append(w.answer[:0], line...)
			w.answered <- struct{}{}
		}
	}
}

func (c *stdioConn) newClient() *stdioClient {
	return &stdioClient{conn: c, answered: make(chan struct{}, 1)}
}

func (c *stdioConn) write(line string) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err := io.WriteString(c.in, line+"\n")
	return err
}

// stdioClient is one of the callers on a stdioConn.
type stdioClient struct {
	conn     *stdioConn
	answer   []byte
	answered chan struct{}
}

func (c *stdioClient) request(method, params string) ([]byte, error) {
	if c.conn.modern {
		params = modernParams(params)
	}
	id, text := c.conn.ids.message(method, params)
	c.conn.mu.Lock()
	if c.conn.ended {
		c.conn.mu.Unlock()
		return nil, errors.New("the process has ended")
	}
	c.conn.waiting[id] = c
	c.conn.mu.Unlock()
	if err := c.conn.write(text); err != nil {
		return nil, err
	}
	if _, ok := <-c.answered; !ok {
		return nil, errors.New("the process has ended")
	}
	return bytes.TrimSuffix(c.answer, []byte("\n")), nil
}

func (c *stdioClient) notify(method string) error {
	return c.conn.write(`{"jsonrpc":"2.0","method":"` + method + `"}`)
}

func (c *stdioClient) close() {}
