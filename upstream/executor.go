package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

// call sends a call, and again with the client's answers for as long as the server asks for input.
// A client that takes the input requests itself is given them, once they are known to be
// well-formed.
func (s *server) call(ctx context.Context, x *clientRequest) error {
	limits := s.limits(x.Method)
	attempt := x
	for answered := 0; ; answered++ {
		err := s.callOnce(ctx, attempt, &limits, answered)
		if attempt != x {
			wasThere(err)
			x.reply, x.kind = attempt.reply, attempt.kind
		}
		if errors.Is(err, errRetired) && answered > 0 {
			return replacedWhileAsking(err) // whoever takes its place knows nothing of the call
		}
		if err != nil || x.kind != "input_required" || x.Unknown {
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
		if a.err == nil {
			sess.unanswered.Store(0)
			return nil
		}
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
	switch {
	case x.isNote:
		return s.tell(ctx, sess, x)
	case x.Method == tool.MethodListen:
		return s.listenFor(ctx, sess, x)
	case x.Method == tool.MethodSubscribe:
		return s.subscriptions.subscribe(ctx, sess, *limits, x.Name)
	}
	id, reply := s.ids.Add(1), &x.reply
	*reply = tool.Reply{Session: s.client.Key, Mapping: tool.ExternalMapping{
		Source: tool.SourceMCP, Role: "upstream", ServerID: s.cfg.ID, SessionID: sess.shownID,
		ProtocolVersion: sess.version,
		Method:          x.Method, JSONRPCRequestID: strconv.FormatInt(id, 10),
	}}
	params, asTask, err := s.params(x, sess, x.token(id, limits, s.catalog.known().NoProgress))
	if err != nil {
		*reply = tool.Reply{} // without a mapping: nothing was sent
		return response{err: err}
	}
	lc := newLaneCall(id, &x.Request, params)
	if x.call != nil {
		reply.Mapping.ToolName = x.Name
		if sess.hop != nil && !sess.oneStream {
			lc.headers = paramheader.Headers(s.catalog.bindings(x.Name), x.call.Arguments)
		}
	}
	if s.use == useShared && s.catalog.isShort() {
		sess.missed() // it lists beside the call
	}
	if asTask {
		sess.taskTokens.add(id)
	}
	a := s.passable(sess.wait(ctx, lc, limits))
	reply.Result = a.result
	if a.object.Text() != nil {
		reply.Object = a.object
	}
	if x.kind = ""; sess.hop != nil {
		x.kind = resultType(reply)
	}
	if x.call != nil && a.err == nil && (asTask || x.kind == "task") {
		a.err = s.withTask(x)
	}
	if asTask && reply.Task == "" {
		sess.taskTokens.remove(id)
	}
	if a.err == nil && a.room != nil {
		reply.Free = a.room.Free
	}
	return a
}

// params returns the params of x over sess. asks says that the server may make a task of the call.
func (s *server) params(x *clientRequest, sess *session, token int64) (params json.RawMessage, asks bool, err error) {
	if x.call == nil {
		params, err = sess.hop.RequestParams(&x.Request, token)
	} else {
		call := *x.call
		call.Params = x.Params // with the client's answers
		if sess.hop == nil {
			if asks, err = s.asTask(&call, sess); err != nil {
				return nil, false, err
			}
		}
		params, err = sess.hop.CallParams(&call, token)
	}
	if err != nil {
		err = &tool.Failure{Class: tool.ClassInvalidArguments, Cause: err,
			Message: "params of the request are no JSON object: send them as the protocol demands"}
	}
	return params, asks, err
}

// callLimits bound one call: idle without progress, most in all since it began.
type callLimits struct {
	idle, most time.Duration
	began      time.Time // when it was first sent; zero before
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
