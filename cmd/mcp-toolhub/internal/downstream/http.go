package downstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Header names of the protocol.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
)

// CheckListen returns an error where the hub must not listen on address: without authentication only this machine may
// reach it.
func (c Config) CheckListen(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen on %q: write host:port, for instance 127.0.0.1:8808: %w", address, err)
	}
	if isLoopback(host) || len(c.Auth.Tokens) > 0 {
		return nil
	}
	return fmt.Errorf("listen on %q: that address can be reached from other machines, and nobody would have to sign in: "+
		"set hub.auth.tokens in the config, or listen on 127.0.0.1", address)
}

func isLoopback(host string) bool {
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// DirectView is the name under which the surface of one server, with its native names, is served. No profile of a config
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
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health/live", s.live)
	mux.Handle("GET /health/ready", s.checkHost(http.HandlerFunc(s.ready)))
	mux.Handle("GET /{$}", s.checkHost(http.HandlerFunc(tellPerson)))
	guard := func(h http.Handler) http.Handler {
		clients := s.checkOrigin(s.authenticate(h))
		return s.checkHost(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isBrowser(r) {
				tellPerson(w, r)
				return
			}
			clients.ServeHTTP(w, r)
		}))
	}
	named := func(w http.ResponseWriter, r *http.Request, profile, absent string) {
		ps := s.settings.Load().profiles[profile]
		if ps == nil {
			http.Error(w, absent, http.StatusNotFound)
			return
		}
		ps.door.ServeHTTP(w, r)
	}
	mux.Handle("/mcp", guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.settings.Load().first.door.ServeHTTP(w, r)
	})))
	mux.Handle("/mcp/p/{profile}", guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.PathValue("profile")
		if strings.HasPrefix(name, directPrefix) { // an encoded slash
			name = ""
		}
		named(w, r, name, "no such profile: the hub's config names its profiles")
	})))
	mux.Handle("/mcp/s/{server}", guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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

// bodyWithin is how long a client may take to send the body of a request.
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

// checkHost lets in requests for the hub's own names only, so that a web page cannot reach it by pointing a name of its
// own at this machine (DNS rebinding).
func (s *Server) checkHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		cfg := s.cfg().HTTP
		listen, _, _ := net.SplitHostPort(cfg.Listen)
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		host = strings.Trim(host, "[]")
		known := isLoopback(host) || host != "" && strings.EqualFold(host, listen) || isOwnAddress(r, host) ||
			slices.ContainsFunc(cfg.AllowedHosts, func(h string) bool { return strings.EqualFold(h, host) })
		if !known {
			http.Error(w, "this hub is not known under that host name: add it to hub.http.allowed_hosts", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isOwnAddress reports whether host is the very IP address that the request came in on.
func isOwnAddress(r *http.Request, host string) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	own, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap() == own.Addr().Unmap()
}

// checkOrigin: "Servers MUST validate the Origin header on all incoming connections." A request without one does not come
// from a web page.
func (s *Server) checkOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origins := r.Header.Values("Origin")
		if len(origins) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		origin := origins[0]
		if len(origins) > 1 || !s.isAllowedOrigin(r, origin) {
			http.Error(w, "requests from that origin are refused: add it to hub.http.allowed_origins", http.StatusForbidden)
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Add("Vary", "Origin")
		h.Set("Access-Control-Expose-Headers", headerSession+", "+headerVersion)
		if r.Method == http.MethodOptions {
			h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID, "+
				headerSession+", "+headerVersion+", "+headerMethod+", "+headerName+paramHeaders(r))
			h.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// paramHeaders are the headers among those that a web page wants to send which repeat arguments of tools. Their names are
// the tools' own, so that no list can hold them.
func paramHeaders(r *http.Request) string {
	list := ""
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.TrimSpace(name)
		if n := len(paramheader.Prefix); len(name) > n && strings.EqualFold(name[:n], paramheader.Prefix) && paramheader.IsToken(name) {
			list += ", " + name
		}
	}
	return list
}

func (s *Server) isAllowedOrigin(r *http.Request, origin string) bool {
	if slices.Contains(s.cfg().HTTP.AllowedOrigins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Host == r.Host
}

// authenticate finds out whose request it is. Every token is compared, in constant time, so that the time tells nothing.
func (s *Server) authenticate(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		actor, ok := s.actorOf(r)
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer realm="mcp-toolhub"`)
			http.Error(w, "sign in with a bearer token of hub.auth.tokens", http.StatusUnauthorized)
			return
		}
		actor.Client.Names = r.URL.Query().Get(namesParameter)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)))
	})
}

// namesParameter is the query parameter with which an address asks for a naming style: /mcp?names=safe.
const namesParameter = "names"

const (
	httpActor  = "http"  // the door of those who come in over HTTP
	localActor = "local" // the name of all of them where there are no tokens
)

func (s *Server) actorOf(r *http.Request) (tool.Actor, bool) {
	tokens := s.cfg().Auth.Tokens
	if len(tokens) == 0 {
		return tool.Actor{Name: localActor, Door: httpActor}, true
	}
	given := r.Header.Values("Authorization")
	if len(given) != 1 {
		return tool.Actor{}, false
	}
	scheme, secret, _ := strings.Cut(given[0], " ")
	got := sha256.Sum256([]byte(strings.TrimSpace(secret)))
	name, found := "", 0
	for _, t := range tokens {
		want := sha256.Sum256([]byte(t.Secret))
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 {
			name, found = t.Name, 1
		}
	}
	return tool.Actor{Name: name, Door: httpActor}, found == 1 && strings.EqualFold(scheme, "Bearer")
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
