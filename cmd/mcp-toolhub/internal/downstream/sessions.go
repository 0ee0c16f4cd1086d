package downstream

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/sessionid"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// session is one HTTP session of an older protocol revision. The hub holds it; the SDK serves single messages.
type session struct {
	id       string // as its client sends it: long, and not for logs
	known    sessionid.Session
	holder   sessionid.Holder
	share    string // whose share of the sessions it counts to
	profile  string
	actor    tool.Actor // whose session it is; Actor.Client as negotiated at initialize
	inflight inflight
	caller   *caller
	leave    func()        // it is told of changes no more
	ended    chan struct{} // closed when it has left the table

	capabilities json.RawMessage // of its client, as that sent them
	questions    questions
	streaming    sync.Mutex
	stream       chan struct{} // closed when a newer standing stream takes the place of the present one

	// guarded by sessions.mu
	busy int         // requests being served
	used time.Time   // when the latest of them began or ended
	idle *time.Timer // ends the session; stopped while busy
}

// sessions is the table of live HTTP sessions.
type sessions struct {
	mu      sync.Mutex
	max     int
	timeout time.Duration
	byID    map[string]*session
}

func newSessions() *sessions { return &sessions{byID: make(map[string]*session)} }

// bound sets how many sessions there may be, and how long one may be idle.
func (t *sessions) bound(limit int, timeout time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.max, t.timeout = limit, timeout
}

// questions is how many questions to clients with sessions are open.
func (t *sessions) questions() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, s := range t.byID {
		n += s.questions.count()
	}
	return n
}

func (t *sessions) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

// add enters a session. Where there are as many as may be, others are taken out of the table to make room: they are
// returned, for the caller to end. It returns false where none can go.
func (t *sessions) add(s *session, whenIdle func()) (out []*session, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.byID) >= t.max {
		victim := t.leastDeserving(s.share)
		if victim == nil {
			return out, false
		}
		t.takeOut(victim)
		out = append(out, victim)
	}
	t.byID[s.id] = s
	s.used, s.idle = time.Now(), time.AfterFunc(t.timeout, whenIdle)
	return out, true
}

// leastDeserving is the session that makes room for one more of share: of whoever would have most sessions the one that
// was idle for longest. If all of those are busy, the oldest of them goes, unless they are the newcomer's own. So nobody
// can keep others out, neither with sessions nor with calls that do not end.
func (t *sessions) leastDeserving(share string) *session {
	counts := map[string]int{share: 1}
	for _, s := range t.byID {
		counts[s.share]++
	}
	greediest := share
	for who, n := range counts {
		if n > counts[greediest] {
			greediest = who
		}
	}
	var idle, busy *session
	for _, s := range t.byID {
		if s.share != greediest {
			continue
		}
		longest := &idle
		if s.busy > 0 {
			longest = &busy
		}
		if *longest == nil || s.used.Before((*longest).used) {
			*longest = s
		}
	}
	if idle == nil && greediest != share {
		return busy
	}
	return idle
}

// takeOut removes a session and reports whether it was there. t.mu is held.
func (t *sessions) takeOut(s *session) bool {
	if t.byID[s.id] != s {
		return false
	}
	delete(t.byID, s.id)
	s.idle.Stop()
	return true
}

// remove takes a session out of the table and reports whether it was there. One that is to go because it is idle stays
// if it is not.
func (t *sessions) remove(s *session, becauseIdle bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !(becauseIdle && s.busy > 0) && t.takeOut(s)
}

// whole is the session as the rest of the hub knows it.
func (s *session) whole() tool.Session {
	return tool.Session{Key: "http/" + s.known.Name, Name: sessionName(s.actor, s.known.Name), Ended: s.ended}
}

// callerSession stands for a session on revisions that have none: whoever calls has one, through whichever profile, and it
// has no end.
func callerSession(a tool.Actor) tool.Session {
	return tool.Session{Key: "caller/" + a.Name, Name: sessionName(a, "")}
}

// sessionName is the name of a's session for logs.
func sessionName(a tool.Actor, id string) string {
	name := a.Door + "/" + a.Name
	if id != "" {
		name += "/" + tool.Digest([]byte(id))[:8]
	}
	return name
}

// use returns the session and keeps it from going idle until release is called. ok is false where there is none.
func (t *sessions) use(id string) (s *session, release func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok = t.byID[id]
	if !ok {
		return nil, nil, false
	}
	s.busy++
	s.used = time.Now()
	s.idle.Stop()
	return s, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		s.used = time.Now()
		if s.busy--; s.busy == 0 && t.byID[id] == s {
			s.idle.Reset(t.timeout)
		}
	}, true
}

// has reports whether there is a session of that id.
func (t *sessions) has(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id] != nil
}

// where are the sessions that match.
func (t *sessions) where(match func(*session) bool) []*session {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*session
	for _, s := range t.byID {
		if match(s) {
			all = append(all, s)
		}
	}
	return all
}

// actorKey carries the actor of an HTTP request.
type actorKey struct{}

// capabilitiesOf are the capabilities that an initialize request declares; nil where it declares none. They are a copy,
// since they outlive the request.
func capabilitiesOf(m jsonrpc.Message) json.RawMessage {
	capabilities, _ := rawjson.Get(m.Params, "capabilities")
	if !rawjson.IsObject(capabilities) {
		return nil
	}
	return bytes.Clone(capabilities)
}

// join makes a session one that is told of changes, until leave is called.
func (s *Server) join(profile string, a tool.Actor, c *caller) (leave func()) {
	l := &listener{profile: profile, actor: a, caller: c, out: c.out, wants: Change{Tools: true, Prompts: true, Resources: true}}
	s.listeners.add(l)
	return func() {
		s.listeners.remove(l)
		s.levels.drop(c.session.Key)
		s.ownerships.drop(c.session.Key)
	}
}
