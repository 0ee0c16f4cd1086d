package upstream

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// maxSubscriptions bounds the resources of one server that one client session subscribes to.
const maxSubscriptions = 1000

// clientSubscriptions counts what the clients of a group want to hear of. It outlives connections and changes of the
// configuration.
type clientSubscriptions struct {
	level atomic.Value // the log level, a string

	mu    sync.Mutex
	uris  map[subscriber]map[string]int // how often, by resource
	there []clientSession               // that have joined, and may have ended since
}

// subscriber is a client session, whose it is, and a server at which it subscribes to resources.
type subscriber struct{ server, session, person string }

func newClientSubscriptions() *clientSubscriptions {
	return &clientSubscriptions{uris: make(map[subscriber]map[string]int)}
}

// clientSession is a session, and what its client says of itself.
type clientSession struct {
	who  tool.Session
	says tool.Hop
}

// Joined notes a session that has begun, and what its client says of itself: a server that is started while there is no
// other one is told what that client can do.
func (g *Group) Joined(who tool.Session, says tool.Hop) {
	c := g.subscriptions
	c.mu.Lock()
	defer c.mu.Unlock()
	c.there = append(c.there, clientSession{who, keepHop(says)})
}

// sole returns the only session that there is; ok is false where there are several, or none.
func (c *clientSubscriptions) sole() (one clientSession, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.there = slices.DeleteFunc(c.there, func(one clientSession) bool { return one.who.IsOver() })
	if len(c.there) != 1 {
		return one, false
	}
	return c.there[0], true
}

// add counts one more subscription.
func (c *clientSubscriptions) add(who subscriber, uri string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.uris[who]
	if own == nil {
		own = make(map[string]int)
		c.uris[who] = own
	}
	if own[uri] == 0 && len(own) >= maxSubscriptions {
		return &tool.Failure{Class: tool.ClassRateLimited, Code: "subscriptions_full", Message: fmt.Sprintf(
			"the session has subscribed to %d resources of server %q, as many as it may: end subscriptions that are "+
				"not needed",
			maxSubscriptions, who.server)}
	}
	own[uri]++
	return nil
}

// remove takes one subscription back. It reports whether there was one, and it was the last of the session.
func (c *clientSubscriptions) remove(who subscriber, uri string) (last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own := c.uris[who]
	if own[uri] > 1 {
		own[uri]--
		return false
	}
	_, last = own[uri]
	delete(own, uri)
	if len(own) == 0 {
		delete(c.uris, who)
	}
	return last
}

// of returns the resources that the connection of e is to report on: those of its session or
// person, or of all where it is shared.
func (c *clientSubscriptions) of(e *entry) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for who, own := range c.uris {
		if e.serves(who) {
			all = slices.AppendSeq(all, maps.Keys(own))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Subscribe asks a server, over the connection of who where each session has its own, to tell of
// changes to a resource; the URI is the server's own. It counts: a server is asked at the first
// Subscribe and no more at the last Unsubscribe, and after a reconnect is asked again. A server
// that is not running is started, and one with subscriptions is not stopped for being idle. says is
// what the client has said of itself: where the session has no connection yet, that is what it
// offers. The error is as Execute's; then nothing was subscribed. Whoever has subscribed
// unsubscribes when the session of who ends.
func (g *Group) Subscribe(ctx context.Context, id, uri string, who tool.Session, says tool.Hop) error {
	by := subscriber{id, who.Key, who.Person}
	if err := g.subscriptions.add(by, uri); err != nil {
		return err
	}
	err := g.dispatch(ctx, &clientRequest{Request: tool.Request{Server: id, Method: tool.MethodSubscribe, Name: uri,
		Session: who, Hop: says}})
	if err != nil {
		g.subscriptions.remove(by, uri)
	}
	return err
}

// Unsubscribe takes one Subscribe back. A server that is not running is not started for that, and
// an error of it says only that it may go on telling.
func (g *Group) Unsubscribe(ctx context.Context, server, uri string, who tool.Session) error {
	if !g.subscriptions.remove(subscriber{server, who.Key, who.Person}, uri) {
		return nil
	}
	s := g.roster.Load().byID[server]
	if s != nil && s.isApart(who) {
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
	return redacted(s.redact, s.subscriptions.unsubscribe(ctx, sess, uri, s.limits(tool.MethodUnsubscribe)).err)
}

// SetLogLevel tells servers up to 2025-11-25 the most talkative level that any client wants, now
// and after each reconnect; "" for none. It waits for them, but not for long: what a client asked for
// before a call counts for that call. On 2026-07-28 each request says its own.
func (g *Group) SetLogLevel(level string) {
	g.mu.Lock()
	within := g.within
	g.mu.Unlock()
	g.subscriptions.level.Store(level)
	if within == nil {
		return
	}
	ctx, stop := within()
	defer stop()
	var telling sync.WaitGroup
	defer telling.Wait()
	tell := func(s *server) {
		if sess := s.lifecycle.current(); sess != nil {
			telling.Go(func() { s.subscriptions.setLevel(ctx, sess) })
		}
	}
	for _, s := range g.roster.Load().servers {
		tell(s)
		if s.isolation != nil {
			s.isolation.each(tell)
		}
	}
}
