package downstream

import (
	"errors"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/sessionid"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// sessions holds the live HTTP sessions: it begins them, takes up those that this hub does not hold, and ends them.
type sessions struct {
	server *Server
	ids    *sessionid.Issuer

	entering sync.Mutex // held while a session is entered, or ended

	mu      sync.Mutex
	max     int
	timeout time.Duration
	byID    map[string]*httpSession
}

// bound sets how many sessions there may be, and how long one may be idle.
func (t *sessions) bound(limit int, timeout time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if timeout < t.timeout {
		for _, s := range t.byID {
			s.idle.Reset(0) // it looks how long that still takes
		}
	}
	t.max, t.timeout = limit, timeout
}

// questions returns how many questions to clients with sessions are open.
func (t *sessions) questions() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, s := range t.byID {
		n += s.caller.questions.count()
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
func (t *sessions) add(s *httpSession) (out []*httpSession, ok bool) {
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
	set(&t.byID, s.id, s)
	s.used, s.idle = time.Now(), time.AfterFunc(t.timeout, func() { t.endIdle(s) })
	return out, true
}

// leastDeserving returns the session that makes room for one more of share. The holder of the most
// sessions loses the one that was idle for longest. If all of these are busy, the oldest goes,
// unless they are the newcomer's own. So nobody can keep others out, neither with sessions nor with
// calls that do not end.
func (t *sessions) leastDeserving(share string) *httpSession {
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
	var idle, busy *httpSession
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
func (t *sessions) takeOut(s *httpSession) bool {
	if t.byID[s.id] != s {
		return false
	}
	delete(t.byID, s.id)
	s.idle.Stop()
	return true
}

// endIdle ends a session that was not used for too long. The timer of another one goes on.
func (t *sessions) endIdle(s *httpSession) {
	t.mu.Lock()
	left := t.timeout
	if s.busy == 0 {
		left -= time.Since(s.used)
	}
	found := false
	if left <= 0 {
		found = t.takeOut(s)
	} else if t.byID[s.id] == s {
		s.idle.Reset(left)
	}
	t.mu.Unlock()
	if found {
		t.close(s)
	}
}

// use returns the session and keeps it from going idle until it is released. ok is false where there is none.
func (t *sessions) use(id string) (s *httpSession, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok = t.byID[id]
	if !ok {
		return nil, false
	}
	s.busy++
	s.used = time.Now()
	return s, true
}

// release ends one use of a session.
func (t *sessions) release(s *httpSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.used = time.Now()
	s.busy--
}

// enter enters a session, which is told of changes from now on, and ends those that make room for it.
// t.entering is held.
func (t *sessions) enter(sess *httpSession) error {
	if t.server.isDraining() {
		return errors.New(errDraining().Message)
	}
	t.server.join(sess.profile, sess.actor, sess.caller)
	out, ok := t.add(sess)
	for _, evicted := range out {
		t.recordEnd(evicted)
		t.close(evicted)
	}
	if !ok {
		t.server.leave(sess.caller)
		return errors.New("all sessions that hub.http.max_sessions allows have calls in flight: try again later, or " +
			"raise that in the hub's config")
	}
	return nil
}

// endForGood ends a session that is never taken up again.
func (t *sessions) endForGood(sess *httpSession) {
	t.recordEnd(sess)
	t.closeWhere(func(one *httpSession) bool { return one == sess })
	<-sess.ended // it may have made room for another one
}

func (t *sessions) recordEnd(sess *httpSession) {
	if err := t.ids.End(sess.known, sess.holder); err != nil {
		t.server.deps.Logger.Warn("a session that has ended can be taken up again by its caller", "session",
			sess.caller.session.Name,
			"error", err)
	}
}

// closeWhere ends the sessions that match, and returns when they have ended.
func (t *sessions) closeWhere(match func(*httpSession) bool) {
	t.entering.Lock()
	defer t.entering.Unlock()
	t.mu.Lock()
	var matching []*httpSession
	for _, sess := range t.byID {
		if match(sess) {
			t.takeOut(sess)
			matching = append(matching, sess)
		}
	}
	t.mu.Unlock()
	for _, sess := range matching {
		t.close(sess)
	}
}

// close ends what belongs to a session that has left the table.
func (t *sessions) close(sess *httpSession) {
	why := tool.CanceledBy(tool.CanceledBySessionEnd, "",
		"the session that the call belongs to has ended: open a new one and call again")
	if t.server.isDraining() {
		why = HubStops()
	}
	sess.caller.inflight.cancelAll(why)
	close(sess.ended)
	t.server.leave(sess.caller)
	t.server.deps.Grants.EndSession(sess.actor.Session)
}
