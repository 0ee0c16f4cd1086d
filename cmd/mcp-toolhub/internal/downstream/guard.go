package downstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/connuser"
	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// guard decides which HTTP requests come in, by their host, origin and token. Each of its checks
// answers the requests that it refuses, and returns ok false for them.
type guard struct {
	server *Server
	listen string // the address that the hub listens on; "" for that of the config
}

// RefusedCallers returns how many requests came without a valid token.
func (s *Server) RefusedCallers() int64 { return s.refused.Load() }

// refuse counts a request without a valid token. The log has only some of them.
func (s *Server) refuse(address string) {
	all := s.refused.Add(1)
	s.sayThat.Do(func() {
		s.deps.Logger.Warn("a request without a valid token is refused; others are counted", "address", address,
			"so_far", all)
	})
}

// entry is an HTTP request that the guard has let in, and its sender.
type entry struct {
	*http.Request
	peer
}

// admit lets a client's request in that passes all checks. A browser is told what is here instead.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) (in *entry, ok bool) {
	if !g.checkHost(w, r) {
		return nil, false
	}
	if isBrowser(r) {
		tellPerson(w, r)
		return nil, false
	}
	// A request without an origin does not come from a web page.
	if origins := r.Header.Values("Origin"); len(origins) > 0 && !g.checkOrigin(w, r, origins) {
		return nil, false
	}
	actor, ok := g.actorOf(r)
	actor.Address, _, _ = net.SplitHostPort(r.RemoteAddr)
	if !ok {
		g.server.refuse(actor.Address)
		w.Header().Set("WWW-Authenticate", `Bearer realm="mcp-toolhub"`)
		http.Error(w, "sign in with a bearer token of hub.auth.tokens", http.StatusUnauthorized)
		return nil, false
	}
	if r.URL.RawQuery != "" {
		actor.Client.Names = r.URL.Query().Get(namesParameter)
	}
	return &entry{r, peer{actor: actor}}, true
}

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
	return fmt.Errorf("listen on %q: that address can be reached from other machines, and nobody would have "+
		"to sign in: "+
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

// strangerKey is the key under which the context of a connection holds a func() bool: whether
// another user of this machine has made it.
type strangerKey struct{}

// ConnContext is that of the http.Server which serves a Handler. It looks once for the user at the
// other end of a connection.
func ConnContext(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, strangerKey{}, sync.OnceValue(func() bool { return connuser.IsOther(conn) }))
}

// checkPeer lets in the user who runs the hub, and root, where there are no tokens: every user of
// the machine reaches loopback.
func (g *guard) checkPeer(w http.ResponseWriter, r *http.Request) (ok bool) {
	isStranger, known := r.Context().Value(strangerKey{}).(func() bool)
	if !known || len(g.server.cfg().Auth.Tokens) > 0 || !isStranger() {
		return true
	}
	http.Error(w, "this hub has no tokens, and so serves only the user who runs it: add hub.auth.tokens to its "+
		"config, and send one", http.StatusForbidden)
	return false
}

// checkHost lets in requests for the hub's own names only, so that a web page cannot reach it by pointing a name of its
// own at this machine (DNS rebinding).
func (g *guard) checkHost(w http.ResponseWriter, r *http.Request) (ok bool) {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	if !isLoopback(host) && !g.isOwnName(r, host) {
		http.Error(w, "this hub is not known under that host name: add it to hub.http.allowed_hosts",
			http.StatusForbidden)
		return false
	}
	return true
}

// local is serve for requests that pass checkHost.
func (g *guard) local(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if g.checkHost(w, r) {
			serve(w, r)
		}
	}
}

// isOwnName reports whether host is the address that the hub listens on, or a name that its config allows.
func (g *guard) isOwnName(r *http.Request, host string) bool {
	cfg := &g.server.cfg().HTTP
	listen, _, _ := net.SplitHostPort(cmp.Or(g.listen, cfg.Listen))
	public, _ := url.Parse(cfg.PublicURL)
	return host != "" && (strings.EqualFold(host, listen) || strings.EqualFold(host, public.Hostname())) ||
		isOwnAddress(r, host) ||
		slices.ContainsFunc(cfg.AllowedHosts, func(h string) bool { return strings.EqualFold(h, host) })
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

// checkOrigin: "Servers MUST validate the Origin header on all incoming connections."
func (g *guard) checkOrigin(w http.ResponseWriter, r *http.Request, origins []string) (ok bool) {
	origin := origins[0]
	if len(origins) > 1 || !g.isAllowedOrigin(r, origin) {
		http.Error(w, "requests from that origin are refused: add it to hub.http.allowed_origins", http.StatusForbidden)
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", headerSession+", "+headerVersion)
	if r.Method != http.MethodOptions {
		return true
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID, "+
		headerSession+", "+headerVersion+", "+headerMethod+", "+headerName+paramHeaders(r))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return false
}

// paramHeaders returns the headers that a web page wants to send and that repeat arguments of tools. Tools choose their
// names, so no list can hold them.
func paramHeaders(r *http.Request) string {
	list := ""
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		name = strings.TrimSpace(name)
		if n := len(paramheader.Prefix); len(name) > n && strings.EqualFold(name[:n], paramheader.Prefix) &&
			paramheader.IsToken(name) {
			list += ", " + name
		}
	}
	return list
}

func (g *guard) isAllowedOrigin(r *http.Request, origin string) bool {
	if slices.Contains(g.server.cfg().HTTP.AllowedOrigins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.Host == r.Host
}

// register refuses to register an OAuth client. After a 401 such clients try that first, at this
// address where no metadata names another, and show their person error_description.
func (g *guard) register(w http.ResponseWriter, r *http.Request) {
	if len(g.server.cfg().Auth.Tokens) == 0 {
		http.NotFound(w, r)
		return
	}
	writeJSON(w, http.StatusBadRequest, []byte(`{"error":"invalid_client_metadata","error_description":"This hub has no `+
		`sign-in for clients: add the header Authorization: Bearer TOKEN to its entry in the config of your client, `+
		`with a token of hub.auth.tokens."}`))
}

// events serves the events of all callers to whoever has a token with that right, as long as it has.
func (g *guard) events(w http.ResponseWriter, in *entry) {
	auth := g.server.cfg().Auth
	may := func() bool { return g.server.cfg().Auth.readsEvents(in.actor.Name, auth) }
	if !may() {
		http.Error(w, "reading events takes a token with that right: add events: read to one in hub.auth.tokens",
			http.StatusForbidden)
		return
	}
	g.server.deps.Events.Serve(w, in.Request, may)
}

// namesParameter in the query of an address asks for a naming style: /mcp?names=safe.
const namesParameter = "names"

const (
	httpActor  = "http"     // the door of those who come in over HTTP
	localActor = tool.Local // the name of all of them where there are no tokens
)

// actorOf finds out whose request it is. Every token is compared, in constant time, so that the time
// tells nothing.
func (g *guard) actorOf(r *http.Request) (tool.Actor, bool) {
	tokens := g.server.cfg().Auth.Tokens
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
		expired := !t.Expires.IsZero() && !time.Now().Before(t.Expires)
		if subtle.ConstantTimeCompare(got[:], want[:]) == 1 && !expired {
			name, found = t.Name, 1
		}
	}
	return tool.Actor{Name: name, Door: httpActor}, found == 1 && strings.EqualFold(scheme, "Bearer")
}
