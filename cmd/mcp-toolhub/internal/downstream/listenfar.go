package downstream

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// farListen is the part of a client's subscriptions/listen that servers serve themselves: tasks, and on a direct view what
// the hub does not know. Each server concerned is listened to for this client alone.
type farListen struct {
	end     context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	over map[string]bool           // by server, those that have refused
	got  map[string]rawjson.Change // what was agreed to, by name of the member
	ids  []string                  // of the tasks agreed to, as the client knows them
	many int                       // servers
}

// filterTaskIDs is the member of what is listened to that holds ids of tasks.
const filterTaskIDs = "taskIds"

// maxListenedTasks bounds the tasks of one subscriptions/listen.
const maxListenedTasks = 1000

// listenFar listens to what others asks for, and returns when every server concerned has agreed or been given up on. What
// they say goes to out.
func (s *Server) listenFar(ctx context.Context, p peer, surface *tool.Surface, others []rawjson.Member, out *outbox) (
	*farListen, *tool.RPCError,
) {
	ctx, end := context.WithCancel(ctx)
	f := &farListen{end: end, over: make(map[string]bool), got: make(map[string]rawjson.Change)}
	tasks, rest, refusal := s.farWishes(p, surface, others)
	if refusal != nil {
		end()
		return nil, refusal
	}
	if len(rest) > 0 {
		asked := message{method: methodListen}
		if s.refusal(ctx, p, asked, onward{server: surface.Features.Servers[0], unknown: true}) != nil {
			rest = nil // as from a server that does not know it
		}
	}
	servers := make(map[string][]*belonging)
	for _, b := range tasks {
		servers[b.server] = append(servers[b.server], b)
	}
	if len(rest) > 0 {
		sole := surface.Features.Servers[0]
		servers[sole] = append([]*belonging(nil), servers[sole]...) // it is listened to, with tasks or without
	}
	var acks sync.WaitGroup
	f.many = len(servers)
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		acks.Add(1)
		w := &farWish{server: server, tasks: servers[server], rest: rest, peer: p, out: out, of: f, acked: sync.OnceFunc(acks.Done)}
		f.running.Go(func() {
			defer w.acked()
			err := s.deps.Servers.Listen(ctx, &tool.Request{Server: server, Params: w.params(), Hop: p.hop, Session: p.session}, w.agreed, w.said)
			if err != nil {
				s.deps.Logger.Debug("a server does not take what a client listens to", "server", server, "error", err)
				f.mu.Lock()
				f.over[server] = true
				f.mu.Unlock()
			}
		})
	}
	waiting := make(chan struct{})
	go func() {
		acks.Wait()
		close(waiting)
	}()
	timer := time.NewTimer(subscribeWithin)
	defer timer.Stop()
	select {
	case <-waiting:
	case <-timer.C:
	case <-ctx.Done():
	}
	return f, nil
}

// farWishes is what a client wants that servers serve themselves: its tasks among those it names, and the rest.
func (s *Server) farWishes(p peer, surface *tool.Surface, others []rawjson.Member) (tasks []*belonging, rest []rawjson.Member,
	refusal *tool.RPCError) {
	if surface.Features == nil {
		return nil, nil, nil
	}
	servers := surface.Features.Servers
	for _, m := range others {
		if m.Name() != filterTaskIDs {
			if direct(p.profile) && len(servers) == 1 {
				rest = append(rest, m)
			}
			continue
		}
		if _, refusal := s.taskServers(p, methodListen); refusal != nil {
			if refusal.Code == tool.CodeMissingCapabilities {
				return nil, nil, refusal
			}
			continue // no server has tasks: none is agreed to
		}
		own := make(map[string]*belonging) // those that were not named yet: a client may name any number
		for _, b := range s.belongings.tasks(p, servers) {
			own[b.idFor(p.profile)] = b
		}
		bad := rawjson.Elements(m.Value, func(e []byte) bool {
			id, _ := rawjson.String(e)
			if b := own[id]; b != nil {
				delete(own, id)
				tasks = append(tasks, b)
			}
			return len(own) > 0 && len(tasks) < maxListenedTasks
		})
		if bad != nil {
			return nil, nil, invalidParams(filterTaskIDs + " must be an array")
		}
	}
	return tasks, rest, nil
}

// agreed are the members that say what servers have agreed to.
func (f *farListen) agreed() (all []rawjson.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ids) > 0 {
		list, _ := json.Marshal(f.ids) // texts always encode
		all = append(all, rawjson.Change{Name: filterTaskIDs, Value: list})
	}
	for _, name := range slices.Sorted(maps.Keys(f.got)) {
		all = append(all, f.got[name])
	}
	return all
}

// some reports whether anything is listened to.
func (f *farListen) some() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.over) < f.many
}

// stop ends the listening.
func (f *farListen) stop() {
	f.end()
	f.running.Wait()
}

// farWish is what one server is listened to for.
type farWish struct {
	server string
	tasks  []*belonging
	rest   []rawjson.Member
	peer   peer
	out    *outbox
	of     *farListen
	acked  func()
}

// params ask for it.
func (w *farWish) params() json.RawMessage {
	out := []byte(`{"notifications":{`)
	if len(w.tasks) > 0 {
		ids := make([]string, len(w.tasks))
		for i, b := range w.tasks {
			ids[i] = b.id
		}
		list, _ := json.Marshal(ids) // texts always encode
		out = rawjson.AppendMember(out, filterTaskIDs, list)
	}
	for _, m := range w.rest {
		out = rawjson.AppendMember(out, string(m.Key), m.Value)
	}
	return append(out, "}}"...)
}

// agreed takes what the server agrees to. Only the first time counts: the client is told once.
func (w *farWish) agreed(filter json.RawMessage) {
	defer w.acked()
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	_ = rawjson.Members(filter, func(m rawjson.Member) bool {
		if m.Name() == filterTaskIDs {
			_ = rawjson.Elements(m.Value, func(e []byte) bool {
				id, _ := rawjson.String(e)
				if b := w.task(id); b != nil && !slices.Contains(w.of.ids, b.idFor(w.peer.profile)) {
					w.of.ids = append(w.of.ids, b.idFor(w.peer.profile))
				}
				return true
			})
			return true
		}
		asked := slices.ContainsFunc(w.rest, func(own rawjson.Member) bool { return own.Name() == m.Name() })
		if _, known := w.of.got[m.Name()]; asked && !known {
			w.of.got[m.Name()] = rawjson.Change{Name: m.Name(), Value: slices.Clone(m.Value)}
		}
		return true
	})
}

// task is the task that the server calls id, if it is one of those listened to.
func (w *farWish) task(id string) *belonging {
	i := slices.IndexFunc(w.tasks, func(b *belonging) bool { return b.id == id })
	if i < 0 {
		return nil
	}
	return w.tasks[i]
}

// said passes on what the server says: of these tasks, and what the hub does not know where that was asked for.
func (w *farWish) said(n tool.Notification) {
	params := n.Params
	switch {
	case n.Method == tool.NoteTask:
		raw, _ := rawjson.Get(params, "taskId")
		id, _ := rawjson.String(raw)
		b := w.task(id)
		if b == nil {
			return
		}
		var err error
		to := forwarded{server: w.server, method: tool.MethodTaskGet, asked: b.idFor(w.peer.profile), native: b.id}
		if params, err = aboutTaskResult(w.peer, to, params); err != nil {
			return
		}
	case isKnownNote(n.Method) || isKnownRequest(n.Method) || len(w.rest) == 0:
		return
	}
	w.out.put(note{method: n.Method, params: params})
}
