package upstream

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// withdrawal is a cancellation on its way to the server.
type withdrawal struct {
	support tool.CancelSupport
	needed  bool         // the server may have the request
	closed  bool         // the request's stream is closed: nothing follows
	sent    <-chan error // told when the cancellation has left, or could not; nil where it could not be sent
	over    func()       // drops the request
}

// settleWithin bounds the time for which a cancelled request waits for its server. A server that
// stops a call answers within that, if it answers at all: the protocol wants no answer. Until then
// the call keeps its place there, and the records say what became of it. An answer that comes later
// is dropped, and the outcome stays unknown.
const settleWithin = 250 * time.Millisecond

// settle waits until it is known what became of the cancellation of c, but not for long, and returns that. It drops c.
func (w withdrawal) settle(c *pendingRequest) *tool.Cancellation {
	defer w.over()
	facts := &tool.Cancellation{Support: w.support, At: time.Now().UTC(), Delivery: tool.DeliveryUnknown,
		Outcome: tool.OutcomeUnknown}
	switch {
	case !w.needed:
		facts.Delivery, facts.Outcome = tool.DeliveryNotNeeded, tool.OutcomeBeforeEffect
		return facts
	case w.closed:
		facts.Delivery = tool.DeliverySent
		return facts
	case w.sent == nil:
		return facts
	}
	timer := time.NewTimer(settleWithin)
	defer timer.Stop()
	over := false // the server says no more
	for {
		select {
		case err := <-w.sent:
			if err == nil {
				facts.Delivery = tool.DeliverySent
			}
			if w.sent = nil; over {
				return facts
			}
		case <-c.ready:
			_, done := c.take() // progress is nobody's any more
			if done == nil || over {
				continue
			}
			over = true
			if answered(facts, done); w.sent == nil || facts.Delivery == tool.DeliveryAcknowledged {
				return facts
			}
		case <-timer.C:
			return facts
		}
	}
}

// answered notes the answer to a request that was cancelled.
func answered(facts *tool.Cancellation, a *response) {
	var rpc *tool.RPCError
	switch {
	case errors.As(a.err, &rpc):
		facts.Delivery, facts.Outcome = tool.DeliveryAcknowledged, tool.OutcomeStoppedPartly
	case a.err != nil: // the server is gone, or what it says cannot be read
	default:
		facts.Delivery, facts.Outcome = tool.DeliveryAcknowledged, tool.OutcomeFinishedAnyway
		if isError, _ := rawjson.Get(a.result, "isError"); string(isError) == "true" {
			facts.Outcome = tool.OutcomeStoppedPartly
		}
	}
	a.room.Free() // nobody reads the result
}

// reasonOf returns the reason for which the caller of a request cancels it, as the server is told it.
func reasonOf(ctx context.Context) string {
	var why *tool.Failure
	if errors.As(context.Cause(ctx), &why) && why.Cancel != nil {
		return cmp.Or(why.Cancel.Reason, "canceled: "+string(why.Cancel.By))
	}
	return "canceled by the client"
}

// late is the failure of a request that took too long.
func (e *entry) late(c *pendingRequest, limits callLimits, facts *tool.Cancellation) *tool.Failure {
	effect, unknown := "may have taken effect: check before calling again", true
	switch {
	case !c.sent():
		effect, unknown = "had not been sent: nothing ran", false
	case facts.Outcome == tool.OutcomeFinishedAnyway:
		effect, unknown = "finished all the same, too late: its effect is there", false
	}
	f := e.timedOut(orText(c.name, c.method), effect, unknown, limits)
	facts.By, f.Cancel = tool.CanceledByTimeout, facts
	return f
}

// ended is the failure of a request whose caller has gone.
func ended(ctx context.Context, c *pendingRequest, facts *tool.Cancellation) *tool.Failure {
	f := canceled(ctx, c.sent() && facts.Outcome != tool.OutcomeFinishedAnyway)
	f.Cancel = facts
	return f
}

// wasThere corrects the facts of a cancellation of a call that its server has had before it asked for input.
func wasThere(err error) {
	var f *tool.Failure
	if errors.As(err, &f) && f.Cancel != nil && f.Cancel.Outcome == tool.OutcomeBeforeEffect {
		f.Cancel.Outcome = tool.OutcomeUnknown
	}
}

// CancelSupport says how a cancellation reaches the tools of a server over the connection that calls use now.
func (g *Group) CancelSupport(server string) tool.CancelSupport {
	s := g.roster.Load().byID[server]
	if s == nil {
		return tool.SupportUnknown
	}
	if s.cfg.Transport != StreamableHTTP {
		return tool.SupportNotification
	}
	switch sess := s.lifecycle.current(); {
	case sess == nil:
		return tool.SupportUnknown
	case sess.hop != nil:
		return tool.SupportClosedStream
	}
	return tool.SupportNotification
}
