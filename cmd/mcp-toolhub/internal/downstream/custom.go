package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// What the hub does not know, of extensions that are none of its business, passes between a server and the clients of its
// direct view. Elsewhere nobody could say which server is meant.

// serves reports whether the hub itself serves requests of method to clients of profile. The SDK serves the others, or none.
func (s *Server) serves(profile, method string) bool {
	return onLane(method) || isCustom(profile, method)
}

// isCustom reports whether requests of method are passed on because the hub does not know them.
func isCustom(profile, method string) bool {
	// A notification with an id is none that the hub does not know: there are servers that heed a cancellation all the same.
	return direct(profile) && !isKnownRequest(method) && !strings.HasPrefix(method, notePrefix)
}

// notePrefix begins the methods of the protocol's notifications.
const notePrefix = "notifications/"

// isKnownRequest reports whether the hub knows what is meant by requests of method, of clients or of servers.
func isKnownRequest(method string) bool {
	switch method {
	case tool.MethodElicit, tool.MethodSample, tool.MethodRoots: // which servers ask of clients
		return true
	}
	return onLane(method) || servedBySDK(method)
}

// isCustomNote reports whether notifications of clients of profile are passed on for that reason. A known request without
// an id is none of them: there are servers that carry it out all the same, past the pipeline.
func isCustomNote(profile string, m message) bool {
	return direct(profile) && isUnknownNote(m)
}

// isUnknownNote reports whether a message is a notification that the hub does not know. Where it is not passed on it is taken
// and means nothing, as everywhere in JSON-RPC: a client that was refused one over HTTP would give up its connection.
func isUnknownNote(m message) bool {
	if m.id != nil || m.method == "" || isKnownRequest(m.method) {
		return false
	}
	switch m.method {
	case noteInitialized, noteCancelled, noteProgress, noteRootsChanged:
		return false
	}
	return true
}

// soleServer is the server of a direct view.
func (s *Server) soleServer(p peer) (string, *tool.RPCError) {
	surface, refusal := s.surface(p)
	if refusal != nil {
		return "", refusal
	}
	if surface.Features == nil || len(surface.Features.Servers) != 1 {
		return "", &tool.RPCError{Code: tool.CodeMethodNotFound, Message: "no server takes this here"}
	}
	return surface.Features.Servers[0], nil
}

// pass serves a request that the hub does not know: the server does.
func (s *Server) pass(ctx context.Context, p peer, m message, r replier) {
	server, refusal := s.soleServer(p)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	s.forward(ctx, p, m, r, onward{server: server, unknown: true})
}

// Errand is what a client asks of a server besides tools/call: the policy of tools does not see it.
type Errand struct {
	Server  string
	Method  string
	Params  json.RawMessage // as the client sent them; nil where it sent none
	Unknown bool            // the hub does not know the method, so nobody knows what it does
	Actor   tool.Actor
	Profile string
}

// refusal returns why a request of p may not reach a server, nil where it may. What goes on with a call that was let
// through before, or ends it, is not looked at again.
func (s *Server) refusal(ctx context.Context, p peer, m message, to onward) error {
	if s.deps.Refuse == nil || isTaskMethod(m.method) {
		return nil
	}
	why := s.deps.Refuse(ctx, Errand{Server: to.server, Method: m.method, Params: m.params, Unknown: to.unknown, Actor: p.actor,
		Profile: p.profile})
	if why == nil {
		return nil
	}
	s.deps.Logger.Info("a request is refused by the policy", "server", to.server, "method", clip(m.method), "actor", p.actor.Ref(),
		"why", why.Message)
	return why
}

// passNote sends a notification on that the hub does not know, and returns when the server has it or does not take it.
func (s *Server) passNote(ctx context.Context, p peer, m message) {
	server, refusal := s.soleServer(p)
	if refusal != nil {
		return
	}
	if s.refusal(ctx, p, m, onward{server: server, unknown: true}) != nil {
		return
	}
	p.hop.Revision, p.hop.Direct = p.actor.Client.ProtocolVersion, true
	params := m.params
	if rawjson.IsNull(params) {
		params = nil
	}
	err := s.deps.Servers.Notify(ctx, &tool.Request{Server: server, Method: m.method, Params: params, Hop: p.hop, Session: p.session})
	if err != nil {
		s.deps.Logger.Warn("a client's notification did not reach the server", "server", server, "method", clip(m.method), "error", err)
	}
}

// clip is text that a stranger wrote, for the log.
func clip(text string) string { return fmt.Sprintf("%.100s", text) }

// unheard passes on a notification of a server that the hub does not know, and that belongs to no call.
func (s *Server) unheard(n tool.Notification) {
	params, err := cleanNote(n)
	if err != nil {
		return
	}
	s.listeners.each(func(l *listener) {
		if l.profile == DirectView(n.Server) && (n.Session == "" || n.Session == l.caller.session.Key) {
			l.out.put(note{method: n.Method, params: params})
		}
	})
}

// custom passes such a notification on with a call of a direct view.
func (c *openCall) custom(n tool.Notification) {
	if params, err := cleanNote(n); err == nil && c.view {
		c.say(saying{method: n.Method, params: params})
	}
}

// cleanNote returns the params of a notification that the hub does not know. A known request without an id is none: there
// are clients that would put a question to their user all the same, when nobody may ask.
func cleanNote(n tool.Notification) ([]byte, error) {
	if isKnownRequest(n.Method) {
		return nil, fmt.Errorf("method %q is that of a request", clip(n.Method))
	}
	if n.Params == nil {
		return nil, nil
	}
	return withoutHop(n.Params)
}

// isKnownNote reports whether the hub knows what servers mean by a notification.
func isKnownNote(method string) bool {
	switch method {
	case noteMessage, noteUpdated, tool.NoteTaskStatus, tool.NoteTask, tool.NoteProgress, tool.NoteElicited, noteToolListChanged,
		notePromptListChanged, noteResourceListChanged:
		return true
	}
	return false
}

// sequel keeps what one client sends after its notifications behind them, as far as the hub passes these on.
type sequel struct {
	mu      sync.Mutex
	last    chan struct{} // closed when the last notification has been passed on; nil where there was none
	waiting int           // notifications that have not been
}

// passOnWithin is how long what follows a notification waits for it.
const passOnWithin = 10 * time.Second

// maxSequel bounds the notifications that have not been passed on.
const maxSequel = 1000

// after runs run behind all that was passed on before, and what comes later behind it. It returns at once: false where too
// much waits already, so that run never runs.
func (q *sequel) after(run func()) (taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting >= maxSequel {
		return false
	}
	q.waiting++
	before, mine := q.last, make(chan struct{})
	q.last = mine
	go func() {
		defer close(mine)
		defer q.passed()
		wait(before)
		run()
	}()
	return true
}

func (q *sequel) passed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
}

// before returns a function that waits until all notifications so far have been passed on.
func (q *sequel) before() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.last
	if last == nil {
		return func() {}
	}
	select {
	case <-last:
		q.last = nil
		return func() {}
	default:
		return func() { wait(last) }
	}
}

func wait(c <-chan struct{}) {
	if c == nil {
		return
	}
	timer := time.NewTimer(passOnWithin)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	}
}
