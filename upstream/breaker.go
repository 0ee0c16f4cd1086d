package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// maxUnanswered is how many requests in a row a connected server may leave without an answer. Then
// it rests: calls are refused, but for one now and then, until any is answered.
const maxUnanswered = 3

// rest is how a connected server that is silent rests, in the state of backoff.
type rest struct {
	session *session // not nil exactly while it rests
	// before another call is let through: it doubles up to most. 0: the hub asks the server whether it
	// is there
	pause, most time.Duration
}

// heard notes how a request over the session has ended.
func (s *session) heard(a response) {
	var f *tool.Failure
	switch {
	case !errors.As(a.err, &f), a.status/100 == 4: // the server has spoken, be it to refuse
		s.spoke()
	case s.cut != nil && isCutOff(a.err): // the session ends with its connection, and counts once
	case a.silent, f.Class == tool.ClassDependencyUnavailable:
		if s.unanswered.Add(1) == maxUnanswered {
			wait.Signal(s.turned)
		}
	}
}

// spoke notes a sign of life.
func (s *session) spoke() {
	if s.unanswered.Load() != 0 && s.unanswered.Swap(0) >= maxUnanswered {
		wait.Signal(s.turned)
	}
}

// isSilent reports whether the server has left too many requests in a row without an answer.
func (s *session) isSilent() bool { return s.unanswered.Load() >= maxUnanswered }

// turn lets a server rest that has become silent, or work again that has spoken. It asks one that
// becomes silent whether it is still there, and returns why not.
func (s *server) turn(ctx context.Context, sess *session) *fault.Fault {
	resting := s.lifecycle.isResting()
	switch {
	case resting && !sess.isSilent():
		s.lifecycle.setState(tool.ServerReady, sess, nil, time.Time{})
	case !resting && sess.isSilent():
		s.lifecycle.setState(tool.ServerBackoff, sess, &fault.Fault{
			What: fmt.Sprintf("%d requests in a row got no answer", maxUnanswered),
			Hint: "see the server's own log; where its tools need longer, raise timeout of its entry",
		}, time.Now().Add(s.cfg.Timeouts.Connect))
		if f := s.verify(ctx, sess); f != nil {
			return f
		}
		s.lifecycle.restFor(jitter(s.retry.min), s.retry.max)
	}
	return nil
}

func (l *lifecycle) isResting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rest.session != nil
}

// restFor lets a call through after d, and then after pauses that double up to most.
func (l *lifecycle) restFor(d, most time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nextTry, l.rest.pause, l.rest.most = time.Now().Add(d), 2*d, most
}

// trial returns the session of a server that rests, where it has spoken meanwhile, or the call may
// find out whether it does. It returns nil where the call is to be refused. l.mu is held.
func (l *lifecycle) trial(stale *session) *session {
	switch now := time.Now(); {
	case l.rest.session == nil || l.rest.session == stale || l.rest.session.isOver():
		return nil
	case !l.rest.session.isSilent():
	case now.Before(l.nextTry):
		return nil
	default:
		l.nextTry, l.rest.pause = now.Add(l.rest.pause), min(2*l.rest.pause, l.rest.most)
	}
	return l.rest.session
}
