package upstream

import (
	"bytes"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	// maxNotice is the size in bytes above which a notification is dropped.
	maxNotice = 1 << 20
	// maxNotices and maxNoticeBytes bound the log messages of one connection that wait to be told, and maxNotices its updates.
	maxNotices     = 1024
	maxNoticeBytes = 8 << 20
)

// hearing is heard for one session.
func (s *server) hearing(sess *session) func(envelope, *laneCall) {
	return func(e envelope, c *laneCall) { s.heard(sess, e, c) }
}

// heard handles a notification of the server, other than those about requests. c is the call that it belongs to, as far
// as the stream tells on which it came, or nil. It does not block.
func (s *server) heard(sess *session, e envelope, c *laneCall) {
	method, _ := rawjson.String(e.method)
	for k := range kinds {
		if method == k.changed() {
			sess.listChanged(k)
			return
		}
	}
	listens := c != nil && c.listens
	switch method {
	case noteListenAcked:
		if !listens {
			sess.watch.heard(e)
			return
		}
	case noteUpdated:
		if sess.book.isEmpty() {
			return // nobody asked
		}
	case noteProgress:
		if token, ours := e.progressToken(); !ours || !sess.lasting.has(token) {
			return // it comes too late, or is for nobody
		}
	case noteCancelled, noteInitialized, noteRootsChanged:
		return // none that a server sends, or not here
	case tool.NoteTask:
		if !listens {
			return // nobody asked
		}
	}
	if s.use == useListing && method != noteUpdated {
		return // of the connection that only lists: it belongs to nobody's session
	}
	n, about, ok := s.notification(method, e)
	if !ok {
		s.notices.refuse(s)
		return
	}
	if method != noteUpdated && c != nil && c.notify != nil {
		c.remark(n)
		return
	}
	s.notices.put(n, about)
}

// isUnheardOf reports whether the hub does not know what a server means by a notification.
func isUnheardOf(method string) bool {
	switch method {
	case noteListenAcked, noteMessage, noteUpdated, noteProgress, noteCancelled, noteInitialized, noteRootsChanged, tool.NoteTask,
		tool.NoteTaskStatus, tool.NoteElicited:
		return false
	}
	for k := range kinds {
		if method == k.changed() {
			return false
		}
	}
	return true
}

// notification makes of a server's message what is told of it, if it is well-formed. about is the resource of an update.
func (s *server) notification(method string, e envelope) (n tool.Notification, about string, ok bool) {
	n = tool.Notification{Server: s.cfg.ID, Session: s.client.Key, Method: method}
	if len(e.params) > maxNotice || !e.valid || method == "" || len(method) > maxMethod {
		return n, "", false
	}
	known, well := true, true
	switch method {
	case noteUpdated:
		about = text(e.params, "uri")
		well = about != ""
	case noteMessage:
		_, has := rawjson.Get(e.params, "data")
		well = has && text(e.params, "level") != ""
	case tool.NoteTaskStatus:
		well = text(e.params, "taskId") != ""
	case tool.NoteElicited:
		well = text(e.params, "elicitationId") != ""
	case noteProgress, noteListenAcked:
	case tool.NoteTask:
		well = text(e.params, "taskId") != ""
	default:
		known = false
	}
	if !known && e.params == nil {
		return n, "", true
	}
	if !well || !rawjson.IsObject(e.params) {
		return n, "", false
	}
	params, err := withoutHop(e.params)
	if err == nil {
		params, err = rawjson.Line(params)
	}
	n.Params = bytes.Clone(params) // rather than the whole message that it came in
	return n, about, err == nil
}

// notices are the notifications of one connection on their way to the group's listeners. However many a server sends, few
// wait, and the reader of the connection does not.
type notices struct {
	tell func(tool.Notification)
	run  func(func()) // runs it in a goroutine that the group waits for

	mu      sync.Mutex
	queue   []notice
	logs    int // in queue, but for updates
	size    int // of those, in bytes
	updates map[string]bool
	busy    bool
	broken  int
	losses  *losses
}

// notice is one that waits. about is the resource of an update, "" for all else.
type notice struct {
	note  tool.Notification
	about string
}

// put queues n. An update of a resource that waits already says nothing new.
func (q *notices) put(n tool.Notification, about string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case about != "" && q.updates[about]:
		return
	case about != "" && len(q.updates) >= maxNotices, about == "" && (q.logs >= maxNotices || q.size+len(n.Params) > maxNoticeBytes):
		q.losses.add()
		return
	case about != "":
		if q.updates == nil {
			q.updates = make(map[string]bool)
		}
		q.updates[about] = true
	default:
		q.logs++
		q.size += len(n.Params)
	}
	q.queue = append(q.queue, notice{n, about})
	if !q.busy {
		q.busy = true
		q.run(q.drain)
	}
}

// drain tells what waits, until nothing does.
func (q *notices) drain() {
	for {
		q.mu.Lock()
		if len(q.queue) == 0 {
			q.busy, q.queue = false, nil
			q.mu.Unlock()
			return
		}
		next := q.queue[0]
		q.queue = q.queue[1:]
		if next.about != "" {
			delete(q.updates, next.about)
		} else {
			q.logs--
			q.size -= len(next.note.Params)
		}
		q.mu.Unlock()
		q.tell(next.note)
	}
}

// refuse counts a malformed notification.
func (q *notices) refuse(s *server) {
	q.losses.add()
	q.mu.Lock()
	q.broken++
	n := q.broken
	q.mu.Unlock()
	if n&(n-1) == 0 { // 1, 2, 4, 8 …: a flood of them is no flood of records
		s.log.Warn("dropped a notification of the server: it is malformed or too large", "dropped_so_far", n)
	}
}

// OnNotification registers f to be told what servers say on their own: changes of what was subscribed to, and all else that
// is no affair of the connection itself, unless it belongs to a call and went to its Notify. Those of one
// connection come in order and one at a time, those of several concurrently. f returns quickly: what a server says
// meanwhile is kept within bounds, and beyond these lost. Of Params, the keys of _meta that belong to the hop are left
// out. It is called before Start.
func (g *Group) OnNotification(f func(tool.Notification)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hearers = append(g.hearers, f)
}

// tellNotice hands a notification to whoever listens. It is called once the group has been started.
func (g *Group) tellNotice(n tool.Notification) {
	for _, f := range g.hearers {
		f(n)
	}
}
