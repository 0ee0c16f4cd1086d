package downstream

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// questions are the hub's open requests to one client, on a revision with sessions. Each client has
// its own, so that none can answer for another one. The zero value is ready.
type questions struct {
	// series tells the ids from those that an earlier hub gave to this client: an answer to one of
	// its questions must not count for another one. "" where the session began here.
	series string

	mu   sync.Mutex
	last int
	open map[string]chan tool.Answer // by id, decoded
	over bool                        // no answer can come any more
}

// maxQuestions bounds the open questions to one client.
const maxQuestions = 100

// questionPrefix begins the ids of the hub's requests.
const questionPrefix = "toolhub-"

// add opens a question, unless there are too many, or end was called.
func (q *questions) add() (id string, answered <-chan tool.Answer, refusal *tool.RPCError) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return "", nil, unreachable()
	}
	if len(q.open) >= maxQuestions {
		return "", nil, &tool.RPCError{Code: tool.CodeInternalError,
			Message: fmt.Sprintf("%d requests to the client are open: wait for an answer, then ask again",
				maxQuestions)}
	}
	q.last++
	id = fmt.Sprint(questionPrefix, q.series, q.last)
	c := make(chan tool.Answer, 1)
	set(&q.open, id, c)
	return id, c, nil
}

// end answers all open questions with an error: the client can answer nothing more, because of cause.
func (q *questions) end(cause *tool.Failure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	for id, c := range q.open {
		delete(q.open, id)
		c <- tool.Answer{Err: unreachable(), Ended: cause}
	}
}

// forget closes a question and reports whether it was still open.
func (q *questions) forget(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.open[id]
	delete(q.open, id)
	return ok
}

func (q *questions) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.open)
}

// deliver gives a response to the open question that it answers, and reports whether there is one.
func (q *questions) deliver(m *jsonrpc.Message) bool {
	id, ok := rawjson.String(m.ID)
	if !ok {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	c, ok := q.open[id]
	if ok {
		delete(q.open, id)
		c <- answerOf(m)
	}
	return ok
}

// answerOf reads a response.
func answerOf(m *jsonrpc.Message) tool.Answer {
	result, hasResult := m.Result, m.Result != nil
	fault, hasFault := m.Error, m.Error != nil
	switch {
	case hasFault && !hasResult && rawjson.IsObject(fault):
		e := &tool.RPCError{Raw: fault}
		if json.Unmarshal(fault, e) == nil {
			return tool.Answer{Err: e}
		}
	case hasResult && !hasFault && rawjson.IsObject(result):
		return tool.Answer{Result: result}
	}
	return tool.Answer{Malformed: true,
		Err: &tool.RPCError{Code: tool.CodeInternalError,
			Message: "the client's answer is neither a result nor an error"}}
}

// takeResponse takes a client's response. One that answers no open question of that client is dropped.
func (s *Server) takeResponse(q *questions, m *jsonrpc.Message) {
	if !q.deliver(m) {
		s.strays.Add(1)
		s.deps.Logger.Debug("a client's response was dropped: it answers no open request of the hub to that client")
	}
}

// clientAsker puts the questions of one server to a client, during one request of that client.
type clientAsker struct {
	ownerships *ownerships
	during     *attempt // the request; outside of requests an attempt that names the client and the server alone

	mu     sync.Mutex
	closed bool
	asking sync.WaitGroup
	ended  chan struct{} // closed at the end; nil until something is asked
}

// close takes open questions back from the client, and returns when that is done.
func (a *clientAsker) close() {
	a.mu.Lock()
	if !a.closed && a.ended != nil {
		close(a.ended)
	}
	a.closed = true
	a.mu.Unlock()
	a.asking.Wait()
}

// sentQuestion is a question that the client has got; answered is nil where it has not.
type sentQuestion struct {
	id       string
	answered <-chan tool.Answer
}

// ask implements tool.Asker by requests on the stream of the client's own request.
func (a *clientAsker) ask(ctx context.Context, all []tool.Question) ([]tool.Answer, error) {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil, fmt.Errorf("ask client: the call has ended")
	}
	if a.ended == nil {
		a.ended = make(chan struct{})
	}
	a.asking.Add(1)
	a.mu.Unlock()
	defer a.asking.Done()
	a.during.notes.sent()
	answers, waiting := make([]tool.Answer, len(all)), make([]sentQuestion, len(all))
	for i, question := range all {
		waiting[i], answers[i].Err = a.send(question)
	}
	tool.Sent(all)
	for i, w := range waiting {
		if w.answered == nil {
			continue
		}
		select {
		case answers[i] = <-w.answered:
			continue
		case <-ctx.Done():
		case <-a.ended:
		}
		for _, w := range waiting[i:] {
			a.takeBack(w)
		}
		return nil, fmt.Errorf("ask client: the call has ended")
	}
	return answers, nil
}

// send puts one question on the wire, or says why not.
func (a *clientAsker) send(question tool.Question) (sentQuestion, *tool.RPCError) {
	p, server := a.during.peer, a.during.server
	if l := cannot(p.hop.ClientCapabilities, question); l != nil {
		return sentQuestion{}, l.err
	}
	if p.questions == nil {
		return sentQuestion{}, unreachable()
	}
	id, answered, refusal := p.questions.add()
	if refusal != nil {
		return sentQuestion{}, refusal
	}
	a.ownerships.elicits(p, cmp.Or(question.Server, server), question.Params)
	if !a.during.reply.request(rawjson.Quote(id), question.Method, labelled(server, question).Params) {
		p.questions.forget(id)
		return sentQuestion{}, unreachable()
	}
	return sentQuestion{id: id, answered: answered}, nil
}

func unreachable() *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeInternalError,
		Message: "the client cannot be asked: nothing that it answers arrives here"}
}

// takeBack tells the client that its answer is no longer awaited.
func (a *clientAsker) takeBack(w sentQuestion) {
	if w.answered == nil || !a.during.peer.questions.forget(w.id) {
		return
	}
	params := append([]byte(`{"requestId":`), rawjson.Quote(w.id)...)
	a.during.reply.notify(tool.NoteCancelled, append(params, `,"reason":"the call that asked has ended"}`...))
}
