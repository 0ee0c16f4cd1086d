package upstream

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// withdraw tells the server that nobody waits for c any more, and drops c.
func (s *session) withdraw(ctx context.Context, c *pendingRequest, reason string) {
	c.mute()
	s.lane.withdraw(ctx, c, reason)
	s.forget(c)
}

// withdrawAndSettle is withdraw for a call whose outcome counts. It waits a moment, and reports whether the server has
// finished the call all the same.
func (s *session) withdrawAndSettle(ctx context.Context, c *pendingRequest, reason string) (finished bool) {
	c.mute()
	defer s.forget(c)
	return s.lane.withdraw(ctx, c, reason) && settle(c)
}

// forget drops a request that nobody waits for any more.
func (s *session) forget(c *pendingRequest) {
	s.open.mu.Lock()
	delete(s.open.calls, c.id)
	s.open.mu.Unlock()
	if c.abort != nil {
		c.abort()
	}
}

// settleWithin bounds the time for which a cancelled request waits for its server. A server that
// stops a call answers within that, if it answers at all: the protocol wants no answer. Until then
// the call keeps its place there, and the records say what became of it. An answer that comes later
// is dropped, and the outcome stays unknown.
const settleWithin = 250 * time.Millisecond

// settle waits for the answer to the cancelled request c, but not for long. It reports whether the server has finished
// it all the same. An error, or a result with isError, may be the end of a part.
func settle(c *pendingRequest) (finished bool) {
	late := time.After(settleWithin)
	for {
		select {
		case <-c.ready:
			done := c.take().done
			if done == nil {
				continue
			}
			defer done.room.Free() // nobody reads the result
			if done.err != nil {
				return false
			}
			isError, _ := rawjson.Get(done.result, "isError")
			return string(isError) != "true"
		case <-late:
			return false
		}
	}
}

// reasonOf returns the reason for which the caller of a request cancels it, as the server is told it.
func reasonOf(ctx context.Context) string {
	var why *tool.Failure
	if errors.As(context.Cause(ctx), &why) && why.Cancel != nil {
		return cmp.Or(why.Cancel.Reason, "canceled: "+string(why.Cancel.By))
	}
	return "canceled by the client"
}

// late is the failure of a request whose time was over at a moment. finished says that the server
// has finished it all the same.
func (e *entry) late(c *pendingRequest, limits callLimits, at time.Time, finished bool) *tool.Failure {
	effect, unknown := "may have taken effect: check before calling again", true
	switch {
	case !c.sent():
		effect, unknown = "had not been sent: nothing ran", false
	case finished:
		effect, unknown = "finished all the same, too late: its effect is there", false
	}
	f := e.timedOut(cmp.Or(c.Name, c.Method), effect, unknown, limits)
	f.Ended, f.Cancel = finished, &tool.Cancellation{By: tool.CanceledByTimeout, At: at}
	return f
}

// ended is the failure of a request whose caller has gone. finished is as for late.
func ended(ctx context.Context, c *pendingRequest, finished bool) *tool.Failure {
	f := canceled(ctx, c.sent() && !finished)
	f.Ended = finished
	return f
}

// wasThere corrects the failure of a retry that was cancelled before it was sent: its server has
// had the call before it asked for input.
func wasThere(err error) {
	var f *tool.Failure
	if errors.As(err, &f) && (f.Class == tool.ClassCanceled || f.Class == tool.ClassTimeout) && !f.Ended {
		f.OutcomeUnknown = true
	}
}
