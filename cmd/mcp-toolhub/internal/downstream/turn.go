package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// turn is one request of a client of 2026-07-28: the first for its work, or one that brings input to it.
type turn struct {
	peer     peer
	work     work
	params   json.RawMessage // as the server gets them
	from     string          // the server
	reply    replier
	progress *progressQueue

	invocation tool.InvocationID // the name of the work, which is that of its first turn
	before     *outcome          // what the round before needed; nil in the first
}

// claim is what the requestState of the turn's work says, but for what each state says of itself.
func (t *turn) claim() claim {
	c := claim{Caller: t.peer.session.Key, Profile: t.peer.profile, Server: t.from}
	t.work.bind(&c)
	return c
}

// serveTurn serves a request of work in rounds.
func (s *Server) serveTurn(ctx context.Context, t *turn) {
	raw, again := rawjson.Get(t.params, "requestState")
	if !again { // inputResponses that belong to no state are for the server to judge
		t.invocation = tool.NewInvocationID()
		s.attend(ctx, t, s.startParkable(ctx, t))
		return
	}
	text, ok := rawjson.String(raw)
	if !ok {
		t.reply.refuse(stateRefused("must be a string"))
		return
	}
	if s.dropGone(t, text) {
		t.invocation = tool.NewInvocationID() // which is refused as that of any unknown tool is
		s.attend(ctx, t, s.startParkable(ctx, t))
		return
	}
	r, state, refusal := s.rounds.redeem(text, t.claim())
	if refusal != nil {
		t.reply.refuse(refusal)
		return
	}
	r.resume(ctx, t, state)
}

// dropGone ends the call that a requestState continues if its tool was taken away since, or hidden from the caller, and
// reports whether that was so.
func (s *Server) dropGone(t *turn, text string) bool {
	w, ok := t.work.(*invocation)
	want := t.claim()
	if !ok || want.Name != "" {
		return false
	}
	c, _, refusal := s.rounds.read(text)
	if refusal != nil {
		return false
	}
	if _, there := w.call.Surface.Resolve(c.Name); there {
		return false
	}
	want.Ticket, want.Kind, want.Expires, want.Server, want.Name = c.Ticket, c.Kind, c.Expires, c.Server, c.Name
	if c != want {
		return false
	}
	s.rounds.end(c.Ticket, &tool.Failure{Class: tool.ClassCanceled, Message: "the tool is not offered any more"})
	return true
}

// parkable is work in rounds while its server works on it. It runs apart from the requests of its client: one of them at
// a time attends it, and between two of them it is parked.
type parkable struct {
	invocation tool.InvocationID
	cancel     context.CancelCauseFunc
	asked      chan struct{} // holds one element when a question may be open
	done       chan struct{} // closed when outcome is set
	outcome    outcome

	notify func(tool.Notification) // what the server says on the work's own stream, besides progress

	mu    sync.Mutex
	turn  *turn // the request that attends; nil while parked
	least int   // level of the log messages that the latest request wants
	kept  kept  // what the server has said while parked
	open  []*parkedQuestion
	last  int
}

// parkedQuestion is a question that the client has not answered.
type parkedQuestion struct {
	key      string
	question tool.Question
	answered chan tool.Answer
}

// startParkable starts the work of t, or the next round of it.
func (s *Server) startParkable(ctx context.Context, t *turn) *parkable {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx)) // the request ends before the work does
	k := &parkable{turn: t, least: t.peer.leastLevel(), invocation: t.invocation, cancel: cancel,
		asked: make(chan struct{}, 1), done: make(chan struct{})}
	at := s.openCall(t.peer, t.from, k.say) // while it is parked, too: the server works on it
	k.notify = at.notify(s)
	s.calls.Add(1) // the request that is served has one of its own, so Wait cannot have returned
	go func() {
		defer s.calls.Done()
		defer cancel(nil)
		defer close(k.done)
		defer at.leave()
		k.outcome = s.runSafely(ctx, t, k)
	}()
	return k
}

// runSafely does the work of t. A panic in it ends that work alone, as it does for work on a goroutine of net/http.
func (s *Server) runSafely(ctx context.Context, t *turn, k *parkable) (o outcome) {
	defer func() {
		if r := recover(); r != nil {
			s.deps.Logger.Error("panic while a request was served", "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err := &tool.RPCError{Code: tool.CodeInternalError, Message: "the hub failed while it handled this request; its log says where"}
			o = outcome{err: err, invoked: invoke.Outcome{InvocationID: k.invocation, Status: tool.StatusFailed, Err: err}}
		}
	}()
	return t.work.run(ctx, t, k)
}

// ask implements tool.Asker: the questions wait until a request of the client can take them along, and until another one
// brings the answers.
func (k *parkable) ask(ctx context.Context, all []tool.Question) ([]tool.Answer, error) {
	k.mu.Lock()
	if len(k.open)+len(all) > maxQuestions {
		k.mu.Unlock()
		return tool.Refusal(all, &tool.RPCError{Code: tool.CodeInternalError,
			Message: fmt.Sprintf("%d questions of one call are open: wait for an answer, then ask again", maxQuestions)}), nil
	}
	mine := make([]*parkedQuestion, len(all))
	for i, question := range all {
		k.last++
		mine[i] = &parkedQuestion{key: fmt.Sprint("q", k.last), question: question, answered: make(chan tool.Answer, 1)}
	}
	k.open = append(k.open, mine...)
	k.mu.Unlock()
	tool.Sent(all)
	k.look()
	answers := make([]tool.Answer, len(all))
	for i, q := range mine {
		select {
		case answers[i] = <-q.answered:
			continue
		case <-ctx.Done():
		case <-k.done:
		}
		k.mu.Lock()
		k.open = slices.DeleteFunc(k.open, func(q *parkedQuestion) bool { return slices.Contains(mine, q) })
		k.mu.Unlock()
		return nil, errors.New("ask client: the call has ended")
	}
	return answers, nil
}

// look makes whoever attends the call look for open questions.
func (k *parkable) look() {
	select {
	case k.asked <- struct{}{}:
	default:
	}
}

// answerWith gives the answers to the questions that they name. Questions without one stay open.
func (k *parkable) answerWith(responses json.RawMessage) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open = slices.DeleteFunc(k.open, func(q *parkedQuestion) bool {
		result, _ := rawjson.Get(responses, q.key)
		if !rawjson.IsObject(result) {
			return false
		}
		q.answered <- tool.Answer{Result: result}
		return true
	})
}

// inputRequests are the open questions as the turn's client gets them; nil where there is none. What that client cannot be
// asked is answered at once.
func (k *parkable) inputRequests(t *turn) json.RawMessage {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.open = slices.DeleteFunc(k.open, func(q *parkedQuestion) bool {
		l := cannot(t.peer.hop.ClientCapabilities, q.question)
		if l != nil {
			q.answered <- tool.Answer{Err: l.err}
		}
		return l != nil
	})
	if len(k.open) == 0 {
		return nil
	}
	out := []byte("{")
	for i, q := range k.open {
		if i > 0 {
			out = append(out, ',')
		}
		question := labelled(t.from, q.question)
		out = append(append(out, rawjson.Quote(q.key)...), `:{"method":`...)
		out = append(out, rawjson.Quote(question.Method)...)
		if question.Params != nil {
			out = append(append(out, `,"params":`...), question.Params...)
		}
		out = append(out, '}')
	}
	return append(out, '}')
}

// attach makes a turn the one that attends the work.
func (s *Server) attach(t *turn, k *parkable) {
	if lost := k.attach(t); lost > 0 {
		s.lost.Add(lost)
		s.deps.Logger.Warn("a server said more than is kept while its call waited for the client: the oldest of it is lost",
			"server", t.from, "lost", lost)
	}
}

// attend serves the turn that is attached with what becomes of the work: its outcome, or a question of its server.
func (s *Server) attend(ctx context.Context, t *turn, k *parkable) {
	// "Disconnection SHALL be interpreted as cancellation": of the request that is open, and so of its call.
	stop := context.AfterFunc(ctx, func() { k.cancel(context.Cause(ctx)) })
	defer stop()
	for {
		select {
		case <-k.done:
			k.detach()
			t.progress.flush()
			s.concludeTurn(ctx, t, k.outcome)
			return
		case <-k.asked:
			if s.park(ctx, t, k, stop) {
				return
			}
		}
	}
}

// park answers the turn with the open questions of the call and leaves the call to the client's next request. It returns
// false where nothing is open or the call is about to end.
func (s *Server) park(ctx context.Context, t *turn, k *parkable, stop func() bool) bool {
	requests := k.inputRequests(t)
	if requests == nil || !stop() {
		return false
	}
	k.detach()
	t.progress.flush()
	c := t.claim()
	c.Kind = kindParked
	text, failure := s.hold(ctx, c, nil, &round{
		resume: func(ctx context.Context, next *turn, _ json.RawMessage) {
			responses, _ := rawjson.Get(next.params, "inputResponses")
			next.invocation = k.invocation
			s.attach(next, k) // first: the server may go on at once, and what it says then is for this request
			k.answerWith(responses)
			k.look()
			s.attend(ctx, next, k)
		},
		end: func(why *tool.Failure) {
			k.cancel(why)
			<-k.done
			if k.outcome.needs != nil {
				t.work.end(ctx, k.outcome, why)
			}
		},
	})
	if failure != nil {
		k.cancel(failure)
		return false
	}
	result := append([]byte(`{"resultType":"input_required","inputRequests":`), requests...)
	result = append(append(append(result, `,"requestState":`...), rawjson.Quote(text)...), '}')
	t.work.answer(ctx, t, outcome{needs: result})
	return true
}

// hold puts a call among those that wait for their client's next request. A client that has gone gets no requestState, so
// it cannot come back with one. Where there is a failure, the call is the caller's to end.
func (s *Server) hold(ctx context.Context, c claim, state json.RawMessage, r *round) (text string, failure *tool.Failure) {
	ticket, text, failure := s.rounds.add(c, s.cfg().InputTimeout, state, r)
	if failure == nil && ctx.Err() != nil {
		if _, ours := s.rounds.take(ticket); ours {
			return "", &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled"}
		}
	}
	return text, failure
}

// concludeTurn answers a turn with the outcome of its work, or with the input that the server needs.
func (s *Server) concludeTurn(ctx context.Context, t *turn, o outcome) {
	if o.needs == nil {
		t.work.answer(ctx, t, o)
		return
	}
	result, state, err := inputRequired(t, o.needs)
	if err == nil {
		c := t.claim()
		c.Kind = kindPaused
		text, failure := s.hold(ctx, c, state, s.pausedRound(ctx, t, o))
		if failure == nil {
			result, err = rawjson.Set(result, "requestState", rawjson.Quote(text))
		} else {
			err = failure
		}
	}
	if err != nil {
		t.work.answer(ctx, t, t.work.end(ctx, o, err))
		return
	}
	t.work.answer(ctx, t, outcome{needs: result})
}

// pausedRound is work whose server begins again with the client's next request.
func (s *Server) pausedRound(ctx context.Context, t *turn, o outcome) *round {
	paused, invocation := t.work, t.invocation
	return &round{
		resume: func(ctx context.Context, next *turn, state json.RawMessage) {
			next.invocation, next.before = invocation, &o
			params, _, err := rawjson.Delete(next.params, "requestState")
			if state != nil {
				params, err = rawjson.Set(next.params, "requestState", state)
			}
			if err != nil {
				next.work.answer(ctx, next, paused.end(ctx, o, err))
				return
			}
			next.params = params
			s.attend(ctx, next, s.startParkable(ctx, next))
		},
		end: func(why *tool.Failure) { paused.end(ctx, o, why) },
	}
}

// inputRequired reads what a server of 2026-07-28 needs, and returns it as the turn's client gets it, and the server's own
// requestState or nil. The error is a *tool.Failure, or a *tool.RPCError for the client.
func inputRequired(t *turn, result json.RawMessage) (shown, state json.RawMessage, err error) {
	faulty := func(what string) error {
		return &tool.Failure{Class: tool.ClassExecutionFailed, Code: "invalid_input_required",
			Message: fmt.Sprintf("the server %q asks for input in a way that the protocol does not know (%s): do without it, or "+
				"report it to the server's makers", t.from, what)}
	}
	requests, asks := rawjson.Get(result, "inputRequests")
	state, has := rawjson.Get(result, "requestState")
	if _, text := rawjson.String(state); has && !text {
		return nil, nil, faulty("its requestState is no string")
	}
	if !asks && !has {
		return nil, nil, faulty("there are neither inputRequests nor a requestState")
	}
	shown, err = rawjson.Set(result, "resultType", []byte(`"input_required"`))
	if !asks || err != nil {
		return shown, state, err
	}
	questions, err := readQuestions(requests)
	if err != nil {
		return nil, nil, faulty(err.Error())
	}
	var lacks []*lack
	for _, q := range questions {
		if l := cannot(t.peer.hop.ClientCapabilities, q); l != nil {
			if l.path == nil {
				return nil, nil, faulty(l.err.Message)
			}
			lacks = append(lacks, l)
		}
		if requests, err = labelledAmong(requests, t.from, q); err != nil {
			return nil, nil, faulty(err.Error())
		}
	}
	if len(lacks) > 0 {
		return nil, nil, missingCapabilities(lacks)
	}
	shown, err = rawjson.Set(shown, "inputRequests", requests)
	return shown, state, err
}

// readQuestions reads inputRequests.
func readQuestions(requests json.RawMessage) ([]tool.Question, error) {
	if !rawjson.IsObject(requests) {
		return nil, errors.New("inputRequests is no object")
	}
	if name, twice := rawjson.Duplicate(requests); twice {
		return nil, fmt.Errorf("inputRequests has two members %q", name)
	}
	var all []tool.Question
	err := rawjson.Members(requests, func(m rawjson.Member) bool {
		q := tool.Question{Key: m.Name()}
		if method, ok := rawjson.Get(m.Value, "method"); ok && rawjson.IsObject(m.Value) {
			q.Method, _ = rawjson.String(method)
		}
		q.Params, _ = rawjson.Get(m.Value, "params")
		all = append(all, q)
		return len(all) <= maxQuestions
	})
	if len(all) > maxQuestions {
		return nil, fmt.Errorf("more than %d inputRequests", maxQuestions)
	}
	return all, err
}
