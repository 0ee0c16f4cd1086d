package downstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
)

// Header names of the protocol.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
)

// DirectView returns the name under which the surface of one server, with its native names, is served. No profile of a config
// has such a name.
func DirectView(server string) string { return directPrefix + server }

const directPrefix = "s/"

// Handler serves the hub over HTTP:
//
//	/mcp            the default profile, Streamable HTTP, all protocol revisions
//	/mcp/p/NAME     profile NAME
//	/mcp/s/SERVER   the direct view of SERVER
//	…?names=STYLE   the same, with names in that style
//	/health/live    200 as long as the process serves
//	/health/ready   JSON: state of the hub and of each upstream server
func (s *Server) Handler() http.Handler {
	in := &guard{config: s.cfg}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/live", s.live)
	mux.Handle("GET /health/ready", in.checkHost(http.HandlerFunc(s.ready)))
	mux.Handle("GET /{$}", in.checkHost(http.HandlerFunc(tellPerson)))
	named := func(w http.ResponseWriter, r *http.Request, profile, absent string) {
		ps := s.settings.Load().profiles[profile]
		if ps == nil {
			http.Error(w, absent, http.StatusNotFound)
			return
		}
		ps.door.ServeHTTP(w, r)
	}
	mux.Handle("/mcp", in.clients(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.settings.Load().first.door.ServeHTTP(w, r)
	})))
	mux.Handle("/mcp/p/{profile}", in.clients(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("profile")
		if strings.HasPrefix(name, directPrefix) { // an encoded slash
			name = ""
		}
		named(w, r, name, "no such profile: the hub's config names its profiles")
	})))
	mux.Handle("/mcp/s/{server}", in.clients(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.cfg().HTTP.NoDirectViews {
			http.Error(w, "direct views are off: set hub.http.direct_views in the hub's config", http.StatusNotFound)
			return
		}
		named(w, r, DirectView(r.PathValue("server")), "no such server: the hub's config names its servers")
	})))
	return limitBody(mux)
}

// isBrowser reports whether a person looks at an address with a browser: no MCP client wants HTML.
func isBrowser(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") &&
		!strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// tellPerson says what is here. "The server MUST either return Content-Type: text/event-stream in response to this HTTP GET,
// or else return HTTP 405 Method Not Allowed" holds for the addresses of clients.
func tellPerson(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	where := "/mcp at this address"
	if r.URL.Path != "/" {
		where = "this address"
		w.Header().Set("Allow", "GET, POST, DELETE")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
	fmt.Fprintf(w, "This is mcp-toolhub. It is for MCP clients, which connect to %s.\n", where)
}

// bodyWithin bounds the time that a client takes to send the body of a request.
const bodyWithin = 30 * time.Second

// limitBody ends connections whose request body does not come, so that nobody can hold one without even a token. Whoever
// has read the body lifts the limit, because the connection may then stay open for a long answer.
func limitBody(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin))
		}
		next.ServeHTTP(w, r)
	})
}

// readBody reads a POST's body, or answers the request and returns ok false.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		http.Error(w, "Content-Type must be application/json", http.StatusUnsupportedMediaType)
		return nil, false
	}
	if !accepts(r, "application/json") || !accepts(r, "text/event-stream") {
		http.Error(w, "Accept must contain both application/json and text/event-stream", http.StatusBadRequest)
		return nil, false
	}
	limit := s.cfg().HTTP.MaxBodyBytes
	var buf bytes.Buffer
	if n := r.ContentLength; n > 0 && n <= limit {
		buf.Grow(int(n) + bytes.MinRead)
	}
	_, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		s.deps.Logger.Warn("a client's message was refused: it is over a limit", "limit", "hub.limits.client_message or hub.http.max_body_bytes",
			"bytes", large.Limit)
		writeJSON(w, http.StatusRequestEntityTooLarge, jsonrpc.ErrorText(nil, jsonrpc.InvalidRequest(fmt.Sprintf("the message has more than %d bytes "+
			"(hub.limits.client_message, or over HTTP hub.http.max_body_bytes): send less, or raise that in the hub's config", large.Limit))))
		return nil, false
	case err != nil:
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return nil, false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return buf.Bytes(), true
}

func accepts(r *http.Request, media string) bool {
	kind, _, _ := strings.Cut(media, "/")
	for _, value := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(value, ",") {
			part, _, _ = strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(part)) {
			case media, kind + "/*", "*/*":
				return true
			}
		}
	}
	return false
}

// withBody returns r with body to be read again.
func withBody(r *http.Request, body []byte) *http.Request {
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	return r
}
