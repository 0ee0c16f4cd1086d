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
// the hub asks it whether it is there.
const maxUnanswered = 3

// heard notes how a request over the session has failed.
func (s *session) heard(a response) {
	var f *tool.Failure
	switch {
	case !errors.As(a.err, &f), a.status/100 == 4: // the server has spoken, be it to refuse
		s.unanswered.Store(0)
	case s.cut != nil && isCutOff(a.err): // the session ends with its connection, and counts once
	case a.silent, f.Class == tool.ClassDependencyUnavailable:
		if s.unanswered.Add(1) >= maxUnanswered {
			wait.Signal(s.silent)
		}
	}
}

// verifySilent asks a server that has become silent whether it is still there, and returns why not.
// Calls wait for that.
func (s *server) verifySilent(ctx context.Context, sess *session) *fault.Fault {
	s.lifecycle.backOff(&fault.Fault{
		What: fmt.Sprintf("%d requests in a row got no answer", maxUnanswered),
		Hint: "see the server's own log; where its tools need longer, raise timeout of its entry",
	}, time.Now().Add(s.cfg.Timeouts.Connect), time.Time{}, false)
	if f := s.verify(ctx, sess); f != nil {
		return f
	}
	sess.unanswered.Store(0)
	s.lifecycle.setState(tool.ServerReady, sess, nil, time.Time{})
	return nil
}
