package downstream

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/sessionid"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// httpSession is one session of an older protocol revision.
type httpSession struct {
	id      string // as its client sends it: long, and not for logs
	known   sessionid.Session
	holder  sessionid.Holder
	share   string // whose share of the sessions it counts to
	profile string
	actor   tool.Actor // the owner of the session; Actor.Client as negotiated at initialize
	caller  *caller
	ended   chan struct{} // closed when it has left the table

	streaming sync.Mutex
	stream    chan struct{} // closed when a newer standing stream takes the place of the present one

	// guarded by sessions.mu
	busy int         // requests being served
	used time.Time   // when the latest of them began or ended
	idle *time.Timer // ends the session, or finds that it was used
}

// callerOf returns what is kept for a caller over HTTP on revisions without sessions. Its session
// is one for all profiles, and never ends.
func (s *Server) callerOf(a tool.Actor) *caller {
	known, ok := s.callers.Load(a.Name)
	if !ok {
		known, _ = s.callers.LoadOrStore(a.Name, &caller{session: tool.Session{Key: "caller/" + a.Name,
			Name:   sessionName(a, ""),
			Person: a.Name}})
	}
	return known.(*caller)
}

// sessionName returns the name of a's session for logs.
func sessionName(a tool.Actor, id string) string {
	name := a.Door + "/" + a.Name
	if id != "" {
		name += "/" + tool.Digest([]byte(id))[:8]
	}
	return name
}

// capabilitiesOf returns a copy of the capabilities that an initialize request declares; nil where it declares none.
func capabilitiesOf(m *jsonrpc.Message) json.RawMessage {
	capabilities, _ := rawjson.Get(m.Params, "capabilities")
	if !rawjson.IsObject(capabilities) {
		return nil
	}
	return bytes.Clone(capabilities)
}

// holder returns the only one who may use the sessions of actor at this door.
func (d *httpDoor) holder(actor tool.Actor) sessionid.Holder {
	secret, _ := d.server.cfg().Auth.secretOf(actor.Name)
	return sessionid.Holder{Profile: d.profile, Caller: actor.Name, Secret: secret}
}

// share returns the caller whose share of the sessions a request counts to. Without tokens that is the address that it
// comes from.
func (d *httpDoor) share(r *entry) string {
	if len(d.server.cfg().Auth.Tokens) > 0 {
		return r.actor.Name
	}
	return r.actor.Address
}

// newSession returns the session of a request, which is not in the table yet.
func (d *httpDoor) newSession(r *entry, id string, known sessionid.Session) *httpSession {
	s := &httpSession{id: id, known: known, share: d.share(r), profile: d.profile, actor: r.actor,
		ended: make(chan struct{})}
	s.holder = d.holder(s.actor)
	s.actor.Session = known.Name
	s.actor.Client = tool.Client{Name: known.ClientName, Version: known.ClientVersion,
		ProtocolVersion: known.ProtocolVersion,
		Apps:            showsApps(known.Capabilities), Names: s.actor.Client.Names}
	session := tool.Session{Key: "http/" + known.Name, Name: sessionName(s.actor, known.Name), Person: s.actor.Name,
		Ended: s.ended}
	s.caller = &caller{session: session, out: newOutbox(nil), view: s.profile,
		questions: questions{series: questionPrefix}}
	return s
}

// takeUp enters the session that a request names, which this hub does not hold: it was restarted
// since, or the session was idle, or another hub began it. What cannot be taken up with it, as
// subscriptions, the client is told as changes of all lists. The error is sessionid.ErrUnknown, or
// says why there is no room.
func (d *httpDoor) takeUp(r *entry) error {
	id, t, log := r.Header.Get(headerSession), &d.server.sessions, d.server.deps.Logger
	t.entering.Lock()
	defer t.entering.Unlock()
	t.mu.Lock()
	there := t.byID[id] != nil
	t.mu.Unlock()
	if there {
		return nil // another request was quicker
	}
	known, err := t.ids.Resume(id, d.holder(r.actor))
	if err != nil && !errors.Is(err, sessionid.ErrUnknown) {
		log.Warn("a session is not taken up again", "error", err)
	}
	if err != nil || !supported(known.ProtocolVersion) { // it began at another version of the hub
		return sessionid.ErrUnknown
	}
	s := d.newSession(r, id, known)
	s.caller.questions.series += rand.Text() + "-"
	for _, method := range d.server.surfaces.listChanges(s) {
		s.caller.out.put(listChanged(method))
	}
	if err := t.enter(s); err != nil {
		return err
	}
	log.Info("a session is taken up again", "session", s.caller.session.Name, "client", known.ClientName)
	return nil
}

// standing serves GET: the stream on which a session is told what belongs to none of its requests.
// A newer stream of the session takes the place of an older one, whose client may be long gone.
func (d *httpDoor) standing(w http.ResponseWriter, r *http.Request, s *httpSession) {
	if !accepted(r.Header).stream {
		http.Error(w, "Accept must contain text/event-stream", http.StatusNotAcceptable)
		return
	}
	if !supportedOnly(w, r.Header) {
		return
	}
	mine := s.takeStream()
	stream := newHTTPReply(w, r, nil, false)
	defer stream.close()
	stream.begin()
	out := s.caller.out
	signal(out.wake) // what has waited for a stream
	for {
		select {
		case <-mine:
			signal(out.wake)
			return
		case <-s.ended:
			return
		case <-r.Context().Done():
			return
		case <-out.wake:
			out.drain(stream.notify, mine)
		}
	}
}

// takeStream makes the session's stream the caller's. The channel is closed when another one takes it.
func (s *httpSession) takeStream() <-chan struct{} {
	s.streaming.Lock()
	defer s.streaming.Unlock()
	if s.stream != nil {
		close(s.stream)
	}
	s.stream = make(chan struct{})
	return s.stream
}
