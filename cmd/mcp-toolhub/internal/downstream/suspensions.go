package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream/internal/suspended"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// suspensions serves operations. On 2026-07-28 it suspends one while its client fetches the input
// that the server needs.
type suspensions struct {
	*parts
	table *suspended.Table[*attempt]
	lost  atomic.Int64 // notifications of servers that were not kept for the next attempt
}

// serve serves an attempt: the only one, unless its client retries. On revisions with sessions the
// server may ask the client meanwhile.
func (s *suspensions) serve(ctx context.Context, a *attempt) {
	a.notes = &callNotes{parts: s.parts, session: a.peer.session.Key, view: direct(a.peer.profile), to: a, peer: a.peer}
	a.notes.idle.L = &a.notes.mu
	if a.retries {
		s.serveRetrying(ctx, a)
		return
	}
	if !a.peer.modern {
		a.ask = a.askOnStream
	}
	result := a.op.run(ctx, a)
	a.notes.detach()
	a.op.answer(ctx, a, result)
}

// serveRetrying serves an attempt of a client that retries, the first or a retry.
func (s *suspensions) serveRetrying(ctx context.Context, a *attempt) {
	retry := a.requestState != nil
	text, ok := rawjson.String(a.requestState)
	switch {
	case retry && !ok:
		s.refuse(ctx, a, suspended.Refused("must be a string"))
	case retry && !answersAreObject(a.params):
		s.refuse(ctx, a, &tool.RPCError{Code: tool.CodeInvalidParams,
			Message: "invalid params: inputResponses must be an object. Send the request " +
				"again, with the same requestState and an answer for each of inputRequests"})
	// inputResponses without requestState are for the server to judge; an unknown tool is refused
	case !retry, s.endIfGone(a, text):
		if s.table.Len() > 0 && !retry {
			if call := s.table.TakeDone(a.state()); call != nil {
				call.Resume(ctx, a, nil)
				return
			}
		}
		a.invocation = tool.NewInvocationID()
		s.begin(ctx, a)
	default:
		call, serverState, refusal := s.table.Take(text, a.state())
		if refusal != nil {
			s.refuse(ctx, a, refusal)
			return
		}
		call.Resume(ctx, a, serverState)
	}
}

// answersAreObject reports whether the inputResponses of a retry are an object, or missing.
func answersAreObject(params json.RawMessage) bool {
	answers, there := rawjson.Get(params, "inputResponses")
	return !there || rawjson.IsObject(answers)
}

// refuse answers a retry that continues nothing. Of a tools/call that is an invocation, too.
func (s *suspensions) refuse(ctx context.Context, a *attempt, why *tool.RPCError) {
	if c, ok := a.op.(*toolCall); ok {
		c.call.Refused, c.call.Member = why, nil
		why = s.deps.Pipeline.Invoke(ctx, &c.call).Err
	}
	a.reply.refuse(why)
}

// endIfGone ends the call that a requestState continues if its tool was taken away since, or hidden from the caller. It
// reports whether that was so.
func (s *suspensions) endIfGone(a *attempt, requestState string) bool {
	c, ok := a.op.(*toolCall)
	want := a.state()
	if !ok || want.Name != "" {
		return false
	}
	state, _, refusal := s.table.Read(requestState)
	if refusal != nil {
		return false
	}
	if _, there := c.call.Surface.Resolve(state.Name); there {
		return false
	}
	want.ID, want.Expires, want.Server, want.Name = state.ID, state.Expires, state.Server, state.Name
	if state != want {
		return false
	}
	s.table.End(state.ID, tool.CanceledBy(tool.CanceledByHub, "the tool is not offered any more",
		"the tool is not offered any more: list the tools"))
	return true
}

// begin lets the server work on an attempt, and answers that with the result of the call. The call
// has a goroutine of its own, because its request may end first: with what the server asks.
func (s *suspensions) begin(ctx context.Context, a *attempt) {
	called, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	r := &runningCall{invocation: a.invocation, cancel: cancel, asked: make(chan struct{}, 1),
		done: make(chan struct{}), notes: a.notes, questions: questions{series: "q"}}
	a.ask = r.ask
	s.calls.Add(1) // the request that is served has one of its own, so Wait cannot have returned
	go func() {
		defer s.calls.Done()
		defer cancel(nil)
		r.result = s.runSafely(called, a, r)
		close(r.done)
	}()
	s.await(ctx, a, r)
}

// runSafely runs an attempt. A panic in it ends that call alone, as it does on a goroutine of net/http.
func (s *suspensions) runSafely(ctx context.Context, a *attempt, r *runningCall) (result invoke.Outcome) {
	defer func() {
		if p := recover(); p != nil {
			s.deps.Logger.Error("panic while a request was served", "panic", fmt.Sprint(p), "stack",
				string(debug.Stack()))
			err := &tool.RPCError{Code: tool.CodeInternalError,
				Message: "the hub failed while it handled this request; its log says where"}
			result = invoke.Outcome{InvocationID: r.invocation, Status: tool.StatusFailed, Err: err}
		}
	}()
	return a.op.run(ctx, a)
}

// await answers an attempt with the result of the running call, or with an input request of its server.
func (s *suspensions) await(ctx context.Context, a *attempt, r *runningCall) {
	// "Disconnection SHALL be interpreted as cancellation" of the request that is open, and so of its
	// call. net/http says no cause.
	stop := context.AfterFunc(ctx, func() {
		r.cancel(causeOf(ctx, tool.CanceledBy(tool.CanceledByClosedStream, "",
			"the client closed the stream of its request: call again if the result is still wanted")))
	})
	defer stop()
	for {
		select {
		case <-r.done:
			r.notes.detach()
			s.conclude(ctx, a, r.result)
			return
		case <-r.asked:
			if s.suspend(ctx, a, r, stop) {
				return
			}
		}
	}
}

// suspend answers the attempt with the open input requests, and leaves the running call to a retry.
// It returns false where nothing is open or the call is about to end.
func (s *suspensions) suspend(ctx context.Context, a *attempt, r *runningCall, stop func() bool) bool {
	requests := r.inputRequests(a)
	if requests == nil || !stop() {
		return false
	}
	r.notes.detach()
	text, failure := s.table.Add(ctx, a.state(), s.cfg().InputTimeout, nil, &suspended.Call[*attempt]{
		Done: r.done,
		Resume: func(ctx context.Context, retry *attempt, _ json.RawMessage) {
			retry.invocation = r.invocation
			lost := r.notes.attach(retry) // first: the server may go on at once, and what it says then is for this attempt
			if s.lost.Add(lost); lost > 0 {
				s.deps.Logger.Warn("a server said more than is kept while its call waited for the client: the "+
					"oldest of it is lost",
					"server", retry.server, "lost", lost)
			}
			r.answerWith(retry)
			signal(r.asked)
			s.await(ctx, retry, r)
		},
		End: func(why *tool.Failure) {
			r.cancel(why)
			<-r.done
			if before := r.result.Suspended; before != nil {
				before.End(ctx, why)
			}
		},
	})
	if failure != nil {
		r.cancel(failure)
		return false
	}
	result := append([]byte(`{"resultType":"input_required","inputRequests":`), requests...)
	result = append(append(append(result, `,"requestState":`...), rawjson.Quote(text)...), '}')
	a.op.answer(ctx, a, a.needsInput(result))
	return true
}

// conclude answers an attempt with the result of its request, or with the input that the server needs.
func (s *suspensions) conclude(ctx context.Context, a *attempt, o invoke.Outcome) {
	if o.Suspended == nil {
		a.op.answer(ctx, a, o)
		return
	}
	result, serverState, err := inputRequired(a, o.Result)
	if err == nil {
		text, failure := s.table.Add(ctx, a.state(), s.cfg().InputTimeout, serverState,
			s.repeated(ctx, a.invocation, o.Suspended))
		if failure == nil {
			result, err = rawjson.Set(result, "requestState", rawjson.Quote(text))
		} else {
			err = failure
		}
	}
	if err != nil {
		a.op.answer(ctx, a, o.Suspended.End(ctx, err))
		return
	}
	a.op.answer(ctx, a, a.needsInput(result))
}

// repeated is a suspended call that its server begins again with each retry.
func (s *suspensions) repeated(ctx context.Context, invocation tool.InvocationID,
	before *invoke.Suspended) *suspended.Call[*attempt] {
	return &suspended.Call[*attempt]{
		Resume: func(ctx context.Context, retry *attempt, serverState json.RawMessage) {
			retry.invocation, retry.before = invocation, before
			params, _, err := rawjson.Delete(retry.params, "requestState")
			if serverState != nil {
				params, err = rawjson.Set(retry.params, "requestState", serverState)
			}
			if err != nil {
				retry.op.answer(ctx, retry, before.End(ctx, err))
				return
			}
			retry.params = params
			s.begin(ctx, retry)
		},
		End: func(why *tool.Failure) { before.End(ctx, why) },
	}
}

// endOf ends the suspended calls of a session that is over because of why, and waits for them as
// long as a stop waits for calls.
func (s *suspensions) endOf(session string, why *tool.Failure) {
	ended := finished(func() {
		s.table.EndWhere(func(caller string) bool { return caller == session }, why)
	})
	select {
	case <-ended:
	case <-time.After(s.cfg().HTTP.DrainTimeout):
	}
}
