package downstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// questions are the hub's open questions to one client: its requests to that on a revision with
// sessions, or the input requests of one call on 2026-07-28. Each client or call has its own, so that
// none can answer for another one.
type questions struct {
	// series begins the ids. It tells them from those that an earlier hub gave to this client: an
	// answer to one of its questions must not count for another one.
	series string

	mu   sync.Mutex
	last int
	open []*openQuestion // in the order in which they were asked
	over bool            // no answer can come any more
}

// openQuestion is a question that the client has not answered.
type openQuestion struct {
	id       string
	question tool.Question
	answered chan tool.Answer // has room for one
}

// maxQuestions bounds the open questions to one client, or of one call.
const maxQuestions = 100

// questionPrefix begins the ids of the hub's requests.
const questionPrefix = "toolhub-"

// add opens questions, unless there are too many, or end was called.
func (q *questions) add(all ...tool.Question) (added []*openQuestion, refusal *tool.RPCError) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return nil, unreachable()
	}
	if len(q.open)+len(all) > maxQuestions {
		return nil, &tool.RPCError{Code: tool.CodeInternalError,
			Message: fmt.Sprintf("%d questions to the client are open: wait for an answer, then ask again",
				maxQuestions)}
	}
	for _, question := range all {
		q.last++
		added = append(added, &openQuestion{fmt.Sprint(q.series, q.last), question, make(chan tool.Answer, 1)})
	}
	q.open = append(q.open, added...)
	return added, nil
}

// settle closes the open questions that answer has an answer to, and returns how many these are.
func (q *questions) settle(answer func(*openQuestion) (a tool.Answer, ok bool)) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.open)
	q.open = slices.DeleteFunc(q.open, func(one *openQuestion) bool {
		a, ok := answer(one)
		if ok {
			one.answered <- a
		}
		return ok
	})
	return before - len(q.open)
}

// end answers all open questions with an error: the client can answer nothing more, because of cause.
func (q *questions) end(cause *tool.Failure) {
	q.mu.Lock()
	q.over = true
	q.mu.Unlock()
	q.settle(func(*openQuestion) (tool.Answer, bool) {
		return tool.Answer{Err: unreachable(), Ended: cause}, true
	})
}

// answer answers the question with an id, and reports whether it was open.
func (q *questions) answer(id string, a tool.Answer) bool {
	return q.settle(func(one *openQuestion) (tool.Answer, bool) { return a, one.id == id }) > 0
}

// await returns the answers to questions. Where ctx is done first it closes those that are still open,
// and returns them.
func (q *questions) await(ctx context.Context, asked []*openQuestion) (answers []tool.Answer, left []*openQuestion,
	err error) {
	answers = make([]tool.Answer, len(asked))
	for i, one := range asked {
		select {
		case answers[i] = <-one.answered:
			continue
		case <-ctx.Done():
		}
		q.settle(func(one *openQuestion) (a tool.Answer, mine bool) {
			if mine = slices.Contains(asked, one); mine {
				left = append(left, one)
			}
			return a, mine
		})
		return nil, left, errors.New("ask client: the call has ended")
	}
	return answers, nil, nil
}

func (q *questions) count() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.open)
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

// askOnStream implements tool.Asker by requests on the stream of the client's own request.
func (a *attempt) askOnStream(ctx context.Context, all []tool.Question) ([]tool.Answer, error) {
	a.notes.sent()
	asked := make([]*openQuestion, len(all))
	for i, question := range all {
		asked[i] = a.send(question)
	}
	tool.Sent(all)
	answers, left, err := a.peer.caller.questions.await(ctx, asked)
	for _, one := range left { // the client is told that its answer is no longer awaited
		params := append([]byte(`{"requestId":`), rawjson.Quote(one.id)...)
		a.reply.notify(tool.NoteCancelled, append(params, `,"reason":"the call that asked has ended"}`...))
	}
	return answers, err
}

// send puts one question on the wire. One that cannot go there is answered with the reason.
func (a *attempt) send(question tool.Question) *openQuestion {
	var refusal *tool.RPCError
	if l := cannot(a.peer.hop.ClientCapabilities, question); l != nil {
		refusal = l.err
	} else if added, full := a.peer.caller.questions.add(question); full != nil {
		refusal = full
	} else {
		a.notes.ownerships.elicits(a.peer, cmp.Or(question.Server, a.server), question.Params)
		id := added[0].id
		if !a.reply.request(rawjson.Quote(id), question.Method, labelled(a.server, question).Params) {
			a.peer.caller.questions.answer(id, tool.Answer{Err: unreachable()})
		}
		return added[0]
	}
	refused := &openQuestion{answered: make(chan tool.Answer, 1)}
	refused.answered <- tool.Answer{Err: refusal}
	return refused
}

func unreachable() *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeInternalError,
		Message: "the client cannot be asked: nothing that it answers arrives here"}
}
