package downstream

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// ownedID is an id that a server gave to something that it did for one caller, and sends notifications of later.
type ownedID struct {
	server     string
	connection string // key of the session or person whose own connection it is; "" for a shared one
	kind       idKind
	id         string
}

type idKind int

const (
	taskID         idKind = iota
	taskProgressID        // of the call that became a task: the progress token that the server knows
	elicitationID         // of an elicitation by URL, which ends elsewhere
)

// ownership says which caller an id belongs to.
type ownership struct {
	ownedID
	caller  *caller
	session string          // key of the caller's
	shown   string          // id of a task on surfaces of several servers; its own where no other task has that
	token   json.RawMessage // the caller's progress token; nil for none
	modern  bool            // of protocol 2026-07-28
	task    *invoke.Task    // that the id is of; nil for another id

	answered bool // the caller knows of it
}

// ownerships says which caller each id of a server belongs to. A server that gives an id again, after a restart for
// instance, takes it from its owner. The zero value is ready.
type ownerships struct {
	mu        sync.Mutex
	byID      map[ownedID]*ownership
	bySession map[string][]*ownership // the latest last
	open      map[string]int          // unanswered calls that may become tasks, by server
	early     []tool.Notification     // of ids that their owner does not know, or that such a call may bring
}

const (
	maxOwned = 1000 // of each kind and caller: the oldest are forgotten
	maxEarly = 256  // of all owners
)

// expect says that a call to server may become a task, until done is called.
func (t *ownerships) expect(server string) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	set(&t.open, server, t.open[server]+1)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.open[server]--; t.open[server] > 0 {
			return
		}
		delete(t.open, server)
		t.early = slices.DeleteFunc(t.early, func(n tool.Notification) bool {
			about, _ := idOf(n)
			return n.Server == server && t.byID[about] == nil
		})
	}
}

// add makes b known, unless its caller's session has ended: nobody would drop it then.
func (t *ownerships) add(b *ownership) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.caller.session.IsOver() { // drop comes after that, or has come
		return
	}
	if b.kind == taskID {
		b.shown = t.freeID(b)
	}
	t.forget(t.byID[b.ownedID])
	set(&t.byID, b.ownedID, b)
	set(&t.bySession, b.session, append(t.bySession[b.session], b))
	n := 0
	for _, own := range t.bySession[b.session] {
		if own.kind == b.kind {
			n++
		}
	}
	if n > maxOwned {
		i := slices.IndexFunc(t.bySession[b.session], func(own *ownership) bool { return own.kind == b.kind })
		t.forget(t.bySession[b.session][i])
	}
}

// freeID returns the id of a task on surfaces of several servers: the server's own, with the server
// in front where another task has that already. t.mu is held.
func (t *ownerships) freeID(b *ownership) string {
	taken := func(id string) bool {
		return slices.ContainsFunc(t.bySession[b.session], func(own *ownership) bool {
			return own.kind == taskID && own.shown == id && own.ownedID != b.ownedID
		})
	}
	id := b.id
	for taken(id) { // servers choose their ids, and may choose one like that
		id = b.server + "/" + id
	}
	return id
}

// forget removes b; nil is allowed. t.mu is held.
func (t *ownerships) forget(b *ownership) {
	if b == nil {
		return
	}
	if t.byID[b.ownedID] == b {
		delete(t.byID, b.ownedID)
	}
	t.bySession[b.session] = slices.DeleteFunc(t.bySession[b.session], func(own *ownership) bool { return own == b })
	if len(t.bySession[b.session]) == 0 {
		delete(t.bySession, b.session)
	}
}

// drop removes all that a session owns.
func (t *ownerships) drop(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range slices.Clone(t.bySession[session]) {
		t.forget(b)
	}
}

// release passes on the notifications about all that came before their caller knew of them.
func (t *ownerships) release(all ...*ownership) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range all {
		b.answered = true
		t.early = slices.DeleteFunc(t.early, func(n tool.Notification) bool {
			about, _ := idOf(n)
			if about != b.ownedID {
				return false
			}
			if said, ok := b.note(n); ok {
				b.caller.put(said)
			}
			return true
		})
	}
}

// tell passes n on to the owner of its id, on the stream of call where that is a call of the same
// session. It keeps n until the owner knows of the id, and where a call that is open may bring it.
func (t *ownerships) tell(n tool.Notification, call *callNotes) {
	about, ok := idOf(n)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.byID[about]
	if b == nil && t.open[n.Server] == 0 {
		return
	}
	if b == nil || !b.answered {
		t.early = append(t.early, n)
		t.dropEarly()
	} else if said, ok := b.note(n); !ok {
	} else if call != nil && call.session == b.session {
		call.add(said)
	} else {
		b.caller.put(said)
	}
}

// dropEarly makes room: the oldest of the server that has said the most goes. t.mu is held.
func (t *ownerships) dropEarly() {
	if len(t.early) <= maxEarly {
		return
	}
	said, most := make(map[string]int), ""
	for _, n := range t.early {
		if said[n.Server]++; said[n.Server] > said[most] {
			most = n.Server
		}
	}
	i := slices.IndexFunc(t.early, func(n tool.Notification) bool { return n.Server == most })
	t.early = slices.Delete(t.early, i, i+1)
}

// note returns n as the caller gets it.
func (b *ownership) note(n tool.Notification) (said note, ok bool) {
	params, err := n.Params, error(nil)
	switch b.kind {
	case taskProgressID:
		if b.token == nil {
			return note{}, false
		}
		params, err = rawjson.Set(params, "progressToken", b.token)
	case taskID:
		if id := b.idFor(b.caller.view); id != b.id {
			params, err = rawjson.Set(params, "taskId", rawjson.Quote(id))
		}
	}
	return note{method: n.Method, params: params}, err == nil
}

// idFor returns the id of a task for clients of a profile.
func (b *ownership) idFor(profile string) string {
	if direct(profile) {
		return b.id
	}
	return b.shown
}

// idOf returns the id that a notification of a server is about.
func idOf(n tool.Notification) (about ownedID, ok bool) {
	about = ownedID{server: n.Server, connection: n.Session}
	switch n.Method {
	case tool.NoteTaskStatus:
		about.kind, about.id = taskID, rawjson.Text(n.Params, "taskId")
	case tool.NoteProgress:
		token, _ := rawjson.Get(n.Params, "progressToken")
		about.kind, about.id = taskProgressID, string(token)
	case tool.NoteElicited:
		about.kind, about.id = elicitationID, rawjson.Text(n.Params, "elicitationId")
	default:
		return about, false
	}
	return about, about.id != ""
}

// task returns the task that a caller calls id on a profile, among those of servers; nil where it has none.
func (t *ownerships) task(p *peer, servers []string, id string) *ownership {
	for _, b := range t.tasks(p, servers) {
		if b.idFor(p.profile) == id {
			return b
		}
	}
	return nil
}

// tasks returns the tasks of a caller at these servers, the oldest first.
func (t *ownerships) tasks(p *peer, servers []string) (all []*ownership) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.bySession[p.session.Key] {
		if b.kind == taskID && b.modern == p.modern && slices.Contains(servers, b.server) {
			all = append(all, b)
		}
	}
	return all
}

// keepTask notes the task that a server has made of a call of p, and its progress where the client
// wants that. Notifications about them wait until they are released, when the caller knows of the task.
func (t *ownerships) keepTask(p *peer, server string, made *invoke.Task, token json.RawMessage) (kept []*ownership) {
	task := ownership{ownedID: ownedID{server: server, connection: made.Session, kind: taskID, id: made.ID},
		caller: p.caller, session: p.session.Key, modern: p.modern}
	progress := task
	task.task = made
	t.add(&task)
	kept = append(kept, &task)
	if made.RequestID != "" && token != nil && !p.modern {
		progress.kind, progress.id, progress.token = taskProgressID, made.RequestID, token // which the server knows
		t.add(&progress)
		kept = append(kept, &progress)
	}
	return kept
}

// show returns the outcome of a call with the id of its task as p's client knows it.
func (b *ownership) show(p *peer, o invoke.Outcome) (invoke.Outcome, error) {
	if b.idFor(p.profile) == b.id {
		return o, nil
	}
	result, err := withTaskID(o.Result, b.idFor(p.profile))
	if err == nil {
		o.Result = result
		o.Object, _ = rawjson.ReadObject(result)
	}
	return o, err
}

// elicits notes an elicitation by URL that goes to the client of p, so that the client hears of its end. That exists on
// protocol 2025-11-25 only.
func (t *ownerships) elicits(p *peer, server string, params []byte) {
	if p.modern || p.actor.Client.ProtocolVersion < tasksSince {
		return
	}
	id, ok := rawjson.GetString(params, "elicitationId")
	if mode, _ := rawjson.GetString(params, "mode"); mode != "url" || !ok || id == "" || len(id) > maxLinkLength {
		return
	}
	connections := []string{"", p.session.Key} // whichever of them the server has
	if p.session.Person != "" {
		connections = append(connections, p.session.PersonKey())
	}
	for _, connection := range connections {
		t.add(&ownership{ownedID: ownedID{server: server, connection: connection, kind: elicitationID, id: id},
			caller:  p.caller,
			session: p.session.Key, answered: true})
	}
}

// maxElicitations bounds those of one error that are noted.
const maxElicitations = 100

// elicitsFirst notes the elicitations that an error wants before the call is repeated.
func (t *ownerships) elicitsFirst(p *peer, server string, err *tool.RPCError) {
	if err.Code != tool.CodeURLElicitationRequired {
		return
	}
	if err.Own {
		server = tool.HubItself
	}
	list, _ := rawjson.Get(err.Data, "elicitations")
	n := 0
	_ = rawjson.Elements(list, func(e []byte) bool {
		t.elicits(p, server, e)
		n++
		return n < maxElicitations
	})
}
