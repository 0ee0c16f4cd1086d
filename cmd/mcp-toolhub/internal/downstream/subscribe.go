package downstream

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// subscription is one client's subscription to one resource.
type subscription struct {
	resource
	shown string // the URI as the client wrote it
	who   tool.Session
	says  tool.Hop // of that session's client
	out   *outbox

	changing sync.Mutex
	made     bool  // the server has accepted it; changing guards this and err
	err      error // why it has not
}

// subscribeWithin bounds the time that a server may take to start and to accept a subscription, unsubscribeWithin its
// end.
const (
	subscribeWithin   = 30 * time.Second
	unsubscribeWithin = 5 * time.Second
)

// resourceSubscriptions holds the subscriptions of all clients to resources, and makes and ends them at the servers.
type resourceSubscriptions struct {
	*parts

	mu sync.Mutex
	of map[resource]map[*subscription]struct{}
}

// resource names a resource as its server knows it.
type resource struct{ server, uri string }

func (t *resourceSubscriptions) add(sub *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[sub.resource] == nil {
		set(&t.of, sub.resource, make(map[*subscription]struct{}))
	}
	t.of[sub.resource][sub] = struct{}{}
}

func (t *resourceSubscriptions) remove(sub *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of[sub.resource], sub)
	if len(t.of[sub.resource]) == 0 {
		delete(t.of, sub.resource)
	}
}

// to returns the subscriptions that a change of uri is for: "This might be a sub-resource of the
// one that the client actually subscribed to."
func (t *resourceSubscriptions) to(server, uri string) []*subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []*subscription
	for end := len(uri); end > 0 && len(t.of) > 0; end = strings.LastIndexAny(uri[:end], "/?#") {
		found = slices.AppendSeq(found, maps.Keys(t.of[resource{server, uri[:end]}]))
		// a directory is also written with a slash at its end
		if uri[end-1] != '/' && end < len(uri) && uri[end] == '/' {
			found = slices.AppendSeq(found, maps.Keys(t.of[resource{server, uri[:end+1]}]))
		}
	}
	return found
}

// make asks the server. What it tells from then on reaches the client.
func (t *resourceSubscriptions) make(ctx context.Context, sub *subscription) error {
	ctx, cancel := context.WithTimeout(ctx, subscribeWithin)
	defer cancel()
	t.add(sub) // before the server may begin to tell
	err := t.deps.Servers.Subscribe(ctx, sub.server, sub.uri, sub.who, sub.says)
	if err != nil {
		t.remove(sub)
	}
	sub.made = err == nil
	return err
}

// end is the opposite of make, for which it waits. A server that does not answer has forgotten the
// subscription, or will.
func (t *resourceSubscriptions) end(ctx context.Context, sub *subscription) {
	sub.changing.Lock()
	defer sub.changing.Unlock()
	if !sub.made {
		return
	}
	sub.made = false
	t.remove(sub)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeWithin)
	defer cancel()
	if err := t.deps.Servers.Unsubscribe(ctx, sub.server, sub.uri, sub.who); err != nil {
		t.deps.Logger.Debug("a server did not take the end of a subscription", "server", sub.server, "error", err)
	}
}

// subscribe serves resources/subscribe.
func (t *resourceSubscriptions) subscribe(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	uri, server, native, refusal := t.surfaces.ownedResource(ctx, p, m)
	if refusal != nil {
		return refusal
	}
	refusal = t.permitted(ctx, p, server, native, func(ctx context.Context) error {
		return t.enter(ctx, p.caller, &subscription{resource: resource{server, native}, shown: uri, who: p.session,
			says: p.hop, out: p.caller.out})
	})
	if refusal != nil {
		return refusal
	}
	r.answer(whole([]byte("{}")))
	return nil
}

// permitted runs do, which subscribes to the resource that its server knows as native, where the policy lets the peer.
func (t *resourceSubscriptions) permitted(ctx context.Context, p *peer, server, native string,
	do func(context.Context) error) *tool.RPCError {
	m := &jsonrpc.Message{Method: tool.MethodSubscribe, Params: rawjson.AppendMember([]byte("{"), "uri",
		rawjson.Quote(native))}
	m.Params = append(m.Params, '}')
	return t.forwarder.permitted(ctx, p, m, onward{server: server}, do)
}

// unsubscribe serves resources/unsubscribe. What was never subscribed to is not subscribed to now, too.
func (t *resourceSubscriptions) unsubscribe(ctx context.Context, p *peer, m *jsonrpc.Message,
	r replier) *tool.RPCError {
	uri, refusal := textParam(m, "uri")
	if refusal != nil {
		return refusal
	}
	p.caller.mu.Lock()
	sub := p.caller.subscriptions[uri]
	delete(p.caller.subscriptions, uri)
	p.caller.mu.Unlock()
	if sub != nil {
		t.end(ctx, sub)
	}
	r.answer(whole([]byte("{}")))
	return nil
}

// enter makes a subscription of a session, unless it has one to that resource.
func (t *resourceSubscriptions) enter(ctx context.Context, c *caller, fresh *subscription) error {
	c.mu.Lock()
	before := c.subscriptions[fresh.shown]
	switch {
	case before != nil:
		c.mu.Unlock()
		before.changing.Lock() // somebody may be making it
		defer before.changing.Unlock()
		return before.err
	case c.over:
		c.mu.Unlock()
		return &tool.RPCError{Code: tool.CodeInternalError, Message: "the session has ended: initialize again"}
	case c.subscriptions == nil:
		c.subscriptions = make(map[string]*subscription)
		go t.endWith(context.WithoutCancel(ctx), c)
	}
	c.subscriptions[fresh.shown] = fresh
	fresh.changing.Lock()
	defer fresh.changing.Unlock()
	c.mu.Unlock()
	if fresh.err = t.make(ctx, fresh); fresh.err != nil {
		c.mu.Lock()
		if c.subscriptions[fresh.shown] == fresh {
			delete(c.subscriptions, fresh.shown)
		}
		c.mu.Unlock()
	}
	return fresh.err
}

// endWith waits for the end of the session and ends its subscriptions.
func (t *resourceSubscriptions) endWith(ctx context.Context, c *caller) {
	<-c.session.Ended
	c.mu.Lock()
	c.over = true
	all := c.subscriptions
	c.subscriptions = nil
	c.mu.Unlock()
	inParallel(maps.Values(all), func(sub *subscription) { t.end(ctx, sub) })
}

// atOnce bounds the subscriptions of one client that are made or ended at the same time.
const atOnce = 16

// inParallel calls change for all subscriptions, and returns when that is done.
func inParallel(all iter.Seq[*subscription], change func(*subscription)) {
	var changing errgroup.Group
	changing.SetLimit(atOnce)
	for sub := range all {
		changing.Go(func() error {
			change(sub)
			return nil
		})
	}
	_ = changing.Wait()
}

// makeAll subscribes to the resources that the policy lets the peer subscribe to. It returns what
// servers have accepted, in the order of uris.
func (t *resourceSubscriptions) makeAll(ctx context.Context, p *peer, surface *tool.Surface, uris []string,
	out *outbox) []*subscription {
	subs := make([]*subscription, 0, len(uris))
	for _, uri := range uris {
		server, native, refusal := ownerOf(p, surface, uri)
		if refusal == nil {
			subs = append(subs, &subscription{resource: resource{server, native}, shown: uri, who: p.session,
				says: p.hop, out: out})
		}
	}
	inParallel(slices.Values(subs), func(sub *subscription) {
		err := t.permitted(ctx, p, sub.server, sub.uri, func(ctx context.Context) error { return t.make(ctx, sub) })
		if err != nil {
			t.deps.Logger.Debug("a subscription is given up on", "server", sub.server, "error", err)
		}
	})
	return slices.DeleteFunc(subs, func(sub *subscription) bool { return !sub.made })
}
