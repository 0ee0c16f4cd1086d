package downstream

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// logLevels are the protocol's levels, the most talkative first.
func logLevels() []string {
	return []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
}

// noLogs is a level that no message reaches.
const noLogs = 1 << 10

// levelOf is the rank of a level in logLevels; -1 for what is none.
func levelOf(raw json.RawMessage) int {
	name, ok := rawjson.String(raw)
	if !ok {
		return -1
	}
	return slices.Index(logLevels(), name)
}

// leastLevel is the level of the messages that the peer wants of its own calls. On 2026-07-28, "if absent, the server MUST
// NOT send any"; before, a client that has set none leaves it to the server.
func (p peer) leastLevel() int {
	if p.modern {
		if n := levelOf(p.hop.LogLevel); n >= 0 {
			return n
		}
		return noLogs
	}
	if n, set := p.caller.leastLevel(); set {
		return n
	}
	return unsetLevel()
}

// unsetLevel is the level of a session that has set none, for what is its own.
func unsetLevel() int { return slices.Index(logLevels(), "info") }

// leastLevel is the level that the session has asked for.
func (c *caller) leastLevel() (level int, set bool) {
	if c == nil {
		return noLogs, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Index(logLevels(), c.level), c.level != ""
}

// setLevel serves logging/setLevel.
func (s *Server) setLevel(p peer, m message, r replier) {
	raw, _ := rawjson.Get(m.params, "level")
	n := levelOf(raw)
	if n < 0 {
		r.refuse(invalidParams(fmt.Sprintf("level must be one of %q", logLevels())))
		return
	}
	p.caller.mu.Lock()
	p.caller.level = logLevels()[n]
	p.caller.mu.Unlock()
	s.levels.want(p.session.Key, n, 0)
	if p.session.IsOver() { // whoever drops what the session wanted may have done so before
		s.levels.drop(p.session.Key)
	}
	r.answer(whole([]byte("{}")))
}

// askLevel makes a request say to servers which log messages its sender wants, and keeps servers that know a level for the
// whole connection only from saying less.
func (s *Server) askLevel(p *peer) {
	if p.modern {
		if n := levelOf(p.hop.LogLevel); n >= 0 {
			s.levels.want("request/"+p.session.Key, n, levelFor)
		}
		return
	}
	if n, set := p.caller.leastLevel(); set {
		p.hop.LogLevel = rawjson.Quote(logLevels()[n])
	}
}

// levelFor is how long a level counts that a single request has asked for.
const levelFor = 10 * time.Minute

// levels are those that clients want, by who wants them.
type levels struct {
	tell func(level string) // nil: nobody

	mu     sync.Mutex
	wanted map[string]int
	until  map[string]*time.Timer
	told   string
}

// want notes what who wants: for a while, or where that is 0 until drop.
func (l *levels) want(who string, level int, while time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wanted == nil {
		l.wanted, l.until = make(map[string]int), make(map[string]*time.Timer)
	}
	l.wanted[who] = level
	if while > 0 {
		if t := l.until[who]; t != nil {
			t.Reset(while)
		} else {
			l.until[who] = time.AfterFunc(while, func() { l.drop(who) })
		}
	}
	l.update()
}

// drop forgets what who wants.
func (l *levels) drop(who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.until[who]; t != nil {
		t.Stop()
		delete(l.until, who)
	}
	if _, ok := l.wanted[who]; ok {
		delete(l.wanted, who)
		l.update()
	}
}

// stop ends what runs by itself.
func (l *levels) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.until {
		t.Stop()
	}
}

// update tells the most talkative level. l.mu is held, so that the last one told is the one that counts.
func (l *levels) update() {
	least, level := noLogs, ""
	for _, n := range l.wanted {
		least = min(least, n)
	}
	if least < noLogs {
		level = logLevels()[least]
	}
	if level != l.told && l.tell != nil {
		l.tell(level)
	}
	l.told = level
}

// heard takes in what a server says of itself, outside the stream of any call.
func (s *Server) heard(n tool.Notification) {
	switch n.Method {
	case noteMessage:
		s.logged(n)
	case noteUpdated:
		s.updated(n)
	default:
		if !isKnownNote(n.Method) {
			s.unheard(n)
			return
		}
		s.belongings.tell(n, nil)
	}
}

// notify takes in what a server says on the call's own stream.
func (c *openCall) notify(s *Server) func(tool.Notification) {
	return func(n tool.Notification) {
		switch {
		case n.Method == noteMessage:
		case n.Method == noteUpdated:
			s.updated(n)
			return
		case isKnownNote(n.Method):
			s.belongings.tell(n, c)
			return
		default:
			c.custom(n)
			return
		}
		if level, params, ok := logMessage(n, c.view); ok {
			c.say(saying{method: noteMessage, level: level, params: params})
		}
	}
}

// logged passes on a log message that came on no call's stream, while no call was in flight on its connection if calls have
// no streams there. While one session has calls open at the server, and nobody else, it belongs to them: a stream beside
// that of the call brought it, or their call waits for its client. While several have, it may hold what is none of the
// others' business, so that nobody gets it. Otherwise it is for every session that has asked for such messages, or for the
// one whose own connection it came on.
func (s *Server) logged(n tool.Notification) {
	if call, sessions := s.open.of(n.Server, n.Session); sessions > 1 {
		s.deps.Logger.Debug("a server's log message belongs to one of several sessions, and does not say which: it is dropped",
			"server", n.Server)
		return
	} else if call != nil {
		call.notify(s)(n)
		return
	}
	s.listeners.each(func(l *listener) {
		wanted, set := l.caller.leastLevel()
		switch own := n.Session == l.caller.session.Key; {
		case n.Session != "" && !own, !own && !set:
			return
		case !set:
			wanted = unsetLevel()
		}
		level, params, ok := logMessage(n, direct(l.profile))
		if ok && level >= wanted && s.shows(l, n.Server) {
			l.out.put(note{method: noteMessage, params: params})
		}
	})
}

// shows reports whether the listener's surface shows the server.
func (s *Server) shows(l *listener, server string) bool {
	surface, err := s.deps.Surfaces.Surface(l.profile, tool.Actor{Client: l.actor.Client})
	return err == nil && surface.Features != nil && slices.Contains(surface.Features.Servers, server)
}

// logMessage returns a server's log message as clients get it: its logger names the server first, and its data stays as it
// is. ok is false for what is no log message.
func logMessage(n tool.Notification, view bool) (level int, params json.RawMessage, ok bool) {
	raw, _ := rawjson.Get(n.Params, "level")
	if level = levelOf(raw); level < 0 {
		return 0, nil, false
	}
	params, err := withoutHop(n.Params)
	if err != nil {
		return 0, nil, false
	}
	if view {
		return level, params, true
	}
	logger := n.Server
	if raw, has := rawjson.Get(params, "logger"); has && !rawjson.IsNull(raw) {
		own, isText := rawjson.String(raw)
		if !isText {
			return 0, nil, false
		}
		logger += "/" + own
	}
	params, err = rawjson.Set(params, "logger", rawjson.Quote(logger))
	return level, params, err == nil
}
