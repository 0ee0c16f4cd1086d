package upstream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

// call sends a call, and again with the client's answers for as long as the server asks for input.
// A client that takes the input requests itself is given them, once they are known to be
// well-formed.
func (s *server) call(ctx context.Context, x *clientRequest) error {
	limits := s.limits(x.Method)
	if x.over != nil || x.Unknown {
		return s.callOnce(ctx, x, &limits, 0)
	}
	attempt := x
	for answered := 0; ; answered++ {
		err := s.callOnce(ctx, attempt, &limits, answered)
		if attempt != x {
			wasThere(err)
			x.reply = attempt.reply
		}
		if errors.Is(err, errRetired) && answered > 0 {
			return replacedWhileAsking(err) // whoever takes its place knows nothing of the call
		}
		if err != nil || x.reply.Mapping.ProtocolVersion < hop.Modern || resultType(&x.reply) != "input_required" {
			return err
		}
		if attempt, err = s.next(ctx, x, &limits, answered); attempt == nil {
			return err
		}
	}
}

// next asks the client for the input that the reply to x wants, and returns the request that says
// it; nil where the call has ended.
func (s *server) next(
	ctx context.Context, x *clientRequest, limits *callLimits, answered int,
) (*clientRequest, error) {
	in, err := tool.ReadInputRequired(x.reply.Result)
	if err == nil && x.InputByRetry {
		x.reply.NeedsInput = true
		return nil, nil
	}
	x.reply = tool.Reply{Mapping: x.reply.Mapping}
	if err != nil {
		return nil, invalidAnswer("asks for input in a way that the protocol does not know: " + err.Error()).err
	}
	if answered+1 >= maxInputRequired {
		return nil, invalidAnswer(fmt.Sprintf("asks for input for the %dth time in one call", maxInputRequired)).err
	}
	answers, err := s.askFor(ctx, x, limits, in.Questions)
	if err != nil {
		return nil, err
	}
	again := *x
	if again.Params, err = retryParams(in, x.Params, answers); err != nil {
		return nil, err
	}
	return &again, nil
}

// callOnce sends the call, and sends it once more if the server refused it for a forgotten session
// alone, or was found gone before the call was sent. answered counts how often the client has given
// input to the server.
func (s *server) callOnce(ctx context.Context, x *clientRequest, limits *callLimits, answered int) error {
	var stale *session
	for {
		sess, err := s.lifecycle.acquire(ctx, stale, limits.idle)
		switch {
		case errors.Is(err, errNotReady):
			return s.unavailable()
		case err != nil:
			return err
		case s.isApart(x.Session):
			return errIsolated
		case answered > 0 && sess.hop == nil:
			return replacedWhileAsking(transport.ErrClosed) // it would start from the beginning
		}
		a := s.callOver(ctx, sess, x, limits)
		sess.heard(a)
		if x.isRefused(a.err) { // and so it did not run
			s.catalog.change(func(h *habits) { h.NoProgress = true })
			continue
		}
		if stale != nil || !a.lost && !a.unsent() || ctx.Err() != nil {
			return a.err
		}
		stale = sess
	}
}

// callOver sends the call over sess and waits for its answer.
func (s *server) callOver(ctx context.Context, sess *session, x *clientRequest, limits *callLimits) response {
	if x.over != nil {
		return x.over(ctx, s, sess, *limits)
	}
	id, reply := s.nextID(), &x.reply
	*reply = tool.Reply{Mapping: tool.ExternalMapping{
		Source: tool.SourceMCP, Role: "upstream", ServerID: s.cfg.ID, SessionID: sess.shownID,
		ProtocolVersion: sess.version,
		Method:          x.Method, JSONRPCRequestID: strconv.FormatInt(id, 10),
	}}
	reply.Session = s.client.Key
	params, asTask, err := s.asTask(x, sess)
	if err != nil {
		*reply = tool.Reply{} // without a mapping: nothing was sent
		return response{err: err}
	}
	params, err = x.params(params, x.token(id, limits, s.catalog.known().NoProgress), sess.hop)
	if err != nil {
		*reply = tool.Reply{}
		return response{err: &tool.Failure{Class: tool.ClassInvalidArguments, Cause: err,
			Message: "params of the request are no JSON object: send them as the protocol demands"}}
	}
	lc := newLaneCall(id, x.Method, params)
	lc.name, lc.notify, lc.progress, lc.ask, lc.session = x.name, x.Notify, x.Progress, x.Ask, x.Session
	if x.call != nil {
		reply.Mapping.ToolName = x.name
		if sess.hop != nil {
			lc.headers = paramheader.Headers(s.catalog.bindings(x.name), x.call.Arguments)
		}
	}
	if s.use == useShared && s.catalog.isShort() {
		sess.missed() // it lists beside the call
	}
	limits.start()
	if asTask {
		sess.taskTokens.add(id)
	}
	a := sess.wait(ctx, lc, *limits)
	a = s.passable(a)
	reply.Result = a.result
	if a.object.Text() != nil {
		reply.Object = a.object
	}
	if a.err == nil {
		a.err = s.withTask(x, asTask)
	}
	if asTask && reply.Task == "" {
		sess.taskTokens.remove(id)
	}
	if a.err == nil && a.room != nil {
		reply.Free = a.room.Free
	}
	return a
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

// causeOf returns the cause that a failure keeps from callers, for the hub's own messages.
func causeOf(err error) error {
	var f *tool.Failure
	if errors.As(err, &f) && f.Cause != nil {
		return f.Cause
	}
	return err
}
