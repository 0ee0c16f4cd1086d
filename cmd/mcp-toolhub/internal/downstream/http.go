package downstream

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Header names of the protocol.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
)

// DirectView returns the name under which the surface of one server, with its native names, is
// served. No profile of a config has such a name.
func DirectView(server string) string { return directPrefix + server }

const directPrefix = "s/"

// Handler serves the hub over HTTP, with a server whose ConnContext is that of this package:
//
//	/mcp            the default profile, Streamable HTTP, all protocol revisions
//	/mcp/p/NAME     profile NAME
//	/mcp/s/SERVER   the direct view of SERVER
//	…?names=STYLE   the same, with names in that style
//	/tools          what a person is told of one tool that the caller sees
//	/sign-in/…      pages on which people sign in to servers
//	/sign-ins/…     begins such a sign-in
//	/ui/            the page for people; / leads there
//	/events         server-sent events: what happens to the calls of all callers
//	/register       says to OAuth clients which header they need instead of a sign-in
//	/metrics        what Prometheus reads, for holders of a token where there are tokens
//	/health/live    200 as long as the process serves
//	/health/ready   JSON: state of the hub and of each upstream server
func (s *Server) Handler() http.Handler {
	g := &guard{server: s}
	clients := func(serve func(http.ResponseWriter, *entry)) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if in, ok := g.admit(w, r); ok {
				serve(w, in)
			}
		}
	}
	named := func(w http.ResponseWriter, in *entry, profile, absent string) {
		ps := s.settings.Load().profiles[profile]
		if ps == nil || !s.cfg().Auth.opens(in.actor.Name, profile) {
			http.Error(w, absent, http.StatusNotFound)
			return
		}
		ps.serve(w, in)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/live", s.live)
	mux.HandleFunc("GET /health/ready", g.local(s.ready))
	mux.HandleFunc("GET /{$}", g.local(func(w http.ResponseWriter, r *http.Request) {
		if s.deps.Page != nil && isBrowser(r) {
			http.Redirect(w, r, pagePath, http.StatusSeeOther)
			return
		}
		tellPerson(w, r)
	}))
	if s.deps.Page != nil {
		mux.HandleFunc(pagePath, g.local(s.deps.Page.ServeHTTP))
	}
	mux.HandleFunc("POST /register", g.local(g.register))
	mux.HandleFunc("GET /events", clients(g.events))
	if s.deps.Metrics != nil {
		mux.HandleFunc("GET "+MetricsPath, clients(func(w http.ResponseWriter, in *entry) {
			s.deps.Metrics.ServeHTTP(w,
				in.Request)
		}))
	}
	if pages := s.deps.SignIns; pages != nil {
		mux.HandleFunc(SignInPath, g.local(pages.ServeHTTP))
		mux.HandleFunc("POST "+BeginPath+"{server}", clients(func(w http.ResponseWriter, in *entry) {
			pages.Begin(w, in.Request, in.PathValue("server"), in.actor)
		}))
	}
	mux.HandleFunc("/mcp", clients(func(w http.ResponseWriter, in *entry) {
		named(w, in, s.settings.Load().first.profile,
			"your token does not open the default profile: use the address of a profile of yours, /mcp/p/NAME")
	}))
	mux.HandleFunc("/mcp/p/{profile}", clients(func(w http.ResponseWriter, in *entry) {
		name := in.PathValue("profile")
		if strings.HasPrefix(name, directPrefix) { // an encoded slash
			name = ""
		}
		named(w, in, name, "no such profile: the hub's config names its profiles")
	}))
	mux.HandleFunc("/mcp/s/{server}", clients(func(w http.ResponseWriter, in *entry) {
		if s.cfg().HTTP.NoDirectViews {
			http.Error(w, "direct views are off: set hub.http.direct_views in the hub's config", http.StatusNotFound)
			return
		}
		named(w, in, DirectView(in.PathValue("server")), "no such server: the hub's config names its servers")
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A connection ends whose request body does not come, so that nobody can hold one without even
		// a token. readBody lifts the limit, because the connection may then stay open for a long answer.
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyWithin))
		}
		if g.checkPeer(w, r) {
			mux.ServeHTTP(w, r)
		}
	})
}

// OwnHost is next for requests to the hub's own names, and to listen, an address at which next is served.
func (s *Server) OwnHost(listen string, next http.Handler) http.Handler {
	return (&guard{server: s, listen: listen}).local(next.ServeHTTP)
}

// SignInPath begins the addresses of pages on which people sign in to servers, BeginPath those at
// which clients ask for such a page.
const (
	SignInPath = "/sign-in/"
	BeginPath  = "/sign-ins/"
)

// SignIns signs people in to servers. It is safe for concurrent use.
type SignIns interface {
	// The handler serves the pages below SignInPath: anybody may ask for them.
	http.Handler

	// Begin begins a sign-in of a caller to a server, and answers with the address of its page,
	// then once more at its end.
	Begin(w http.ResponseWriter, r *http.Request, server string, caller tool.Actor)
}

// MetricsPath is the address of the metrics.
const MetricsPath = "/metrics"

// pagePath is where the page for people begins.
const pagePath = "/ui/"

// isBrowser reports whether a person looks at an address with a browser: no MCP client wants HTML.
func isBrowser(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") &&
		!strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// tellPerson says what is here. "The server MUST either return Content-Type: text/event-stream in
// response to this HTTP GET, or else return HTTP 405 Method Not Allowed" holds for the addresses of
// clients.
func tellPerson(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	where := "/mcp at this address"
	if r.URL.Path != "/" {
		where = "this address"
		w.Header().Set("Allow", "GET, POST, DELETE")
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
	fmt.Fprintf(w, "This is mcp-toolhub. It is for MCP clients, which connect to %s. The page for people is at %s.\n",
		where, pagePath)
}

// bodyWithin bounds the time that a client takes to send the body of a request.
const bodyWithin = 30 * time.Second

// readBody reads a POST's body, or answers the request and returns ok false.
func (s *Server) readBody(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	if given := r.Header.Get("Content-Type"); given != usualType {
		if media, _, err := mime.ParseMediaType(given); err != nil || media != usualType {
			http.Error(w, "Content-Type must be application/json", http.StatusUnsupportedMediaType)
			return nil, false
		}
	}
	if a := accepted(r.Header); !a.json && !a.stream {
		http.Error(w, "Accept must contain application/json or text/event-stream", http.StatusBadRequest)
		return nil, false
	}
	limit := s.cfg().HTTP.MaxBodyBytes
	var err error
	if n := r.ContentLength; n > 0 && n <= limit {
		body = make([]byte, n) // its own: a call that waits for input keeps parts of it
		_, err = io.ReadFull(r.Body, body)
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	}
	if err == nil {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		return body, true
	}
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		writeJSON(w, http.StatusRequestEntityTooLarge, jsonrpc.ErrorText(nil, s.tooLarge(large.Limit)))
		return nil, false
	}
	http.Error(w, "the body could not be read", http.StatusBadRequest)
	return nil, false
}

// tooLarge logs that a client's message was refused because it has more than limit bytes, and returns
// the answer.
func (s *Server) tooLarge(limit int64) *tool.RPCError {
	s.deps.Logger.Warn("a client's message was refused: it is over a limit", "limit", "hub.limits.client_message",
		"bytes", limit)
	return jsonrpc.InvalidRequest(fmt.Sprintf("the message has more than %d bytes (hub.limits.client_message): "+
		"send less, or raise that in the hub's config", limit))
}

// usualAccept and usualType are what nearly all clients send, and usualType is what the hub answers with.
const (
	usualAccept = "application/json, text/event-stream"
	usualType   = "application/json"
)

// acceptable says what a client takes, by its Accept header.
type acceptable struct {
	json, stream bool
	streamFirst  bool // it would rather have an event stream: it names that before JSON
}

func accepted(h http.Header) (a acceptable) {
	all := h["Accept"]
	if len(all) == 0 || len(all) == 1 && all[0] == usualAccept {
		return acceptable{json: true, stream: true}
	}
	named := false
	for part := range strings.SplitSeq(strings.ToLower(strings.Join(all, ",")), ",") {
		part, _, _ = strings.Cut(part, ";")
		switch strings.TrimSpace(part) {
		case usualType:
			a.json, a.streamFirst = true, named
		case "application/*":
			a.json = true
		case "text/event-stream":
			a.stream, named = true, true
		case "text/*":
			a.stream = true
		case "*/*":
			a.json, a.stream = true, true
		}
	}
	return a
}
