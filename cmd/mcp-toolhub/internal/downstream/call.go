package downstream

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// call serves tools/call: it reads what the pipeline needs out of the raw request and writes the outcome back.
func (s *Server) call(ctx context.Context, p peer, m message, r replier) {
	if !rawjson.IsObject(m.params) {
		r.refuse(invalidParams("params are missing"))
		return
	}
	rawName, _ := rawjson.Get(m.params, "name")
	name, ok := rawjson.String(rawName)
	if !ok || name == "" {
		r.refuse(invalidParams(`"name" must be a non-empty string`))
		return
	}
	surface, refusal := s.surfaceWith(ctx, p, name)
	if refusal != nil {
		r.refuse(refusal)
		return
	}
	to := addressee(surface, name, m.params)
	if to.via != "" {
		if surface, refusal = s.surfaceWith(ctx, p, to.name); refusal != nil {
			r.refuse(refusal)
			return
		}
	}
	m.params, name = to.params, to.name
	args, _ := rawjson.Get(m.params, "arguments")
	token, meta := splitMeta(m.params)
	progress := newProgressQueue(r, token)
	server := serverOf(surface, name)
	c := invoke.Call{
		Surface: surface, Name: name, Params: m.params, Arguments: args, Meta: meta, Hop: p.hop,
		NativeCallID: m.id, Method: m.method, Actor: p.actor, Session: p.session,
		Via: to.via, SelectionRef: to.ref,
	}
	if !p.modern && p.caller != nil {
		c.Loaded = p.caller // on 2026-07-28 no session knows anything: there a selection_ref says it
	}
	if p.modern {
		s.serveTurn(ctx, &turn{peer: p, work: &invocation{s, c}, params: m.params, from: server, reply: r, progress: progress})
		return
	}
	open := s.openCall(p, server, progress.says(p.leastLevel()))
	defer open.leave()
	q := s.questionerFor(p, r, server, progress.sent)
	c.Ask, c.Progress, c.Notify = q.ask, progress.report(), open.notify(s)
	if task, ok := rawjson.Get(m.params, "task"); ok && rawjson.IsObject(task) {
		defer s.belongings.expect(server)()
	}
	outcome := s.deps.Pipeline.Invoke(ctx, c)
	q.close()
	open.leave()
	progress.flush()
	kept := s.keepTask(p, server, outcome, token)
	defer kept.release()
	s.finishCall(ctx, p, finished{server, r, kept}, outcome)
}

// finished is a call that has an outcome.
type finished struct {
	server string
	wire   replier
	task   *taskKept // that the server has made of it; nil for none
}

// finishCall writes the outcome of a call on the client's wire.
func (s *Server) finishCall(ctx context.Context, p peer, to finished, outcome invoke.Outcome) {
	r := to.wire
	if outcome.Err != nil {
		s.elicitsFirst(p, to.server, outcome.Err)
		r.refuse(labelledError(to.server, outcome.Err))
		return
	}
	if outcome.Status == tool.StatusCanceled && ctx.Err() != nil && r.abandon(ctx) {
		return
	}
	if outcome.Status == tool.StatusSucceeded {
		p.caller.remember(to.server, outcome.Result, outcome.Object)
	}
	outcome, err := to.task.showTask(p, outcome)
	if err != nil {
		r.refuse(&tool.RPCError{Code: tool.CodeInternalError, Message: "the server's task cannot be shown"})
		return
	}
	if outcome.Status == tool.StatusNeedsInput {
		outcome.Object, _ = rawjson.ReadObject(outcome.Result) // none where it is not one, and that is said below
	}
	result, err := s.resultFor(p, outcome)
	if err != nil {
		s.deps.Logger.Error("result cannot be sent", "invocation", outcome.InvocationID, "error", err)
		r.refuse(&tool.RPCError{Code: tool.CodeInternalError, Message: "the tool's result is no JSON object"})
		return
	}
	if r.answer(result) && outcome.Free != nil {
		outcome.Free()
	}
}

// serverOf is the server of the tool that name stands for; "" where there is none.
func serverOf(surface *tool.Surface, name string) string {
	if l, ok := surface.Resolve(name); ok {
		return l.Tool.Server
	}
	return ""
}

// progressQueue passes on what belongs to a call before its result: progress under the client's own token, and log
// messages. A client that does not read it holds up its own answer and nothing else: not the call, its limits, or its place
// at the server.
type progressQueue struct {
	replier replier
	token   json.RawMessage

	mu      sync.Mutex
	waiting []note
	sending bool
	closed  bool      // the result comes next
	idle    sync.Cond // signalled when sending ends
}

// maxQueuedProgress bounds the reports that wait for a client; then the oldest are dropped.
const maxQueuedProgress = 256

func newProgressQueue(r replier, token json.RawMessage) *progressQueue {
	q := &progressQueue{replier: r, token: token}
	q.idle.L = &q.mu
	return q
}

// report is what takes the reports; nil where the client gave no token.
func (q *progressQueue) report() func(tool.Progress) {
	if q.token == nil {
		return nil
	}
	return q.take
}

// take queues one report. Without a token it is dropped.
func (q *progressQueue) take(u tool.Progress) {
	if q.token == nil {
		return
	}
	if params, err := rawjson.Set(u.Params, "progressToken", q.token); err == nil {
		q.add(noteProgress, params)
	}
}

// says is what takes what a server says of a call; log messages of a level or above.
func (q *progressQueue) says(least int) func(saying) {
	return func(n saying) {
		if n.method != noteMessage || n.level >= least {
			q.add(n.method, n.params)
		}
	}
}

// add takes one notification.
func (q *progressQueue) add(method string, params json.RawMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if len(q.waiting) >= maxQueuedProgress {
		q.waiting = q.waiting[1:]
	}
	q.waiting = append(q.waiting, note{method: method, params: params})
	if !q.sending {
		q.sending = true
		go q.send()
	}
}

func (q *progressQueue) send() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 {
		next := q.waiting[0]
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		q.replier.notify(next.method, next.params)
		q.mu.Lock()
	}
	q.sending = false
	q.idle.Broadcast()
}

// sent waits until every report so far has been sent.
func (q *progressQueue) sent() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.sending {
		q.idle.Wait()
	}
}

// flush waits until every report has been sent: what was notified before the answer arrives before it, and nothing after.
func (q *progressQueue) flush() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for q.sending {
		q.idle.Wait()
	}
}
