package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// session is one HTTP session of an older protocol revision. The SDK holds its streams; this is what the lane and the
// door have to know of it.
type session struct {
	id       string
	profile  string
	actor    tool.Actor // whose session it is; Actor.Client as negotiated at initialize
	sdk      *mcp.ServerSession
	inflight inflight
	caller   *caller
	ended    chan struct{} // closed when it has left the table

	capabilities json.RawMessage // of its client, as that sent them
	questions    questions
	streaming    sync.Mutex
	stream       chan struct{} // closed when a newer standing stream takes the place of the present one

	// guarded by sessions.mu
	busy int         // requests being served
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

// full reports whether one session more would be too many.
func (t *sessions) full() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID) >= t.max
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

// add enters a session, which leaves the table by itself when the SDK has ended it. Then leave is called.
func (t *sessions) add(s *session, leave func()) {
	t.mu.Lock()
	t.byID[s.id] = s
	s.idle = time.AfterFunc(t.timeout, func() { _ = s.sdk.Close() })
	t.mu.Unlock()
	go func() {
		_ = s.sdk.Wait()
		t.remove(s)
		leave()
	}()
}

func (t *sessions) remove(s *session) {
	t.mu.Lock()
	delete(t.byID, s.id)
	s.idle.Stop()
	t.mu.Unlock()
	s.inflight.cancelAll()
	close(s.ended)
}

// whole is the session as the rest of the hub knows it.
func (s *session) whole() tool.Session {
	return tool.Session{Key: "http/" + s.id, Name: sessionName(s.actor, s.id), Ended: s.ended}
}

// callerSession stands for a session on revisions that have none: whoever calls has one, through whichever profile, and it
// has no end.
func callerSession(a tool.Actor) tool.Session {
	return tool.Session{Key: "caller/" + a.Name, Name: sessionName(a, "")}
}

// sessionName is the name of a's session for logs. An id does not stand there in full: it opens the session.
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
	s.idle.Stop()
	return s, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if s.busy--; s.busy == 0 && t.byID[id] == s {
			s.idle.Reset(t.timeout)
		}
	}, true
}

// closeWhere ends the sessions that match and waits until the SDK has let go of them.
func (t *sessions) closeWhere(match func(*session) bool) {
	t.mu.Lock()
	all := make([]*session, 0, len(t.byID))
	for _, s := range t.byID {
		if match(s) {
			all = append(all, s)
		}
	}
	t.mu.Unlock()
	var closing sync.WaitGroup
	for _, s := range all {
		closing.Go(func() {
			s.inflight.cancelAll()
			_ = s.sdk.Close()
			<-s.ended
		})
	}
	closing.Wait()
}

// actorKey carries the actor of an HTTP request to the SDK's middleware.
type actorKey struct{}

// capabilitiesKey carries the capabilities of an initialize request to the SDK's middleware, as the client sent them.
type capabilitiesKey struct{}

func withCapabilities(r *http.Request, m message) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), capabilitiesKey{}, capabilitiesOf(m)))
}

// capabilitiesOf are the capabilities that an initialize request declares; nil where it declares none. They are a copy,
// since they outlive the request.
func capabilitiesOf(m message) json.RawMessage {
	capabilities, _ := rawjson.Get(m.params, "capabilities")
	if !rawjson.IsObject(capabilities) {
		return nil
	}
	return bytes.Clone(capabilities)
}

// watchSessions enters each HTTP session into the table when it is initialised: by then the protocol revision is known.
func (s *Server) watchSessions(profile string) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, req)
			actor, isHTTP := ctx.Value(actorKey{}).(tool.Actor)
			init, ok := res.(initializeResult)
			if err != nil || method != methodInitialize || !isHTTP || !ok {
				return res, err
			}
			ss, ok := req.GetSession().(*mcp.ServerSession)
			if !ok || ss.ID() == "" {
				return res, err
			}
			actor.Session = ss.ID()
			actor.Client.ProtocolVersion = init.ProtocolVersion
			if p := ss.InitializeParams(); p != nil && p.ClientInfo != nil {
				actor.Client.Name, actor.Client.Version = p.ClientInfo.Name, p.ClientInfo.Version
			}
			capabilities, _ := ctx.Value(capabilitiesKey{}).(json.RawMessage)
			s.addSession(&session{id: ss.ID(), profile: profile, actor: actor, sdk: ss, ended: make(chan struct{}),
				capabilities: capabilities})
			return res, err
		}
	}
}

// addSession enters a session, which is told of changes from now on.
func (s *Server) addSession(sess *session) {
	sess.caller = &caller{session: sess.whole(), out: newOutbox(nil), view: sess.profile}
	leave := s.join(sess.profile, sess.actor, sess.caller)
	s.sessions.add(sess, func() {
		leave()
		s.sessionEnded(sess.actor.Session)
	})
}

// sessionEnded says that a session is over.
func (s *Server) sessionEnded(session string) {
	if s.deps.SessionEnded != nil {
		s.deps.SessionEnded(session)
	}
}

// join makes a session one that is told of changes, until leave is called.
func (s *Server) join(profile string, a tool.Actor, c *caller) (leave func()) {
	l := &listener{profile: profile, actor: a, caller: c, out: c.out, wants: Change{Tools: true, Prompts: true, Resources: true}}
	s.listeners.add(l)
	return func() {
		s.listeners.remove(l)
		s.levels.drop(c.session.Key)
		s.belongings.drop(c.session.Key)
	}
}
