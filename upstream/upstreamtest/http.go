package upstreamtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Options say how a fake server behaves over HTTP.
type Options struct {
	Script

	SSE      bool // speaks HTTP+SSE of protocol 2024-11-05: GET is the stream, POST with ?session= sends
	JSON     bool // answers POST with application/json instead of a stream where it can
	Sized    bool // with JSON: says how long a response is
	Pretty   bool // spreads messages over several lines, with blanks between tokens
	EventIDs bool // gives events ids; GET with Last-Event-ID resumes
	Cut      bool // breaks the stream of each tools/call once before the response: needs EventIDs to be resumed

	// Intercept sees each request first, with its body. It returns true if it has answered.
	Intercept func(w http.ResponseWriter, r *http.Request, body []byte) bool
}

// Request holds what a Handler has received.
type Request struct {
	Method string
	Header http.Header
	Body   []byte
}

// Handler is a fake server over HTTP. Close it after the server that serves it.
type Handler struct {
	options Options
	peer    *peer
	gone    chan struct{}
	cut     chan struct{} // closed and replaced when streams that stand are to end
	once    sync.Once

	mu       sync.Mutex
	requests []Request
	sessions map[string]func([]byte) // SSE: where a session's messages go
	number   int
	parked   map[string][][]byte // what is left of streams that were cut, by event id
}

// NewHandler returns a fake server.
func NewHandler(o Options) *Handler {
	h := &Handler{
		options: o, peer: newPeer(o.Script), gone: make(chan struct{}), cut: make(chan struct{}),
		sessions: map[string]func([]byte){}, parked: map[string][][]byte{},
	}
	h.peer.die = func() { panic(http.ErrAbortHandler) }
	if o.SSE {
		h.peer.die = h.Cut
	}
	return h
}

// Close ends every request that hangs.
func (h *Handler) Close() { h.once.Do(func() { close(h.gone) }) }

// Requests returns what was received so far.
func (h *Handler) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Request(nil), h.requests...)
}

// Forget drops all sessions, as a restart does.
func (h *Handler) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.sessions)
	h.peer.mu.Lock()
	defer h.peer.mu.Unlock()
	if !h.options.Modern { // there, a subscription ends with its stream
		clear(h.peer.subscribed)
	}
}

// Cut ends all streams that stand, as proxies do.
func (h *Handler) Cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.cut)
	h.cut = make(chan struct{})
}

// AddTool adds a tool and tells those who listen.
func (h *Handler) AddTool(declaration json.RawMessage) { h.peer.addTool(declaration) }

// ReplaceTools makes these all tools that the server lists, and tells of it.
func (h *Handler) ReplaceTools(declarations ...json.RawMessage) {
	h.peer.changeTools(func([]json.RawMessage) []json.RawMessage { return declarations })
}

// Listening returns how many listen: to whom the server can say what belongs to no call.
func (h *Handler) Listening() int {
	h.peer.mu.Lock()
	defer h.peer.mu.Unlock()
	return len(h.peer.listeners)
}

// Canceled returns the ids that notifications/cancelled named, as JSON.
func (h *Handler) Canceled() []string {
	h.peer.mu.Lock()
	defer h.peer.mu.Unlock()
	return append([]string(nil), h.peer.canceled...)
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	h.requests = append(h.requests, Request{Method: r.Method, Header: r.Header.Clone(), Body: body})
	h.mu.Unlock()
	if h.options.Intercept != nil && h.options.Intercept(w, r, body) {
		return
	}
	switch {
	case h.options.SSE && r.Method == http.MethodGet:
		h.openSSE(w, r)
	case h.options.SSE && r.Method == http.MethodPost:
		h.postSSE(w, r, body)
	case r.Method == http.MethodGet:
		h.get(w, r)
	case r.Method == http.MethodPost:
		h.post(w, r, body)
	case r.Method == http.MethodDelete:
		h.mu.Lock()
		delete(h.sessions, r.Header.Get("Mcp-Session-Id"))
		h.mu.Unlock()
	default:
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	}
}

// newSession returns a fresh session id.
func (h *Handler) newSession(send func([]byte)) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number++
	id := "session-" + strconv.Itoa(h.number)
	h.sessions[id] = send
	return id
}

func (h *Handler) knows(r *http.Request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, ok := h.sessions[r.Header.Get("Mcp-Session-Id")]
	return ok
}

// goneWith is closed when the request or the handler ends.
func (h *Handler) goneWith(r *http.Request) <-chan struct{} {
	c := make(chan struct{})
	h.mu.Lock()
	cut := h.cut
	h.mu.Unlock()
	go func() {
		defer close(c)
		select {
		case <-r.Context().Done():
		case <-h.gone:
		case <-cut:
		}
	}()
	return c
}

func (h *Handler) post(w http.ResponseWriter, r *http.Request, body []byte) {
	m, ok := parse(body)
	if !ok {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	m.session = r.Header.Get("Mcp-Session-Id")
	switch {
	case h.options.Modern:
		if r.Header.Get("Mcp-Method") != m.Method && m.ID != nil {
			http.Error(w, "Mcp-Method does not match", http.StatusBadRequest)
			return
		}
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", h.newSession(nil))
	case m.Method == "server/discover":
	case !h.knows(r):
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	if m.ID == nil || m.Method == "" {
		h.peer.handle(m, r.Context().Done(), nil)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if h.options.JSON && m.Method != "subscriptions/listen" {
		h.peer.handle(m, h.goneWith(r), func(line []byte) {
			if !isResponse(line) {
				return // it has no place here
			}
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			text := h.shape(line)
			if h.options.Sized {
				w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			}
			_, _ = w.Write(text)
		})
		return
	}
	h.stream(w, r, m)
}

// stream answers a POST with server-sent events.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, m message) {
	out := newEventWriter(w, h.options.EventIDs, string(bytes.Trim(m.ID, `"`)))
	defer out.close()
	if m.Method == "subscriptions/listen" || m.Method == "tools/call" {
		out.raw(": hello\n\n")
	}
	cut := h.options.Cut && m.Method == "tools/call"
	var held [][]byte
	h.peer.handle(m, h.goneWith(r), func(line []byte) {
		if cut && isResponse(line) {
			held = append(held, line)
			return
		}
		out.event(h.shape(line))
	})
	if cut {
		id := out.stream + "/cut"
		out.raw("id: " + id + "\nretry: 10\ndata:\n\n") // an id and a short retry time alone
		h.mu.Lock()
		h.parked[id] = held
		h.mu.Unlock()
	}
}

// isResponse reports whether a message that a fake has made is a response.
func isResponse(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"jsonrpc":"2.0","id":`)) }

// get is the listening stream, or the rest of one that was cut.
func (h *Handler) get(w http.ResponseWriter, r *http.Request) {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		h.mu.Lock()
		rest, ok := h.parked[id]
		h.mu.Unlock()
		if ok {
			out := newEventWriter(w, true, "resumed-"+id)
			for _, line := range rest {
				out.event(h.shape(line))
			}
			return
		}
	}
	if h.options.Modern {
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if !h.knows(r) {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	out := newEventWriter(w, h.options.EventIDs, "get")
	defer out.close()
	defer h.peer.listen(listener{send: out.event})()
	session := r.Header.Get("Mcp-Session-Id")
	h.peer.asking.listens(session, out.event)
	defer h.peer.asking.listens(session, nil)
	out.raw(": hello\n\n") // only now: from here on whoever reads it may count on being told
	<-h.goneWith(r)
}

func (h *Handler) openSSE(w http.ResponseWriter, r *http.Request) {
	out := newEventWriter(w, false, "")
	id := h.newSession(func(line []byte) { out.event(h.shape(line)) })
	defer out.close()
	greeted := make(chan struct{})
	// before somebody counts on being told
	defer h.peer.listen(listener{send: func(line []byte) { <-greeted; out.event(line) }})()
	out.raw("event: endpoint\ndata: " + r.URL.Path + "?session=" + id + "\n\n")
	close(greeted)
	<-h.goneWith(r)
}

func (h *Handler) postSSE(w http.ResponseWriter, r *http.Request, body []byte) {
	h.mu.Lock()
	send := h.sessions[r.URL.Query().Get("session")]
	h.mu.Unlock()
	m, ok := parse(body)
	if send == nil || !ok {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	m.session = r.URL.Query().Get("session")
	w.WriteHeader(http.StatusAccepted)
	if m.ID != nil && blocks(m.Method) {
		go h.peer.handle(m, h.gone, send)
		return
	}
	h.peer.handle(m, h.gone, send)
}

// shape returns a message as the options want it on the wire.
func (h *Handler) shape(line []byte) []byte {
	var b bytes.Buffer
	if !h.options.Pretty || json.Indent(&b, line, "", "  ") != nil {
		return line
	}
	return b.Bytes()
}

// eventWriter writes server-sent events.
type eventWriter struct {
	mu     sync.Mutex
	w      http.ResponseWriter
	ids    bool
	stream string
	n      int
	closed bool // the request has ended: nothing may be written any more
}

func newEventWriter(w http.ResponseWriter, ids bool, stream string) *eventWriter {
	w.Header().Set("Content-Type", "text/event-stream")
	return &eventWriter{w: w, ids: ids, stream: stream}
}

func (e *eventWriter) raw(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	_ = http.NewResponseController(e.w).SetWriteDeadline(time.Now().Add(time.Minute)) // not reached by one that reads
	_, _ = io.WriteString(e.w, text)
	_ = http.NewResponseController(e.w).Flush()
}

func (e *eventWriter) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}

func (e *eventWriter) event(line []byte) {
	e.mu.Lock()
	e.n++
	head := ""
	if e.ids {
		head = fmt.Sprintf("id: %s/%d\n", e.stream, e.n)
	}
	e.mu.Unlock()
	data := bytes.ReplaceAll(line, []byte("\n"), []byte("\ndata: "))
	e.raw(head + "event: message\ndata: " + string(data) + "\n\n")
}
