package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// execute does what x asks for.
func (s *server) execute(ctx context.Context, x *order) (tool.Reply, error) {
	counts := int64(0) // only calls are counted
	if x.call != nil {
		counts = 1
	}
	if !s.lifecycle.enter() {
		if s.lifecycle.isRetired() {
			return tool.Reply{}, errRetired
		}
		s.calls.Add(counts)
		return tool.Reply{}, s.unavailable()
	}
	defer s.lifecycle.leave()
	s.calls.Add(counts)
	call := s.call
	if s.use == useListing {
		call = s.isolation.execute
	}
	reply, err := call(ctx, x)
	if errors.Is(err, errRetired) {
		s.calls.Add(-counts) // it counts where it goes
		return tool.Reply{}, err
	}
	if err != nil {
		s.errors.Add(counts)
	}
	return reply, err
}

// call sends the call, in as many rounds as the server needs to ask for what it wants.
func (s *server) call(ctx context.Context, x *order) (tool.Reply, error) {
	limits := s.limitsOf(x)
	if x.over != nil || x.Unknown {
		return s.callOnce(ctx, x, &limits, 0)
	}
	return s.converse(ctx, dialogue{name: orText(x.name, x.Method), params: x.Params, ask: x.Ask, passes: x.InRounds, limits: &limits,
		send: func(params json.RawMessage, round int) (tool.Reply, error) {
			again := *x
			again.Params = params
			return s.callOnce(ctx, &again, &limits, round)
		}})
}

// callOnce sends the call, and sends it once more if the server refused it for a forgotten session alone, or was found gone
// before the call was sent.
func (s *server) callOnce(ctx context.Context, x *order, limits *callLimits, round int) (tool.Reply, error) {
	sess, err := s.acquire(ctx, nil, limits)
	if err != nil {
		return tool.Reply{}, err
	}
	if round > 0 && sess.hop == nil {
		return tool.Reply{}, lostBetweenRounds(errClosed) // it would start from the beginning
	}
	reply, a := s.callOver(ctx, sess, x, limits)
	if (a.lost || a.unsent()) && ctx.Err() == nil {
		if sess, err = s.acquire(ctx, sess, limits); err != nil {
			return reply, err
		}
		if round > 0 && sess.hop == nil {
			return reply, lostBetweenRounds(errClosed)
		}
		reply, a = s.callOver(ctx, sess, x, limits)
	}
	return reply, a.err
}

// acquire is the lifecycle's, with a failure that says what will help.
func (s *server) acquire(ctx context.Context, stale *session, limits *callLimits) (*session, error) {
	sess, err := s.lifecycle.acquire(ctx, stale, limits.idle)
	if errors.Is(err, errNotReady) {
		return nil, s.unavailable()
	}
	return sess, err
}

// unavailable is the answer of a call to a server that is not ready: what is wrong, and what will help.
func (s *server) unavailable() *tool.Failure {
	st := s.status()
	if s.use != useListing && s.lifecycle.isAsleep() {
		st.State, st.Hint = tool.ServerStarting, "" // it was woken
	}
	f := &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "server_" + string(st.State)}
	f.Message = fmt.Sprintf("server %q is not ready (%s)", st.Server, st.State)
	if st.LastError != "" {
		f.Message += ": " + st.LastError
	}
	switch st.State {
	case tool.ServerBackoff:
		if st.NextTry != nil {
			f.RetryAfter = max(time.Until(*st.NextTry).Round(time.Second), time.Second)
			f.Message += fmt.Sprintf("; the hub tries again in %s", f.RetryAfter)
		}
	case tool.ServerNeedsAuth:
		f.Class = tool.ClassCredentialMissing
	case tool.ServerStopped:
		f.Message += "; it is disabled or the hub is stopping"
	default:
		f.RetryAfter = time.Second
		f.Message += "; call again in a moment"
		if st.State == tool.ServerStarting && st.Hint != "" {
			f.Message += ": " + st.Hint
			st.Hint = ""
		}
	}
	if st.Hint != "" {
		f.Message += "; to mend it: " + st.Hint
	}
	return f
}

// callLimits bound one call: idle without progress, most in all since it began.
type callLimits struct {
	idle, most time.Duration
	began      time.Time // zero until it is sent
}

// start notes when a call is sent for the first time.
func (l *callLimits) start() {
	if l.began.IsZero() {
		l.began = time.Now()
	}
}

// callOver sends the call over sess and waits for its answer.
func (s *server) callOver(
	ctx context.Context, sess *session, x *order, limits *callLimits,
) (tool.Reply, answer) {
	if x.over != nil {
		return tool.Reply{}, x.over(ctx, s, sess, *limits)
	}
	id := s.nextID()
	reply := tool.Reply{Mapping: tool.ExternalMapping{
		Source: tool.SourceMCP, Role: "upstream", ServerID: s.cfg.ID, SessionID: s.redact.Text(sess.id), ProtocolVersion: sess.version,
		Method: x.Method, JSONRPCRequestID: `"` + id + `"`,
	}}
	reply.Session = s.client.Key
	own := *x // asTask changes it
	x = &own
	asTask, err := s.asTask(x, sess)
	if err != nil {
		return reply, answer{err: err}
	}
	params, err := x.params(id, sess.hop)
	if err != nil {
		return reply, answer{err: &tool.Failure{Class: tool.ClassInvalidArguments, Cause: err,
			Message: "params of the request are no JSON object: send them as the protocol demands"}}
	}
	c := newLaneCall(id, x.Method, params)
	c.name, c.notify, c.ask, c.session = x.name, x.Notify, x.Ask, x.Session.Key
	if x.call != nil {
		reply.Mapping.ToolName = x.name
		if sess.hop != nil {
			c.headers = paramheader.Headers(s.catalog.bindings(x.name), x.call.Arguments)
		}
	}
	s.subscriptions.awaitLevel(ctx, sess)
	limits.start()
	if asTask {
		sess.lasting.add(id)
	}
	a := s.sender.wait(ctx, sess, c, x.Progress, *limits)
	reply.Result = a.result
	if a.err == nil {
		reply, a.err = s.withTask(x, reply, asTask)
	}
	if asTask && reply.Task == "" {
		sess.lasting.remove(id)
	}
	if a.err != nil {
		return reply, a
	}
	if a.object.Text() != nil {
		reply.Object = a.object
	}
	if a.memory != nil {
		reply.Free = a.memory.Free
	}
	return reply, a
}

// canceled is the answer of a call whose caller has gone.
func canceled(ctx context.Context, sent bool) *tool.Failure {
	f := &tool.Failure{Class: tool.ClassCanceled, OutcomeUnknown: sent, Cause: context.Cause(ctx),
		Message: "the call was canceled: call again if it is still wanted"}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		f.Class = tool.ClassTimeout
		f.Message = "the caller's deadline passed before the server answered: allow more time, or ask for less"
	}
	return f
}

// causeOf is what a failure keeps from callers, for the hub's own messages.
func causeOf(err error) error {
	var f *tool.Failure
	if errors.As(err, &f) && f.Cause != nil {
		return f.Cause
	}
	return err
}
