package downstream

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// subscription is one client's wish to hear of one resource.
type subscription struct {
	server string
	native string // the URI as the server knows it
	shown  string // the URI as the client wrote it
	who    tool.Session
	says   tool.Hop // of that session's client
	out    *outbox

	turn chan struct{} // holds one token while somebody changes what follows
	made bool
	gone bool // it is no longer in its session's table
}

// maxSubscriptions bounds the resources of one session, or of one subscriptions/listen.
const maxSubscriptions = 1000

// subscribeWithin is how long a server may take to accept a subscription before it is given up on; unsubscribeWithin the
// same for its end.
const (
	subscribeWithin   = 10 * time.Second
	unsubscribeWithin = 5 * time.Second
)

// subscriptions are those of all clients, by server and URI.
type subscriptions struct {
	mu       sync.Mutex
	byServer map[string]map[string]map[*subscription]struct{}
}

func (t *subscriptions) add(sub *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byServer == nil {
		t.byServer = make(map[string]map[string]map[*subscription]struct{})
	}
	byURI := t.byServer[sub.server]
	if byURI == nil {
		byURI = make(map[string]map[*subscription]struct{})
		t.byServer[sub.server] = byURI
	}
	if byURI[sub.native] == nil {
		byURI[sub.native] = make(map[*subscription]struct{})
	}
	byURI[sub.native][sub] = struct{}{}
}

func (t *subscriptions) remove(sub *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	byURI := t.byServer[sub.server]
	delete(byURI[sub.native], sub)
	if len(byURI[sub.native]) == 0 {
		delete(byURI, sub.native)
	}
	if len(byURI) == 0 {
		delete(t.byServer, sub.server)
	}
}

// to are the subscriptions that a change of uri is for: "This might be a sub-resource of the one that the client actually
// subscribed to."
func (t *subscriptions) to(server, uri string) []*subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	byURI := t.byServer[server]
	var found []*subscription
	for end := len(uri); end > 0 && len(byURI) > 0; end = strings.LastIndexAny(uri[:end], "/?#") {
		for sub := range byURI[uri[:end]] {
			found = append(found, sub)
		}
		if uri[end-1] != '/' && end < len(uri) && uri[end] == '/' { // a directory is also written with a slash at its end
			for sub := range byURI[uri[:end+1]] {
				found = append(found, sub)
			}
		}
	}
	return found
}

// updated tells of a change of a resource, to whoever has subscribed to it.
func (s *Server) updated(n tool.Notification) {
	raw, _ := rawjson.Get(n.Params, "uri")
	uri, ok := rawjson.String(raw)
	if !ok {
		return
	}
	params, err := withoutHop(n.Params)
	if err != nil {
		return
	}
	for _, sub := range s.subscriptions.to(n.Server, uri) {
		if n.Session != "" && n.Session != sub.who.Key {
			continue
		}
		own, shown := params, sub.shown+strings.TrimPrefix(uri, sub.native)
		if shown != uri {
			if own, err = rawjson.Set(params, "uri", rawjson.Quote(shown)); err != nil {
				continue
			}
		}
		sub.out.put(note{key: noteUpdated + " " + shown, method: noteUpdated, params: own})
	}
}

// make asks the server. What it tells from then on reaches the client.
func (s *Server) make(ctx context.Context, sub *subscription) error {
	ctx, cancel := context.WithTimeout(ctx, subscribeWithin)
	defer cancel()
	s.subscriptions.add(sub) // before the server may begin to tell
	err := s.deps.Servers.Subscribe(ctx, sub.server, sub.native, sub.who, sub.says)
	if err != nil {
		s.subscriptions.remove(sub)
	}
	sub.made = err == nil
	return err
}

// end is the opposite of make. A server that does not answer has forgotten the subscription, or will.
func (s *Server) end(ctx context.Context, sub *subscription) {
	if !sub.made {
		return
	}
	sub.made = false
	s.subscriptions.remove(sub)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), unsubscribeWithin)
	defer cancel()
	if err := s.deps.Servers.Unsubscribe(ctx, sub.server, sub.native, sub.who); err != nil {
		s.deps.Logger.Debug("a server did not take the end of a subscription", "server", sub.server, "error", err)
	}
}

// subscribe serves resources/subscribe.
func (s *Server) subscribe(ctx context.Context, p peer, m message, r replier) {
	uri, server, native, refusal := s.ownedResource(p, m)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	if why := s.refusal(ctx, p, m, onward{server: server}); why != nil {
		s.refuseOnward(ctx, r, why)
		return
	}
	sub, refusal := s.turnOf(ctx, p.caller, &subscription{server: server, native: native, shown: uri, who: p.session, says: p.hop, out: p.caller.out})
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	defer func() { <-sub.turn }()
	if !sub.made {
		if err := s.make(ctx, sub); err != nil {
			s.refuseOnward(ctx, r, err)
			return
		}
	}
	r.answer(whole([]byte("{}")))
}

// unsubscribe serves resources/unsubscribe. What was never subscribed to is not subscribed to now, too.
func (s *Server) unsubscribe(ctx context.Context, p peer, m message, r replier) {
	uri, _, refusal := s.resourceOf(p, m)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	p.caller.mu.Lock()
	sub := p.caller.subscriptions[uri]
	p.caller.mu.Unlock()
	if sub != nil {
		select {
		case sub.turn <- struct{}{}:
			s.end(ctx, sub)
			<-sub.turn
		case <-ctx.Done():
		}
	}
	r.answer(whole([]byte("{}")))
}

// turnOf returns the session's subscription to fresh.shown, which is fresh where there was none, for the one who may
// change it now. Whoever gets it gives its turn back.
func (s *Server) turnOf(ctx context.Context, c *caller, fresh *subscription) (*subscription, *tool.RPCError) {
	for {
		c.mu.Lock()
		sub := c.subscriptions[fresh.shown]
		if sub == nil && !c.over {
			c.makeRoom()
			if len(c.subscriptions) >= maxSubscriptions {
				c.mu.Unlock()
				return nil, &tool.RPCError{Code: tool.CodeInternalError, Message: fmt.Sprintf(
					"%d resources are subscribed to in this session: unsubscribe from others first", maxSubscriptions)}
			}
			if c.subscriptions == nil {
				c.subscriptions = make(map[string]*subscription)
				go s.endAll(context.WithoutCancel(ctx), c)
			}
			fresh.turn = make(chan struct{}, 1)
			sub, c.subscriptions[fresh.shown] = fresh, fresh
		}
		over := c.over
		c.mu.Unlock()
		if over {
			return nil, &tool.RPCError{Code: tool.CodeInternalError, Message: "the session has ended: initialize again"}
		}
		select {
		case sub.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, &tool.RPCError{Code: tool.CodeInternalError, Message: "the request was canceled"}
		}
		if !sub.gone {
			return sub, nil
		}
		<-sub.turn
	}
}

// makeRoom takes ended subscriptions out of a full table. c.mu is held.
func (c *caller) makeRoom() {
	if len(c.subscriptions) < maxSubscriptions {
		return
	}
	for uri, sub := range c.subscriptions {
		select {
		case sub.turn <- struct{}{}:
			if !sub.made {
				sub.gone = true
				delete(c.subscriptions, uri)
			}
			<-sub.turn
		default: // somebody is at it
		}
	}
}

// endAll waits for the end of the session and ends its subscriptions.
func (s *Server) endAll(ctx context.Context, c *caller) {
	<-c.session.Ended
	c.mu.Lock()
	c.over = true
	all := c.subscriptions
	c.mu.Unlock()
	var ending sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for _, sub := range all {
		places <- struct{}{}
		ending.Go(func() {
			defer func() { <-places }()
			sub.turn <- struct{}{}
			s.end(ctx, sub)
			sub.gone = true
			<-sub.turn
		})
	}
	ending.Wait()
}

// atOnce is how many subscriptions of one client are made or ended at the same time.
const atOnce = 16
