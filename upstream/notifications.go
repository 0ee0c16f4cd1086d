package upstream

import (
	"bytes"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
)

// maxNotification is the size in bytes above which a notification is dropped.
const maxNotification = 1 << 20

// passOn passes a notification on to the call that it belongs to, or to the group's listeners. It does not block.
func (s *session) passOn(e jsonrpc.Message, c *pendingRequest) {
	method := e.Method
	for k := range lists.Kinds {
		if method == k.Changed() {
			s.listChanged(k)
			return
		}
	}
	listens := c != nil && c.until != nil
	switch method {
	case tool.NoteAcknowledged:
		if !listens {
			s.watch.acknowledge(e)
			return
		}
	case tool.NoteUpdated:
		if s.subscribed.isEmpty() {
			return // nobody asked
		}
	case tool.NoteProgress:
		token, _ := rawjson.Get(e.Params, "progressToken")
		if id, ours := idOf(token); !ours || !s.taskTokens.has(id) {
			return // it comes too late, or is for nobody
		}
	case tool.NoteInitialized, tool.NoteRootsChanged:
		return // none that a server sends, or not here
	case tool.NoteTask:
		if !listens {
			return // nobody asked
		}
	}
	if s.use == useListing && method != tool.NoteUpdated {
		return // it belongs to no client's session
	}
	n, ok := s.check(method, e)
	switch {
	case !ok:
		s.drop("a notification that is malformed or too large", e.Text)
	case method != tool.NoteUpdated && c != nil && c.Notify != nil:
		c.remark(n)
	default:
		s.group.notify(n)
	}
}

// check makes of a server's message what clients are told, if it is well-formed.
func (s *session) check(method string, e jsonrpc.Message) (n tool.Notification, ok bool) {
	n = tool.Notification{Server: s.cfg.ID, Session: s.client.Key, Method: method}
	if len(e.Params) > maxNotification || !e.Valid || method == "" || len(method) > maxMethod {
		return n, false
	}
	well := true
	switch method {
	case tool.NoteUpdated:
		well = rawjson.Text(e.Params, "uri") != ""
	case tool.NoteMessage:
		_, has := rawjson.Get(e.Params, "data")
		well = has && rawjson.Text(e.Params, "level") != ""
	case tool.NoteTaskStatus, tool.NoteTask:
		well = rawjson.Text(e.Params, "taskId") != ""
	case tool.NoteElicited:
		well = rawjson.Text(e.Params, "elicitationId") != ""
	}
	if e.Params == nil && !tool.IsKnownNote(method) {
		return n, true
	}
	if !well || !rawjson.IsObject(e.Params) {
		return n, false
	}
	params, err := tool.WithoutHop(e.Params)
	if err == nil {
		params, err = rawjson.Line(params)
	}
	n.Params = bytes.Clone(s.redact.Own(params)) // rather than the whole message that it came in
	return n, err == nil
}

// mayHaveChanged tells of an update of a resource that the server may have missed to send.
func (s *session) mayHaveChanged(uri string) {
	s.group.notify(tool.Notification{Server: s.cfg.ID, Session: s.client.Key, Method: tool.NoteUpdated,
		Params: uriParams(uri)})
}
