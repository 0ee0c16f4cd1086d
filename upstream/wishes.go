package upstream

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// maxSubscriptions bounds the resources of one server that one client session subscribes to.
const maxSubscriptions = 1000

// wishes are what the clients of a group want to be told of. They outlive connections and changes of the configuration.
type wishes struct {
	mu    sync.Mutex
	level string
	uris  map[string]map[string]map[string]int // how often, by server, key of the session, and resource
}

func newWishes() *wishes { return &wishes{uris: make(map[string]map[string]map[string]int)} }

func (w *wishes) logLevel() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.level
}

// add counts one more subscription.
func (w *wishes) add(server, session, uri string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.uris[server] == nil {
		w.uris[server] = make(map[string]map[string]int)
	}
	own := w.uris[server][session]
	if own == nil {
		own = make(map[string]int)
		w.uris[server][session] = own
	}
	if own[uri] == 0 && len(own) >= maxSubscriptions {
		return &tool.Failure{Class: tool.ClassRateLimited, Code: "subscriptions_full", Message: fmt.Sprintf(
			"the session has subscribed to %d resources of server %q, as many as it may: end subscriptions that are not needed",
			maxSubscriptions, server)}
	}
	own[uri]++
	return nil
}

// remove takes one subscription back. It reports whether there was one, and it was the last of the session.
func (w *wishes) remove(server, session, uri string) (last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := w.uris[server][session]
	if own[uri] == 0 {
		return false
	}
	if own[uri]--; own[uri] > 0 {
		return false
	}
	delete(own, uri)
	if len(own) == 0 {
		delete(w.uris[server], session)
	}
	if len(w.uris[server]) == 0 {
		delete(w.uris, server)
	}
	return true
}

// of returns the resources that the connection s is to report on: those of its session, or of all where it is shared.
func (w *wishes) of(s *server) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for session, own := range w.uris[s.cfg.ID] {
		if s.use == useSession && session != s.client.Key {
			continue
		}
		for uri := range own {
			all = append(all, uri)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// wants reports whether uri is among them.
func (w *wishes) wants(s *server, uri string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for session, own := range w.uris[s.cfg.ID] {
		if (s.use != useSession || session == s.client.Key) && own[uri] > 0 {
			return true
		}
	}
	return false
}

// isSubscribed reports whether the server is needed for the sake of subscriptions.
func (s *server) isSubscribed() bool { return s.wishes != nil && len(s.wishes.of(s)) > 0 }

// Subscribe asks a server, over the connection of who where each session has its own, to tell of changes to a resource;
// the URI is the server's own. It counts: a server is asked at the first Subscribe and no more at the last Unsubscribe, and
// after a reconnect is asked again. A server that is not running is started, and one with subscriptions is not stopped for
// being idle. says is what the client has said of itself: where the session has no connection yet, that is what it offers.
// The error is as Execute's; then nothing was subscribed. Whoever has subscribed unsubscribes when the session of who ends.
func (g *Group) Subscribe(ctx context.Context, id, uri string, who tool.Session, says tool.Hop) error {
	if err := g.wishes.add(id, who.Key, uri); err != nil {
		return err
	}
	x := &order{Request: tool.Request{Server: id, Method: methodSubscribe, Session: who, Hop: says, Progress: ignoreProgress}, name: uri}
	x.over = func(ctx context.Context, s *server, sess *session, limits callLimits) answer {
		return s.subscribe(ctx, sess, uri, limits)
	}
	_, err := g.dispatch(ctx, x)
	if err != nil {
		g.wishes.remove(id, who.Key, uri)
	}
	return err
}

// Unsubscribe takes one Subscribe back. A server that is not running is not started for that, and an error of it says only
// that it may go on telling.
func (g *Group) Unsubscribe(ctx context.Context, server, uri string, who tool.Session) error {
	if !g.wishes.remove(server, who.Key, uri) {
		return nil
	}
	s := g.roster.Load().byID[server]
	if s != nil && s.use == useListing {
		s = s.isolation.peek(who)
	}
	if s == nil || !s.lifecycle.enter() {
		return nil
	}
	defer s.lifecycle.leave()
	sess := s.lifecycle.current()
	if sess == nil {
		return nil
	}
	return s.redact.Error(s.unsubscribe(ctx, sess, uri, s.requestLimits()).err)
}

// SetLogLevel tells servers up to 2025-11-25 the most talkative level that any client wants, now and after each reconnect;
// "" for none. On 2026-07-28 each request says its own. Setting the level that is set already does nothing.
func (g *Group) SetLogLevel(level string) {
	w := g.wishes
	w.mu.Lock()
	same := w.level == level
	w.level = level
	w.mu.Unlock()
	if same {
		return
	}
	for _, s := range g.roster.Load().servers {
		signal(s.leveled)
		if s.use == useListing {
			s.isolation.each(func(one *server) { signal(one.leveled) })
		}
	}
}
