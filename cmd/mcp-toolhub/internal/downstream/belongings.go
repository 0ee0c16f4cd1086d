package downstream

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// thing is something that a server has named by an id of its own in what it did for one caller, and tells of later.
type thing struct {
	server     string
	connection string // key of the session whose own connection it is; "" for a shared one
	kind       thingKind
	id         string
}

type thingKind int

const (
	aTask         thingKind = iota
	aTaskCall               // the call that became a task, by the progress token that the server knows
	anElicitation           // one by URL, which ends elsewhere
)

// belonging is a thing and whose it is.
type belonging struct {
	thing
	caller  *caller
	session string          // key of the caller's
	shown   string          // the id of a task on surfaces of several servers; its own where that is nobody else's
	token   json.RawMessage // the caller's progress token; nil for none
	modern  bool            // of protocol 2026-07-28

	answered bool // the caller knows of it
	waiting  []note
}

// belongings are whose the things are. A server that names something anew, as one does that was started again, takes it
// from whoever had it. The zero value is ready.
type belongings struct {
	mu      sync.Mutex
	byThing map[thing]*belonging
	bySess  map[string][]*belonging // the latest last
	open    map[string]int          // calls that may become tasks and have not been answered, by server
	early   []tool.Notification     // of what nobody has yet, while there are such calls
}

const (
	maxBelongings = 1000 // of each kind and caller: the oldest are forgotten
	maxEarly      = 256  // of all servers
)

// expect says that a call to server may bring things, until done is called.
func (t *belongings) expect(server string) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = make(map[string]int)
	}
	t.open[server]++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.open[server]--; t.open[server] > 0 {
			return
		}
		delete(t.open, server)
		t.early = slices.DeleteFunc(t.early, func(n tool.Notification) bool { return n.Server == server })
	}
}

// add makes b known, unless its caller's session has ended: then nobody would ask for it, and nobody forget it. What the
// server has told of it already waits for release.
func (t *belongings) add(b *belonging) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.caller != nil && b.caller.session.IsOver() { // drop comes after that, or has come
		return
	}
	if t.byThing == nil {
		t.byThing, t.bySess = make(map[thing]*belonging), make(map[string][]*belonging)
	}
	if b.kind == aTask {
		b.shown = t.freeID(b)
	}
	t.forget(t.byThing[b.thing])
	t.byThing[b.thing] = b
	t.bySess[b.session] = append(t.bySess[b.session], b)
	n := 0
	for _, own := range t.bySess[b.session] {
		if own.kind == b.kind {
			n++
		}
	}
	if n > maxBelongings {
		i := slices.IndexFunc(t.bySess[b.session], func(own *belonging) bool { return own.kind == b.kind })
		t.forget(t.bySess[b.session][i])
	}
	t.early = slices.DeleteFunc(t.early, func(n tool.Notification) bool {
		about, ok := thingOf(n)
		if ours := ok && about == b.thing; !ours {
			return false
		}
		b.told(n)
		return true
	})
}

// freeID is by what id the caller knows a task where it sees several servers: the server's own, or one that begins with
// the server where another task goes by that already. t.mu is held.
func (t *belongings) freeID(b *belonging) string {
	taken := func(id string) bool {
		return slices.ContainsFunc(t.bySess[b.session], func(own *belonging) bool {
			return own.kind == aTask && own.shown == id && own.thing != b.thing
		})
	}
	id := b.id
	for taken(id) { // servers choose their ids, and may choose one like that
		id = b.server + "/" + id
	}
	return id
}

// forget takes b out. t.mu is held.
func (t *belongings) forget(b *belonging) {
	if b == nil {
		return
	}
	if t.byThing[b.thing] == b {
		delete(t.byThing, b.thing)
	}
	t.bySess[b.session] = slices.DeleteFunc(t.bySess[b.session], func(own *belonging) bool { return own == b })
	if len(t.bySess[b.session]) == 0 {
		delete(t.bySess, b.session)
	}
}

// drop forgets all that a session has.
func (t *belongings) drop(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.bySess[session] {
		if t.byThing[b.thing] == b {
			delete(t.byThing, b.thing)
		}
	}
	delete(t.bySess, session)
}

// release passes on what was told of b before its caller knew of it, and from now on all that is told.
func (t *belongings) release(b *belonging) {
	if b == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	b.answered = true
	for _, n := range b.waiting {
		b.caller.put(n)
	}
	b.waiting = nil
}

// tell passes n on to whose it is about, in call where that is a call of the same caller. It is kept for a while where
// nobody is known, and may soon be.
func (t *belongings) tell(n tool.Notification, call *openCall) {
	about, ok := thingOf(n)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.byThing[about]
	switch {
	case b == nil && t.open[n.Server] > 0:
		t.early = append(t.early, n)
		t.dropEarly()
	case b == nil:
	case b.answered && call != nil && call.session == b.session:
		if said, ok := b.note(n); ok {
			call.say(saying{method: said.method, params: said.params})
		}
	default:
		b.told(n)
	}
}

// dropEarly makes room: the oldest of the server that has said the most goes. t.mu is held.
func (t *belongings) dropEarly() {
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

// told passes n on, or lets it wait until the caller knows of b.
func (b *belonging) told(n tool.Notification) {
	said, ok := b.note(n)
	switch {
	case !ok:
	case b.answered:
		b.caller.put(said)
	case len(b.waiting) < maxEarly:
		b.waiting = append(b.waiting, said)
	}
}

// note is what the caller is told by n.
func (b *belonging) note(n tool.Notification) (said note, ok bool) {
	params, err := withoutHop(n.Params)
	if err != nil {
		return note{}, false
	}
	switch b.kind {
	case aTaskCall:
		if b.token == nil {
			return note{}, false
		}
		params, err = rawjson.Set(params, "progressToken", b.token)
	case aTask:
		if id := b.idFor(b.caller.view); id != b.id {
			params, err = rawjson.Set(params, "taskId", rawjson.Quote(id))
		}
	}
	return note{method: n.Method, params: params}, err == nil
}

// idFor is the id by which a client of a profile knows a task.
func (b *belonging) idFor(profile string) string {
	if direct(profile) {
		return b.id
	}
	return b.shown
}

// thingOf is what a notification of a server is about.
func thingOf(n tool.Notification) (about thing, ok bool) {
	about = thing{server: n.Server, connection: n.Session}
	member := ""
	switch n.Method {
	case tool.NoteTaskStatus:
		about.kind, member = aTask, "taskId"
	case tool.NoteProgress:
		about.kind, member = aTaskCall, "progressToken"
	case tool.NoteElicited:
		about.kind, member = anElicitation, "elicitationId"
	default:
		return about, false
	}
	raw, _ := rawjson.Get(n.Params, member)
	about.id, ok = rawjson.String(raw)
	return about, ok && about.id != ""
}

// put leaves a note for the session's standing stream, where it has one.
func (c *caller) put(n note) {
	if c != nil && c.out != nil {
		c.out.put(n)
	}
}

// task returns the task that a caller calls id on a profile, among those of servers; nil where it has none.
func (t *belongings) task(p peer, servers []string, id string) *belonging {
	for _, b := range t.tasks(p, servers) {
		if b.idFor(p.profile) == id {
			return b
		}
	}
	return nil
}

// tasks are the tasks of a caller at these servers, in the order of their making.
func (t *belongings) tasks(p peer, servers []string) (all []*belonging) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.bySess[p.session.Key] {
		if b.kind == aTask && b.modern == p.modern && slices.Contains(servers, b.server) {
			all = append(all, b)
		}
	}
	return all
}
