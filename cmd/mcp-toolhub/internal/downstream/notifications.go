package downstream

import (
	"encoding/json"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// serverNotifications passes the notifications of servers on to the clients that they concern.
type serverNotifications struct {
	*parts
}

// receive takes a notification that came on the stream of no call.
func (s *serverNotifications) receive(n tool.Notification) {
	switch {
	case n.Method == tool.NoteMessage:
		s.logged(n)
	case n.Method == tool.NoteUpdated:
		s.subscriptions.updated(n)
	case tool.IsKnownNote(n.Method):
		s.ownerships.tell(n, nil)
	case !isKnownRequest(n.Method):
		s.unknown(n)
	}
}

// notify takes a notification that came on the call's own stream.
func (q *callNotes) notify(n tool.Notification) {
	switch {
	case n.Method == tool.NoteMessage:
		if level, params, ok := logMessage(n, q.view); ok {
			q.add(note{method: tool.NoteMessage, level: level, params: params})
		}
	case n.Method == tool.NoteUpdated:
		q.subscriptions.updated(n)
	case tool.IsKnownNote(n.Method):
		q.ownerships.tell(n, q)
	case q.view && !isKnownRequest(n.Method):
		q.add(note{method: n.Method, params: n.Params})
	}
}

// logged passes on a log message that belongs to no call. It is for every session that has asked for
// such messages, or for the session whose own connection it came on.
func (s *serverNotifications) logged(n tool.Notification) {
	s.listeners.each(func(l *listener) {
		wanted, set := l.caller.leastLevel()
		switch own := n.Session == l.caller.session.Key; {
		case !l.caller.session.Hears(n.Session), !own && !set:
			return
		case !set:
			wanted = levelInfo
		}
		level, params, ok := logMessage(n, direct(l.profile))
		if ok && level >= wanted && s.surfaces.shows(l, n.Server) {
			l.out.put(note{method: tool.NoteMessage, params: params})
		}
	})
}

// unknown passes a notification that the hub does not know on to the clients of the server's direct
// view. A known request without an id is none: there are clients that would put a question to their
// user all the same, when nobody may ask.
func (s *serverNotifications) unknown(n tool.Notification) {
	s.listeners.each(func(l *listener) {
		if l.profile == DirectView(n.Server) && l.caller.session.Hears(n.Session) {
			l.out.put(note{method: n.Method, params: n.Params})
		}
	})
}

// updated tells the clients that have subscribed to a resource, or to one that it is part of, that it has changed.
func (t *resourceSubscriptions) updated(n tool.Notification) {
	uri, ok := rawjson.GetString(n.Params, "uri")
	if !ok {
		return
	}
	for _, sub := range t.to(n.Server, uri) {
		if !sub.who.Hears(n.Session) {
			continue
		}
		shown, err := sub.shown+strings.TrimPrefix(uri, sub.uri), error(nil)
		params := n.Params
		if shown != uri {
			params, err = rawjson.Set(params, "uri", rawjson.Quote(shown))
		}
		key := "" // a server may tell of any number of parts: the outbox bounds what has no key
		if uri == sub.uri {
			key = tool.NoteUpdated + " " + shown
		}
		if err == nil {
			sub.out.put(note{key: key, method: tool.NoteUpdated, params: params})
		}
	}
}

// logMessage returns a server's log message as clients get it: its logger names the server first,
// and its data stays as it is. ok is false for what is no log message.
func logMessage(n tool.Notification, view bool) (level int, params json.RawMessage, ok bool) {
	raw, _ := rawjson.Get(n.Params, "level")
	if level = levelOf(raw); level < 0 {
		return 0, nil, false
	}
	if view {
		return level, n.Params, true
	}
	logger := n.Server
	if raw, has := rawjson.Get(n.Params, "logger"); has && !rawjson.IsNull(raw) {
		own, isText := rawjson.String(raw)
		if !isText {
			return 0, nil, false
		}
		logger += "/" + own
	}
	params, err := rawjson.Set(n.Params, "logger", rawjson.Quote(logger))
	return level, params, err == nil
}
