package downstream

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// questions are the requests of the hub to one client on a revision with sessions, which that client has not answered.
// An answer is looked for here and nowhere else, so that no client can answer for another one. The zero value is ready.
type questions struct {
	// series tells the ids of a session that was taken up again from those that an earlier hub gave: an answer to one of its
	// questions must not count for another one. "" where the session began here.
	series string

	mu   sync.Mutex
	last int
	open map[string]chan tool.Answer // by id, decoded
	over bool                        // no answer can come any more
}

// maxQuestions bounds the open questions to one client.
const maxQuestions = 100

// questionPrefix begins the ids of the hub's requests. The SDK's ids are numbers, so the two never meet.
const questionPrefix = "toolhub-"

// add opens a question. ok is false where there are too many.
func (q *questions) add() (id string, answered <-chan tool.Answer, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.open) >= maxQuestions || q.over {
		return "", nil, false
	}
	if q.open == nil {
		q.open = make(map[string]chan tool.Answer)
	}
	q.last++
	id = fmt.Sprint(questionPrefix, q.series, q.last)
	c := make(chan tool.Answer, 1)
	q.open[id] = c
	return id, c, true
}

// end answers what is open, for a client that can answer nothing more.
func (q *questions) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.over = true
	for id, c := range q.open {
		delete(q.open, id)
		c <- tool.Answer{Err: unreachable()}
	}
}

// isOver reports whether end was called.
func (q *questions) isOver() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.over
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

// deliver gives a response to whoever asked. It reports false where nobody has.
func (q *questions) deliver(m message) bool {
	id, ok := rawjson.String(m.id)
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

// isResponse reports whether m answers a request.
func (m message) isResponse() bool { return m.method == "" && m.id != nil }

// answerOf reads a response.
func answerOf(m message) tool.Answer {
	result, hasResult := rawjson.Get(m.text, "result")
	fault, hasFault := rawjson.Get(m.text, "error")
	switch {
	case hasFault && !hasResult && rawjson.IsObject(fault):
		e := &tool.RPCError{Raw: fault}
		if json.Unmarshal(fault, e) == nil {
			return tool.Answer{Err: e}
		}
	case hasResult && !hasFault && rawjson.IsObject(result):
		return tool.Answer{Result: result}
	}
	return tool.Answer{Err: &tool.RPCError{Code: tool.CodeInternalError, Message: "the client's answer is neither a result nor an error"}}
}

// takeResponse takes a client's response in. One that answers no open question of that client is dropped.
func (s *Server) takeResponse(q *questions, m message) {
	if !q.deliver(m) {
		s.strays.Add(1)
		s.deps.Logger.Debug("a client's response was dropped: it answers no open request of the hub to that client")
	}
}

// questioner is how servers ask, during one request of a client, what only that client can answer.
type questioner struct {
	server *Server
	peer   peer
	wire   replier
	before func() // waits until what was told earlier has left
	from   string // the server that asks

	mu     sync.Mutex
	closed bool
	asking sync.WaitGroup
	ended  chan struct{}
}

// questionerFor is the questioner of a request of p for a server, where p's client takes requests. before may be nil.
func (s *Server) questionerFor(p peer, wire replier, server string, before func()) *questioner {
	if before == nil {
		before = func() {}
	}
	return &questioner{server: s, peer: p, wire: wire, from: server, before: before, ended: make(chan struct{})}
}

// close ends what is being asked, and tells the client so. It returns when that is done.
func (q *questioner) close() {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.ended)
	}
	q.mu.Unlock()
	q.asking.Wait()
}

// asked is a question that is on its way; answered is nil where the answer is known already.
type asked struct {
	id       string
	answered <-chan tool.Answer
}

// ask implements tool.Asker by requests on the stream of the client's own request.
func (q *questioner) ask(ctx context.Context, all []tool.Question) ([]tool.Answer, error) {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil, fmt.Errorf("ask client: the call has ended")
	}
	q.asking.Add(1)
	q.mu.Unlock()
	defer q.asking.Done()
	q.before()
	answers, waiting := make([]tool.Answer, len(all)), make([]asked, len(all))
	for i, question := range all {
		waiting[i], answers[i].Err = q.send(question)
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
		case <-q.ended:
		}
		for _, w := range waiting[i:] {
			q.takeBack(w)
		}
		return nil, fmt.Errorf("ask client: the call has ended")
	}
	return answers, nil
}

// send puts one question on the wire, or says why not.
func (q *questioner) send(question tool.Question) (asked, *tool.RPCError) {
	if refusal := cannot(q.peer.hop.ClientCapabilities, question); refusal != nil {
		return asked{}, refusal.err
	}
	if q.peer.questions == nil || q.peer.questions.isOver() {
		return asked{}, unreachable()
	}
	q.server.elicits(q.peer, q.from, question.Params)
	id, answered, ok := q.peer.questions.add()
	if !ok {
		return asked{}, &tool.RPCError{Code: tool.CodeInternalError,
			Message: fmt.Sprintf("%d requests to the client are open: wait for an answer, then ask again", maxQuestions)}
	}
	if !q.wire.request(rawjson.Quote(id), question.Method, labelled(q.from, question).Params) {
		q.peer.questions.forget(id)
		return asked{}, unreachable()
	}
	return asked{id: id, answered: answered}, nil
}

func unreachable() *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeInternalError, Message: "the client cannot be asked: nothing that it answers arrives here"}
}

// takeBack tells the client that its answer is no longer awaited.
func (q *questioner) takeBack(w asked) {
	if w.answered == nil || !q.peer.questions.forget(w.id) {
		return
	}
	params := append([]byte(`{"requestId":`), rawjson.Quote(w.id)...)
	q.wire.notify(noteCancelled, append(params, `,"reason":"the call that asked has ended"}`...))
}

// labelled is question as the client gets it: an elicitation says to the person which server asks. All else stays byte
// for byte. So it is on a direct view, too: what the hub itself asks there must not be mistaken for the server's, nor the
// other way round.
func labelled(server string, question tool.Question) tool.Question {
	if question.Method != tool.MethodElicit || question.Own {
		return question
	}
	params := question.Params
	if !rawjson.IsObject(params) {
		params = json.RawMessage(`{}`)
	}
	message := []byte(`"[` + server + `]"`) // of a server that says nothing
	if given, ok := rawjson.Get(params, "message"); ok && len(given) > 1 && given[0] == '"' {
		message = append([]byte(`"[`+server+`] `), given[1:]...)
	}
	var err error
	if question.Params, err = rawjson.Set(params, "message", message); err != nil {
		question.Params = append(append([]byte(`{"message":`), message...), '}')
	}
	return question
}

// labelledAmong is inputRequests with q, which is one of them, as the client gets it.
func labelledAmong(requests json.RawMessage, server string, q tool.Question) (json.RawMessage, error) {
	if q.Method != tool.MethodElicit {
		return requests, nil
	}
	request, _ := rawjson.Get(requests, q.Key)
	request, err := rawjson.Set(request, "params", labelled(server, q).Params)
	if err != nil {
		return nil, err
	}
	return rawjson.Set(requests, q.Key, request)
}

// labelledError is err as the client gets it: the elicitations of an error that wants some first say which server asks.
func labelledError(server string, err *tool.RPCError) *tool.RPCError {
	if err.Code != tool.CodeURLElicitationRequired {
		return err
	}
	list, _ := rawjson.Get(err.Data, "elicitations")
	out, some := []byte("["), false
	bad := rawjson.Elements(list, func(e []byte) bool {
		if some {
			out = append(out, ',')
		}
		some = true
		if rawjson.IsObject(e) {
			e = labelled(server, tool.Question{Method: tool.MethodElicit, Params: e}).Params
		}
		out = append(out, e...)
		return true
	})
	if bad != nil || !some {
		return err
	}
	changed := *err
	if changed.Data, bad = rawjson.Set(err.Data, "elicitations", append(out, ']')); bad != nil {
		return err
	}
	if err.Raw != nil {
		if changed.Raw, bad = rawjson.Set(err.Raw, "data", changed.Data); bad != nil {
			return err
		}
	}
	return &changed
}
