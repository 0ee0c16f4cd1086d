package downstream

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// quietFor is how long a response may stay silent before the hub opens a stream and writes a comment: proxies and HTTP
// clients give up on connections that say nothing.
const quietFor = 15 * time.Second

// readWithin is how long a client may take to read one message.
const readWithin = 2 * time.Minute

// httpReply answers one lane request over HTTP. A result that comes first goes out as plain JSON; a request that has
// something to tell before its result gets an event stream.
type httpReply struct {
	id     json.RawMessage
	modern bool
	gone   <-chan struct{} // closed when the client has left; nil where nobody tells

	mu     sync.Mutex
	w      http.ResponseWriter // nil once answered
	stream bool
	timer  *time.Timer
}

func newHTTPReply(w http.ResponseWriter, id json.RawMessage, modern bool) *httpReply {
	return &httpReply{id: id, modern: modern, w: w}
}

// keepAlive starts the comments that keep a silent response open. close stops them.
func (r *httpReply) keepAlive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(quietFor, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.w == nil {
			return
		}
		r.openStream()
		r.write([]byte(": waiting\n\n"))
		r.timer.Reset(quietFor)
	})
}

// close ends the reply: nothing is written to the connection after it returns.
func (r *httpReply) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.w = nil
	if r.timer != nil {
		r.timer.Stop()
	}
}

func (r *httpReply) notify(method string, params json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w == nil {
		return
	}
	r.openStream()
	r.event(notificationText(method, params))
}

// request implements replier. An answer to a batch is one JSON text, without a place for requests.
func (r *httpReply) request(id json.RawMessage, method string, params json.RawMessage) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, batch := r.w.(*recorder)
	if r.w == nil || batch {
		return false
	}
	select {
	case <-r.gone:
		return false
	default:
	}
	r.openStream()
	r.event(requestText(id, method, params))
	return true
}

func (r *httpReply) answer(result json.RawMessage) { r.finish(http.StatusOK, answerText(r.id, result)) }

func (r *httpReply) refuse(err *tool.RPCError) {
	status := http.StatusOK
	if r.modern {
		status = statusOf(err.Code)
	}
	r.finish(status, errorText(r.id, err))
}

// abandon implements replier: an HTTP request is always answered.
func (r *httpReply) abandon() bool { return false }

// statusOf is the HTTP status that 2026-07-28 wants for an error of the protocol.
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

func (r *httpReply) finish(status int, text []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.w == nil {
		return
	}
	control := http.NewResponseController(r.w)
	_ = control.SetWriteDeadline(time.Now().Add(readWithin))
	if r.stream {
		r.event(text)
	} else {
		writeJSON(r.w, status, text)
	}
	_ = control.SetWriteDeadline(time.Time{}) // the connection may serve other requests after this one
	r.w = nil
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
}

// event writes one message. A field ends at a line break, so the text must not hold one.
func (r *httpReply) event(text []byte) {
	text, err := rawjson.Line(text)
	if err != nil {
		return
	}
	out := append(make([]byte, 0, len(text)+24), "event: message\ndata: "...)
	out = append(out, text...)
	r.write(append(out, "\n\n"...))
}

// write sends b at once. A client that is gone is noticed by the HTTP server; one that does not read loses its
// connection after a while, so that it holds up nobody.
func (r *httpReply) write(b []byte) {
	control := http.NewResponseController(r.w)
	_ = control.SetWriteDeadline(time.Now().Add(readWithin))
	if _, err := r.w.Write(b); err == nil {
		_ = control.Flush()
	}
}

// writeJSON answers a request with one JSON text.
func writeJSON(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // a client that is gone is noticed by the HTTP server
}
