package downstream

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// quietFor bounds the silence of a response. Then the hub opens a stream and writes a comment: proxies and HTTP
// clients give up on connections that say nothing.
const quietFor = 15 * time.Second

// A client has to take in so much of what it is sent within so long: then its next piece counts. One that does not read
// loses its connection, and what waited for it is free.
const (
	progressBytes  = 128 << 10
	progressWithin = 30 * time.Second
)

// httpReply answers one lane request over HTTP. A result that comes first goes out as plain JSON,
// unless the client names event streams first; a request that has something to tell before its
// result gets an event stream.
type httpReply struct {
	id     json.RawMessage
	modern bool
	inline bool          // a result that comes first goes out as plain JSON
	whole  bool          // the client takes no event stream: it is told the result alone
	call   *inflightCall // ends before the client has the answer: it may use the id again at once. Nil: none
	from   *http.Request

	mu     sync.Mutex
	w      http.ResponseWriter // nil once answered
	stream bool
	timer  *time.Timer
}

// newHTTPReply returns the reply to a request. While that is silent, comments keep the response open,
// until close.
func newHTTPReply(w http.ResponseWriter, from *http.Request, id json.RawMessage, modern bool) *httpReply {
	a := accepted(from.Header)
	r := &httpReply{id: id, modern: modern, inline: a.json && !a.streamFirst, whole: !a.stream, from: from, w: w}
	r.mu.Lock() // until the timer is there
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(quietFor, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.w == nil || r.whole {
			return
		}
		r.openStream()
		r.write(whole([]byte(": waiting\n\n")))
		r.timer.Reset(quietFor)
	})
	return r
}

// retryAfter says how many milliseconds a client of the older revisions shall wait before it connects again, should the
// connection break. The newest has no streams to come back to.
const retryAfter = "1000"

// begin opens the stream at once, for a response that may have nothing to say for long.
func (r *httpReply) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w != nil && !r.whole {
		r.openStream()
		r.write(pieces{}) // the header alone
	}
}

// close ends the reply: nothing is written to the connection after it returns.
func (r *httpReply) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.w = nil
	r.timer.Stop()
}

func (r *httpReply) notify(method string, params json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w == nil || r.whole {
		return
	}
	r.openStream()
	r.event(whole(jsonrpc.NotificationText(method, params)))
}

func (r *httpReply) request(id json.RawMessage, method string, params json.RawMessage) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w == nil || r.whole || r.from.Context().Err() != nil { // the client has left
		return false
	}
	r.openStream()
	r.event(whole(jsonrpc.RequestText(id, method, params)))
	return true
}

func (r *httpReply) answer(result pieces) (written bool) {
	return r.finish(http.StatusOK, answerText(r.id, result))
}

func (r *httpReply) refuse(err *tool.RPCError) {
	status := http.StatusOK
	if r.modern {
		status = statusOf(err.Code)
	}
	r.finish(status, whole(jsonrpc.ErrorText(r.id, err)))
}

// statusOf returns the HTTP status that 2026-07-28 wants for an error of the protocol.
func statusOf(code int64) int {
	switch code {
	case tool.CodeMethodNotFound:
		return http.StatusNotFound
	case tool.CodeInvalidParams, tool.CodeInvalidRequest, tool.CodeUnsupportedProtocol, tool.CodeMissingCapabilities,
		tool.CodeHeaderMismatch:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func (r *httpReply) finish(status int, text pieces) (written bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w == nil {
		return false
	}
	r.call.end()
	if !r.inline && status == http.StatusOK {
		r.openStream()
	}
	if r.stream {
		written = r.event(text)
	} else {
		written = writePieces(r.w, status, text)
	}
	r.w = nil
	return written
}

// openStream turns the response into an event stream, if it is none yet.
func (r *httpReply) openStream() {
	if r.stream {
		return
	}
	r.stream = true
	h := r.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	r.w.WriteHeader(http.StatusOK)
	if !r.modern {
		// sent with what follows; a client that is gone is noticed then
		_, _ = io.WriteString(r.w, "retry: "+retryAfter+"\n")
	}
}

// event writes one message. A field ends at a line break, so the text must not hold one.
func (r *httpReply) event(text pieces) (written bool) {
	text, err := text.line()
	return err == nil && r.write(text.framed([]byte("event: message\ndata: "), "\n\n"))
}

// write sends text at once. A client that is gone is noticed by the HTTP server; one that does not read loses its
// connection, so that it holds up nobody.
func (r *httpReply) write(text pieces) (written bool) { return inPieces(r.w, text, true) }

// inPieces writes text piece by piece, at once where flush is true. It reports whether the client has
// taken in each piece in time.
func inPieces(w http.ResponseWriter, text pieces, flush bool) bool {
	text = text.toDisk()
	defer text.file.Close()
	to := &progressWriter{w, *http.NewResponseController(w)}
	err := text.writeTo(to)
	if err == nil && flush {
		err = to.control.Flush()
	}
	_ = to.control.SetWriteDeadline(time.Time{}) // the connection may serve other requests after this one
	return err == nil
}

// progressWriter gives the client time for each piece.
type progressWriter struct {
	w       http.ResponseWriter
	control http.ResponseController
}

func (p *progressWriter) Write(text []byte) (written int, err error) {
	for err == nil && written < len(text) {
		_ = p.control.SetWriteDeadline(time.Now().Add(progressWithin))
		n := 0
		n, err = p.w.Write(text[written:min(len(text), written+progressBytes)])
		written += n
	}
	return written, err
}

// writeJSON answers a request with one JSON text.
func writeJSON(w http.ResponseWriter, status int, text []byte) { writePieces(w, status, whole(text)) }

// writePieces answers a request with one JSON text. written is false where the client may not have all of it.
func writePieces(w http.ResponseWriter, status int, text pieces) (written bool) {
	h, size := w.Header(), text.size()
	values := [...]string{usualType, "no-cache, no-transform", strconv.Itoa(size)}
	h["Content-Type"], h["Cache-Control"], h["Content-Length"] = values[0:1:1], values[1:2:2], values[2:3:3]
	w.WriteHeader(status)
	return inPieces(w, text, false) // a client that is gone is noticed by the HTTP server
}
