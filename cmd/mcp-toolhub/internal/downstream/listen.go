package downstream

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Change says which lists of a profile's surface have become different.
type Change struct {
	Profile                   string
	Tools, Prompts, Resources bool // templates count as resources

	// Sees narrows Tools down to the callers for whom it is true: others see what they saw. Nil is all of them. It is called
	// a moment later, concurrently with everything else, and must be quick.
	Sees func(tool.Actor) bool
}

// tools reports whether the list of tools of a caller has changed.
func (c *Change) tools(a tool.Actor) bool { return c.Tools && (c.Sees == nil || c.Sees(a)) }

// listener is a client that is told of changes: a session, or the sender of a subscriptions/listen.
type listener struct {
	profile string
	actor   tool.Actor
	caller  *caller // nil for a subscriptions/listen, which carries no log messages
	wants   Change
	out     *outbox
	gone    chan struct{} // closed when nothing more will come
}

// listeners are all of them.
type listeners struct {
	mu    sync.Mutex
	all   map[*listener]struct{}
	over  bool                // the hub is stopping
	since map[string][]Change // by profile: one that is everybody's, and one for each Sees
	timer *time.Timer         // runs while since holds something
}

func (t *listeners) add(l *listener) {
	l.gone = make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		close(l.gone)
		return
	}
	if t.all == nil {
		t.all = make(map[*listener]struct{})
	}
	t.tellLocked() // what has changed before is no news to l
	t.all[l] = struct{}{}
}

func (t *listeners) remove(l *listener) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, l)
}

// closeWhere ends the listeners that match.
func (t *listeners) closeWhere(match func(*listener) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for l := range t.all {
		if match(l) {
			delete(t.all, l)
			close(l.gone)
		}
	}
}

// stop ends all listeners, and those to come.
func (t *listeners) stop() {
	t.mu.Lock()
	t.over = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.closeWhere(func(*listener) bool { return true })
}

// each calls f for the sessions.
func (t *listeners) each(f func(*listener)) {
	t.mu.Lock()
	var sessions []*listener
	for l := range t.all {
		if l.caller != nil {
			sessions = append(sessions, l)
		}
	}
	t.mu.Unlock()
	for _, l := range sessions {
		f(l)
	}
}

// gatherFor is how long changes are gathered, so that several in quick succession become one notification.
const gatherFor = 10 * time.Millisecond

// Changed tells the clients of the profiles that their lists have changed. Several calls in quick succession become one
// notification of each kind.
func (s *Server) Changed(changes ...Change) {
	t := &s.listeners
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over || len(changes) == 0 {
		return
	}
	if len(t.since) == 0 {
		t.since = make(map[string][]Change)
		t.timer = time.AfterFunc(gatherFor, t.tell)
	}
	for _, c := range changes {
		all := t.since[c.Profile]
		at := slices.IndexFunc(all, func(before Change) bool { return before.Sees == nil && c.Sees == nil })
		if at < 0 {
			t.since[c.Profile] = append(all, c)
			continue
		}
		before := &all[at]
		before.Tools, before.Prompts, before.Resources = c.Tools || before.Tools, c.Prompts || before.Prompts, c.Resources || before.Resources
	}
}

// tell puts the gathered changes into the outboxes of those who want to know.
func (t *listeners) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tellLocked()
}

func (t *listeners) tellLocked() {
	since := t.since
	if len(since) == 0 {
		return
	}
	t.since = nil
	for l := range t.all {
		var c Change
		for _, some := range since[l.profile] {
			c.Tools = c.Tools || l.wants.Tools && some.tools(l.actor)
			c.Prompts, c.Resources = c.Prompts || some.Prompts, c.Resources || some.Resources
		}
		for _, k := range []struct {
			changed, wanted bool
			method          string
		}{{c.Tools, l.wants.Tools, noteToolListChanged}, {c.Prompts, l.wants.Prompts, notePromptListChanged},
			{c.Resources, l.wants.Resources, noteResourceListChanged}} {
			if k.changed && k.wanted {
				l.out.put(note{key: k.method, method: k.method, params: json.RawMessage("{}")})
			}
		}
	}
}

// listenTo is what a subscriptions/listen asks for.
type listenTo struct {
	tools, prompts, resources bool
	uris                      []string
	others                    []rawjson.Member // what else is asked for
}

func readListen(params json.RawMessage) (want listenTo, refusal *tool.RPCError) {
	filter, ok := rawjson.Get(params, "notifications")
	if !ok || !rawjson.IsObject(filter) {
		return want, invalidParams(`"notifications" must say what to listen to`)
	}
	fault := ""
	flag := func(m rawjson.Member) bool {
		if v := string(m.Value); v != "true" && v != "false" {
			fault = m.Name() + " must be true or false"
		}
		return string(m.Value) == "true"
	}
	_ = rawjson.Members(filter, func(m rawjson.Member) bool {
		switch m.Name() {
		case "toolsListChanged":
			want.tools = flag(m)
		case "promptsListChanged":
			want.prompts = flag(m)
		case "resourcesListChanged":
			want.resources = flag(m)
		case "resourceSubscriptions":
			err := rawjson.Elements(m.Value, func(e []byte) bool {
				uri, ok := rawjson.String(e)
				switch {
				case !ok || uri == "":
					fault = "resourceSubscriptions must hold URIs"
				case len(want.uris) >= maxSubscriptions:
					fault = "resourceSubscriptions holds more than 1000 URIs"
				case !slices.Contains(want.uris, uri):
					want.uris = append(want.uris, uri)
				}
				return fault == ""
			})
			if err != nil {
				fault = "resourceSubscriptions must be an array"
			}
		default:
			want.others = append(want.others, m)
		}
		return fault == ""
	})
	if fault != "" {
		return want, invalidParams(fault)
	}
	return want, nil
}

// listen serves subscriptions/listen, until the client or the hub has enough of it. It is acknowledged when every server
// concerned has accepted or been given up on.
func (s *Server) listen(ctx context.Context, p peer, m message, r replier) {
	want, refusal := readListen(m.params)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	surface, refusal := s.surface(p)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	able := s.abilities(surface)
	want.prompts, want.resources = want.prompts && able.Prompts, want.resources && able.Resources
	l := &listener{profile: p.profile, actor: p.actor, out: newOutbox(m.id),
		wants: Change{Tools: want.tools, Prompts: want.prompts, Resources: want.resources}}
	s.listeners.add(l)
	defer s.listeners.remove(l)
	made := s.makeAll(ctx, p, surface, s.allowedURIs(ctx, p, surface, want.uris), l.out)
	defer s.endEach(ctx, made)
	far, refusal := s.listenFar(ctx, p, surface, want.others, l.out)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	defer far.stop()
	agreed, err := l.out.tagged(acknowledged(want, made, far.agreed()))
	if err != nil {
		r.refuse(&tool.RPCError{Code: tool.CodeInternalError, Message: err.Error()})
		return
	}
	r.notify(noteAcknowledged, agreed)
	for standing := want.tools || want.prompts || want.resources || len(made) > 0 || far.some(); standing; {
		select {
		case <-l.out.wake:
			l.out.drain(r.notify, ctx.Done())
		case <-l.gone:
			standing = false
		case <-p.quit:
			standing = false
		case <-ctx.Done():
			if r.abandon(ctx) {
				return
			}
			standing = false
		}
	}
	r.answer(whole(s.listenEnd(m.id)))
}

// listenEnd is the result that says that a subscription has ended in good order.
func (s *Server) listenEnd(id json.RawMessage) json.RawMessage {
	out := append([]byte(`{"resultType":"complete","_meta":{`), rawjson.Quote(mcp.MetaKeySubscriptionID)...)
	out = append(append(out, ':'), id...)
	out = append(append(out, ','), rawjson.Quote(mcp.MetaKeyServerInfo)...)
	out = append(append(out, ':'), s.serverInfo...)
	return append(out, "}}"...)
}

// acknowledged are the params that say what is listened to.
func acknowledged(want listenTo, made []*subscription, others []rawjson.Change) json.RawMessage {
	out := []byte(`{"notifications":{`)
	member := func(name, value string) {
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(append(append(out, rawjson.Quote(name)...), ':'), value...)
	}
	if want.tools {
		member("toolsListChanged", "true")
	}
	if want.prompts {
		member("promptsListChanged", "true")
	}
	if want.resources {
		member("resourcesListChanged", "true")
	}
	if len(made) > 0 {
		member("resourceSubscriptions", "[")
		for i, sub := range made {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, rawjson.Quote(sub.shown)...)
		}
		out = append(out, ']')
	}
	for _, o := range others {
		member(o.Name, string(o.Value))
	}
	return append(out, "}}"...)
}

// allowedURIs are those of the resources that the policy lets the peer subscribe to.
func (s *Server) allowedURIs(ctx context.Context, p peer, surface *tool.Surface, uris []string) (allowed []string) {
	for _, uri := range uris {
		server, _, refusal := s.ownerOf(p, surface, uri)
		if refusal == nil && s.refusal(ctx, p, message{method: methodSubscribe}, onward{server: server}) == nil {
			allowed = append(allowed, uri)
		}
	}
	return allowed
}

// makeAll subscribes to resources and returns what was accepted, in the order of uris.
func (s *Server) makeAll(ctx context.Context, p peer, surface *tool.Surface, uris []string, out *outbox) []*subscription {
	subs := make([]*subscription, 0, len(uris))
	var making sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for _, uri := range uris {
		server, native, refusal := s.ownerOf(p, surface, uri)
		if refusal != nil {
			continue
		}
		sub := &subscription{server: server, native: native, shown: uri, who: p.session, says: p.hop, out: out}
		subs = append(subs, sub)
		places <- struct{}{}
		making.Go(func() {
			defer func() { <-places }()
			if err := s.make(ctx, sub); err != nil {
				s.deps.Logger.Debug("a subscription is given up on", "server", server, "error", err)
			}
		})
	}
	making.Wait()
	return slices.DeleteFunc(subs, func(sub *subscription) bool { return !sub.made })
}

// endEach ends subscriptions that are in no table.
func (s *Server) endEach(ctx context.Context, subs []*subscription) {
	var ending sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for _, sub := range subs {
		places <- struct{}{}
		ending.Go(func() {
			defer func() { <-places }()
			s.end(ctx, sub)
		})
	}
	ending.Wait()
}
