package upstream

import (
	"bytes"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/queue"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
)

const (
	// maxNotification is the size in bytes above which a notification is dropped.
	maxNotification = 1 << 20
	// maxNotifications bounds the resource updates of one connection that wait, and its other
	// notifications; maxNotificationBytes bounds these.
	maxNotifications     = 1024
	maxNotificationBytes = 8 << 20
)

// notifications checks what the server of one connection says on its own, and queues it for the
// group's listeners. The queue is bounded, and the reader of the connection never waits.
type notifications struct {
	*entry

	mu     sync.Mutex
	queue  queue.Queue[queued]
	busy   bool
	broken int
}

// queued is one notification that waits. about is the resource of an update, "" for all else.
type queued struct {
	note  tool.Notification
	about string
}

// Size implements queue.Item.
func (q queued) Size() int { return len(q.note.Params) }

// Key implements queue.Item: an update of a resource that waits already says nothing new.
func (q queued) Key() string { return q.about }

// handle passes a notification on to the call that it belongs to, or to the group's listeners. It does not block.
func (q *notifications) handle(sess *session, e jsonrpc.Message, c *pendingRequest) {
	method := e.Method
	for k := range lists.Kinds {
		if method == k.Changed() {
			sess.listChanged(k)
			return
		}
	}
	listens := c != nil && c.until != nil
	switch method {
	case tool.NoteAcknowledged:
		if !listens {
			sess.watch.acknowledge(e)
			return
		}
	case tool.NoteUpdated:
		if sess.subscribed.isEmpty() {
			return // nobody asked
		}
	case tool.NoteProgress:
		token, _ := rawjson.Get(e.Params, "progressToken")
		if id, ours := idOf(token); !ours || !sess.taskTokens.has(id) {
			return // it comes too late, or is for nobody
		}
	case tool.NoteCancelled, tool.NoteInitialized, tool.NoteRootsChanged:
		return // none that a server sends, or not here
	case tool.NoteTask:
		if !listens {
			return // nobody asked
		}
	}
	if q.use == useListing && method != tool.NoteUpdated {
		return // it belongs to no client's session
	}
	n, about, ok := q.check(method, e)
	switch {
	case !ok:
		q.refuse()
	case method != tool.NoteUpdated && c != nil && c.Notify != nil:
		c.remark(n)
	default:
		q.put(n, about)
	}
}

// check makes of a server's message what clients are told, if it is well-formed. about is the resource of an update.
func (q *notifications) check(method string, e jsonrpc.Message) (n tool.Notification, about string, ok bool) {
	n = tool.Notification{Server: q.cfg.ID, Session: q.client.Key, Method: method}
	if len(e.Params) > maxNotification || !e.Valid || method == "" || len(method) > maxMethod {
		return n, "", false
	}
	known, well := true, true
	switch method {
	case tool.NoteUpdated:
		about = rawjson.Text(e.Params, "uri")
		well = about != ""
	case tool.NoteMessage:
		_, has := rawjson.Get(e.Params, "data")
		well = has && rawjson.Text(e.Params, "level") != ""
	case tool.NoteTaskStatus:
		well = rawjson.Text(e.Params, "taskId") != ""
	case tool.NoteElicited:
		well = rawjson.Text(e.Params, "elicitationId") != ""
	case tool.NoteProgress, tool.NoteAcknowledged:
	case tool.NoteTask:
		well = rawjson.Text(e.Params, "taskId") != ""
	default:
		known = false
	}
	if !known && e.Params == nil {
		return n, "", true
	}
	if !well || !rawjson.IsObject(e.Params) {
		return n, "", false
	}
	params, err := tool.WithoutHop(e.Params)
	if err == nil {
		params, err = rawjson.Line(params)
	}
	n.Params = bytes.Clone(q.redact.Own(params)) // rather than the whole message that it came in
	return n, about, err == nil
}

// put queues n. An update of a resource that waits already says nothing new.
func (q *notifications) put(n tool.Notification, about string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.queue.Offer(queued{n, about}, queue.Bounds{Items: maxNotifications, Bytes: maxNotificationBytes}) {
		q.losses.Add(1)
		return
	}
	if !q.busy {
		q.busy = true
		q.group.running.Go(q.drain)
	}
}

// drain tells what waits, until nothing does.
func (q *notifications) drain() {
	for {
		q.mu.Lock()
		next, ok := q.queue.Next()
		q.busy = ok
		q.mu.Unlock()
		if !ok {
			return
		}
		q.group.notify(next.note)
	}
}

// putUpdate queues an update of a resource that the server may have missed to send.
func (q *notifications) putUpdate(uri string) {
	q.put(tool.Notification{Server: q.cfg.ID, Session: q.client.Key, Method: tool.NoteUpdated,
		Params: uriParams(uri)}, uri)
}

// refuse counts a malformed notification.
func (q *notifications) refuse() {
	q.losses.Add(1)
	q.mu.Lock()
	q.broken++
	n := q.broken
	q.mu.Unlock()
	if n&(n-1) == 0 { // 1, 2, 4, 8 …: a flood of them is no flood of records
		q.log.Warn("dropped a notification of the server: it is malformed or too large", "dropped_so_far", n)
	}
}
