package downstream

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net"
	"net/http"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/sessionid"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// holder is who may use the session of a request, by now known to come from actor.
func (d *httpDoor) holder(actor tool.Actor) sessionid.Holder {
	secret, _ := d.server.cfg().Auth.secretOf(actor.Name)
	return sessionid.Holder{Profile: d.profile, Caller: actor.Name, Secret: secret}
}

// share is whose share of the sessions those of a request count to: its caller's, or where callers are not told apart by
// tokens, that of the address that it comes from.
func (d *httpDoor) share(r *http.Request) string {
	if len(d.server.cfg().Auth.Tokens) > 0 {
		return actorFrom(r).Name
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return host
}

// newSession is the session of a request that id stands for. It is not in the table yet.
func (d *httpDoor) newSession(r *http.Request, id string, known sessionid.Session) *session {
	s := &session{id: id, known: known, share: d.share(r), profile: d.profile, actor: actorFrom(r), ended: make(chan struct{}),
		capabilities: known.Capabilities}
	s.holder = d.holder(s.actor)
	s.actor.Session = known.Name
	s.actor.Client = tool.Client{Name: known.ClientName, Version: known.ClientVersion, ProtocolVersion: known.ProtocolVersion,
		Apps: showsApps(known.Capabilities), Names: s.actor.Client.Names}
	s.caller = &caller{session: s.whole(), out: newOutbox(nil), view: s.profile}
	return s
}

// begin makes the session of a request whose initialize was answered with version.
func (d *httpDoor) begin(r *http.Request, m jsonrpc.Message, version string) (*session, error) {
	info, _ := rawjson.Get(m.Params, "clientInfo")
	known := sessionid.Session{ProtocolVersion: version, Capabilities: capabilitiesOf(m)}
	known.ClientName, known.ClientVersion = clientInfo(info)
	id, known, err := d.server.ids.New(d.holder(actorFrom(r)), known)
	if err != nil {
		return nil, err
	}
	s := d.newSession(r, id, known)
	d.server.entering.Lock()
	defer d.server.entering.Unlock()
	return s, d.server.enterSession(s)
}

// takeUp enters the session that a request names, which this hub does not hold: it was restarted since, or the session was
// idle, or another hub began it. What cannot be taken up with it, as subscriptions, the client is told as changes of all
// lists. The error is sessionid.ErrUnknown, or says why there is no room.
func (d *httpDoor) takeUp(r *http.Request) error {
	server, id := d.server, r.Header.Get(headerSession)
	server.entering.Lock()
	defer server.entering.Unlock()
	if server.sessions.has(id) {
		return nil // another request was quicker
	}
	known, err := server.ids.Resume(id, d.holder(actorFrom(r)))
	switch {
	case err != nil:
		if !errors.Is(err, sessionid.ErrUnknown) {
			server.deps.Logger.Warn("a session is not taken up again", "error", err)
		}
		return sessionid.ErrUnknown
	case !supported(known.ProtocolVersion): // it began at another version of the hub
		return sessionid.ErrUnknown
	}
	s := d.newSession(r, id, known)
	s.questions.series = rand.Text() + "-"
	for _, method := range server.lists(s) {
		s.caller.out.put(note{key: method, method: method, params: json.RawMessage("{}")})
	}
	if err := server.enterSession(s); err != nil {
		return err
	}
	server.deps.Logger.Info("a session is taken up again", "session", s.whole().Name, "client", known.ClientName)
	return nil
}

// lists are the notifications of changes of those lists that a session's client knows to exist.
func (s *Server) lists(sess *session) []string {
	all := []string{noteToolListChanged}
	surface, err := s.deps.Surfaces.Surface(sess.profile, sess.actor)
	if err != nil {
		return all
	}
	able := s.surfaces.abilities(surface)
	if able.Prompts {
		all = append(all, notePromptListChanged)
	}
	if able.Resources {
		all = append(all, noteResourceListChanged)
	}
	return all
}

// enterSession enters a session, which is told of changes from now on, and ends those that make room for it.
// s.entering is held.
func (s *Server) enterSession(sess *session) error {
	if s.isDraining() {
		return errors.New(errDraining().Message)
	}
	sess.leave = s.join(sess.profile, sess.actor, sess.caller)
	out, ok := s.sessions.add(sess, func() {
		if s.sessions.remove(sess, true) {
			s.close(sess)
		}
	})
	for _, evicted := range out {
		s.recordEnd(evicted)
		s.close(evicted)
	}
	if !ok {
		sess.leave()
		return errors.New("all sessions that hub.http.max_sessions allows have calls in flight: try again later, or raise that in the hub's config")
	}
	return nil
}

// endForGood ends a session that is never taken up again.
func (s *Server) endForGood(sess *session) {
	s.entering.Lock()
	s.recordEnd(sess)
	found := s.sessions.remove(sess, false)
	s.entering.Unlock()
	if found {
		s.close(sess)
	}
	<-sess.ended
}

func (s *Server) recordEnd(sess *session) {
	if err := s.ids.End(sess.known, sess.holder); err != nil {
		s.deps.Logger.Warn("a session that has ended can be taken up again by its caller", "session", sess.whole().Name, "error", err)
	}
}

// closeWhere ends the sessions that match, and returns when they have ended.
func (s *Server) closeWhere(match func(*session) bool) {
	s.entering.Lock()
	all := s.sessions.where(match)
	for _, sess := range all {
		if s.sessions.remove(sess, false) {
			s.close(sess)
		}
	}
	s.entering.Unlock()
	for _, sess := range all {
		<-sess.ended
	}
}

// close ends what belongs to a session that has left the table.
func (s *Server) close(sess *session) {
	sess.inflight.cancelAll()
	close(sess.ended)
	sess.leave()
	s.sessionEnded(sess.actor.Session)
}

// sessionEnded says that a session is over.
func (s *Server) sessionEnded(session string) {
	if s.deps.SessionEnded != nil {
		s.deps.SessionEnded(session)
	}
}
