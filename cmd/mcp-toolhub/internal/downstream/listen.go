package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// listenStreams serves subscriptions/listen: each is a standing stream of what its client asked to hear of.
type listenStreams struct {
	*parts
}

// listenFilter is the filter of a subscriptions/listen.
type listenFilter struct {
	tools, prompts, resources bool
	uris                      []string
	taskIDs                   json.RawMessage  // nil where absent
	others                    []rawjson.Member // what else is asked for
}

// maxListened bounds the resources of one subscriptions/listen. Those of a session are bounded where it subscribes.
const maxListened = 1000

func readListen(params json.RawMessage) (want listenFilter, refusal *tool.RPCError) {
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
				case len(want.uris) >= maxListened:
					fault = "resourceSubscriptions holds more than 1000 URIs"
				case !slices.Contains(want.uris, uri):
					want.uris = append(want.uris, uri)
				}
				return fault == ""
			})
			if err != nil {
				fault = "resourceSubscriptions must be an array"
			}
		case filterTaskIDs:
			want.taskIDs = m.Value
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

// serve serves a subscriptions/listen until the client or the hub ends it. It acknowledges the
// request when every server concerned has accepted or been given up on.
func (s *listenStreams) serve(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	want, refusal := readListen(m.Params)
	if refusal != nil {
		return refusal
	}
	surface, refusal := s.surfaces.of(p)
	if refusal != nil {
		return refusal
	}
	able := s.surfaces.abilities(surface)
	want.prompts, want.resources = want.prompts && able.Prompts, want.resources && able.Resources
	l := &listener{profile: p.profile, actor: p.actor, out: newOutbox(m.ID),
		wants: Change{Tools: want.tools, Prompts: want.prompts, Resources: want.resources}}
	s.listeners.add(l)
	defer s.listeners.remove(l)
	made := s.subscriptions.makeAll(ctx, p, surface, want.uris, l.out)
	defer inParallel(slices.Values(made), func(sub *subscription) { s.subscriptions.end(ctx, sub) })
	forwarded, refusal := s.forward(ctx, p, surface, want, l.out)
	if refusal != nil {
		return refusal
	}
	defer forwarded.stop()
	agreed, err := l.out.tagged(acknowledged(want, made, forwarded))
	if err != nil {
		return &tool.RPCError{Code: tool.CodeInternalError, Message: err.Error()}
	}
	r.notify(tool.NoteAcknowledged, agreed)
	for standing := want.tools || want.prompts || want.resources || len(made) > 0 || forwarded.some(); standing; {
		select {
		case <-l.out.wake:
			l.out.drain(r.notify, ctx.Done())
		case <-l.gone:
			standing = false
		case <-p.quit:
			standing = false
		case <-ctx.Done():
			standing = false
		}
	}
	r.answer(whole(fmt.Appendf(nil, `{"resultType":"complete","_meta":{%q:%s,%q:%s}}`, mcp.MetaKeySubscriptionID, m.ID,
		mcp.MetaKeyServerInfo, s.serverInfo)))
	return nil
}

// acknowledged returns the params that say what is listened to.
func acknowledged(want listenFilter, made []*subscription, forwarded *forwardedListen) json.RawMessage {
	out := []byte(`{"notifications":{`)
	for _, list := range []struct {
		name   string
		wanted bool
	}{{"toolsListChanged", want.tools}, {"promptsListChanged", want.prompts},
		{"resourcesListChanged", want.resources}} {
		if list.wanted {
			out = rawjson.AppendMember(out, list.name, []byte("true"))
		}
	}
	var uris []string
	for _, sub := range made {
		uris = append(uris, sub.shown)
	}
	out = appendTexts(out, "resourceSubscriptions", uris)
	return append(forwarded.appendAgreed(out), "}}"...)
}

// appendTexts appends a member with texts to an open object, unless there are none.
func appendTexts(open []byte, name string, texts []string) []byte {
	if len(texts) == 0 {
		return open
	}
	list, _ := rawjson.Encode(texts) // texts always encode
	return rawjson.AppendMember(open, name, list)
}

// forwardedListen is the part of a client's subscriptions/listen that servers serve themselves:
// tasks, and on a direct view what the hub does not know. Each server concerned is listened to for
// this client alone.
type forwardedListen struct {
	end     context.CancelFunc
	running sync.WaitGroup
	servers []*serverListen

	mu   sync.Mutex
	open int // servers that have not refused
}

// filterTaskIDs is the member of the filter that holds ids of tasks.
const filterTaskIDs = "taskIds"

// forward listens at servers to the tasks and to what else is wanted, and returns when each has agreed or been given up
// on. Their notifications go to out.
func (s *listenStreams) forward(ctx context.Context, p *peer, surface *tool.Surface, want listenFilter,
	out *outbox) (*forwardedListen, *tool.RPCError) {
	tasks, refusal := s.tasksOf(p, surface, want.taskIDs)
	if refusal != nil {
		return nil, refusal
	}
	var rest []rawjson.Member
	if len(want.others) > 0 && direct(p.profile) && surface.Features != nil && len(surface.Features.Servers) == 1 {
		asked := &jsonrpc.Message{Method: tool.MethodListen}
		to, nothing := onward{server: surface.Features.Servers[0], unknown: true},
			func(context.Context) error { return nil }
		if s.forwarder.permitted(ctx, p, asked, to, nothing) == nil { // else as from a server that does not know it
			rest = want.others
		}
	}
	ctx, end := context.WithCancel(ctx)
	f := &forwardedListen{end: end}
	servers := make(map[string][]*ownership)
	for _, b := range tasks {
		servers[b.server] = append(servers[b.server], b)
	}
	if len(rest) > 0 {
		sole := surface.Features.Servers[0]
		servers[sole] = slices.Clip(servers[sole]) // it is listened to, with tasks or without
	}
	var acks sync.WaitGroup
	f.open = len(servers)
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		acks.Add(1)
		w := &serverListen{server: server, tasks: servers[server], rest: rest, peer: p, out: out, of: f,
			acked: sync.OnceFunc(acks.Done)}
		f.servers = append(f.servers, w)
		f.running.Go(func() {
			defer w.acked()
			err := s.deps.Servers.Listen(ctx, &tool.Request{Server: server, Params: w.params(), Hop: p.hop,
				Session: p.session}, w.agreed,
				func(n tool.Notification) { w.said(ctx, n) })
			if err != nil {
				s.deps.Logger.Debug("a server does not take what a client listens to", "server", server, "error", err)
				f.mu.Lock()
				f.open--
				f.mu.Unlock()
			}
		})
	}
	limited, stop := context.WithTimeout(ctx, subscribeWithin)
	defer stop()
	select {
	case <-finished(acks.Wait):
	case <-limited.Done():
	}
	return f, nil
}

// tasksOf returns the tasks of p that a client names.
func (s *listenStreams) tasksOf(p *peer, surface *tool.Surface, ids json.RawMessage) (tasks []*ownership,
	refusal *tool.RPCError) {
	if ids == nil || surface.Features == nil {
		return nil, nil
	}
	if _, refusal := s.tasks.servers(p, tool.MethodListen); refusal != nil {
		if refusal.Code == tool.CodeMissingCapabilities {
			return nil, refusal
		}
		return nil, nil // no server has tasks: none is agreed to
	}
	own := make(map[string]*ownership) // those that were not named yet: a client may name any number
	for _, b := range s.ownerships.tasks(p, surface.Features.Servers) {
		own[b.idFor(p.profile)] = b
	}
	bad := rawjson.Elements(ids, func(e []byte) bool {
		id, _ := rawjson.String(e)
		if b := own[id]; b != nil {
			delete(own, id)
			tasks = append(tasks, b)
		}
		return len(own) > 0
	})
	if bad != nil {
		return nil, invalidParams(filterTaskIDs + " must be an array")
	}
	return tasks, nil
}

// appendAgreed appends the members of a filter that say what servers have agreed to.
func (f *forwardedListen) appendAgreed(filter []byte) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	var tasks []string
	for _, w := range f.servers {
		agreed := make(map[string]bool)
		ids, _ := rawjson.Get(w.agreedTo, filterTaskIDs)
		_ = rawjson.Elements(ids, func(e []byte) bool { // none where it is absent
			id, _ := rawjson.String(e)
			agreed[id] = true
			return true
		})
		for _, b := range w.tasks {
			if agreed[b.id] {
				tasks = append(tasks, b.idFor(w.peer.profile))
			}
		}
		for _, m := range w.rest {
			if value, ok := rawjson.Get(w.agreedTo, m.Name()); ok {
				filter = rawjson.AppendMember(filter, string(m.Key), value)
			}
		}
	}
	return appendTexts(filter, filterTaskIDs, tasks)
}

// some reports whether anything is listened to.
func (f *forwardedListen) some() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open > 0
}

// stop ends the listening.
func (f *forwardedListen) stop() {
	f.end()
	f.running.Wait()
}

// serverListen is the part of a forwardedListen at one server.
type serverListen struct {
	server string
	tasks  []*ownership
	rest   []rawjson.Member
	peer   *peer
	out    *outbox
	of     *forwardedListen
	acked  func()

	agreedTo json.RawMessage // the filter that the server agreed to first; of.mu guards it
}

// params returns the params that ask the server for it.
func (w *serverListen) params() json.RawMessage {
	ids := make([]string, len(w.tasks))
	for i, b := range w.tasks {
		ids[i] = b.id
	}
	out := appendTexts([]byte(`{"notifications":{`), filterTaskIDs, ids)
	for _, m := range w.rest {
		out = rawjson.AppendMember(out, string(m.Key), m.Value)
	}
	return append(out, "}}"...)
}

// agreed takes what the server agrees to. Only the first time counts: the client is told once.
func (w *serverListen) agreed(filter json.RawMessage) {
	defer w.acked()
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.agreedTo == nil {
		w.agreedTo = slices.Clone(filter)
	}
}

// said passes on notifications about these tasks, and those that the hub does not know where they were asked for.
func (w *serverListen) said(ctx context.Context, n tool.Notification) {
	switch {
	case n.Method == tool.NoteTask:
		id, _ := rawjson.GetString(n.Params, "taskId")
		i := slices.IndexFunc(w.tasks, func(b *ownership) bool { return b.id == id })
		if i < 0 {
			return
		}
		b := w.tasks[i]
		to := answeredRequest{method: tool.MethodTaskGet,
			onward: onward{server: w.server, from: b.idFor(w.peer.profile), to: b.id, task: b.task}}
		tell := func() {
			if params, err := taskResult(ctx, w.peer, to, n.Params); err == nil {
				w.out.put(note{method: n.Method, params: params})
			}
		}
		if _, ended := rawjson.Get(n.Params, "result"); ended {
			w.of.running.Go(tell) // what the result names may be read from this server, which waits for us here
		} else {
			tell()
		}
		return
	case tool.IsKnownNote(n.Method) || isKnownRequest(n.Method) || len(w.rest) == 0:
		return
	}
	w.out.put(note{method: n.Method, params: n.Params})
}
