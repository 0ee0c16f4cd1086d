package downstream

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream/internal/suspended"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// attempt is one request of a client for an operation: the first, or on 2026-07-28 a retry that brings input.
type attempt struct {
	peer    *peer
	op      operation
	params  json.RawMessage // as the server gets them
	server  string
	reply   replier
	token   json.RawMessage // of progress; nil where the client takes none
	retries bool            // the client takes a result of type input_required

	requestState json.RawMessage // as the client sent it; nil where it sent none

	invocation tool.InvocationID // of the first attempt, and so of all
	before     *invoke.Suspended // after the attempt before; nil in the first

	notes *callNotes // passes on what the server says meanwhile
	ask   tool.Asker // nil where the client cannot be asked meanwhile
}

// state returns what the attempt's requestState says, without its id and end.
func (a *attempt) state() suspended.State {
	s := suspended.State{Caller: a.peer.session.Key, Profile: a.peer.profile, Server: a.server}
	a.op.identify(&s)
	return s
}

// needsInput is the outcome of an attempt whose client has to send another one with input. The result
// is of type input_required.
func (a *attempt) needsInput(result json.RawMessage) invoke.Outcome {
	object, _ := rawjson.ReadObject(result) // answer refuses a result that is no object
	return invoke.Outcome{InvocationID: a.invocation, Status: tool.StatusNeedsInput, Result: result, Object: object}
}

// operation is a tools/call or a forwarded request, over all its attempts.
type operation interface {
	// identify writes into s what the request is about.
	identify(s *suspended.State)

	// run serves one attempt. The outcome is the end of the operation, or Suspended where its server
	// needs input first.
	run(ctx context.Context, a *attempt) invoke.Outcome

	// answer writes the outcome on the wire of the attempt.
	answer(ctx context.Context, a *attempt, o invoke.Outcome)
}

// runningCall is an operation that its server works on, for a client that retries. One attempt at a
// time is attached to it, and none while it is suspended.
type runningCall struct {
	invocation tool.InvocationID
	cancel     context.CancelCauseFunc
	asked      chan struct{} // holds one token when an input request may be open
	done       chan struct{} // closed when result is set
	result     invoke.Outcome

	notes *callNotes // attached to the present attempt

	questions questions

	mu   sync.Mutex
	idle []json.RawMessage // native ids of retries that have brought no answer, at most maxQuestions
}

// ask implements tool.Asker. Each question waits until an attempt takes it to the client, and until
// another one brings the answer.
func (r *runningCall) ask(ctx context.Context, all []tool.Question) ([]tool.Answer, error) {
	asked, refusal := r.questions.add(all...)
	if refusal != nil {
		return tool.Refusal(all, refusal), nil
	}
	tool.Sent(all)
	signal(r.asked)
	answers, _, err := r.questions.await(ctx, asked)
	if len(answers) > 0 {
		r.mu.Lock()
		answers[0].Earlier, r.idle = r.idle, nil
		r.mu.Unlock()
	}
	return answers, err
}

// answerWith gives the answers of a retry to the input requests that they name. The others stay open.
func (r *runningCall) answerWith(retry *attempt) {
	inputResponses, _ := rawjson.Get(retry.params, "inputResponses")
	var id json.RawMessage
	if c, ok := retry.op.(*toolCall); ok {
		id = slices.Clone(c.call.NativeCallID) // the call may note it when the retry has ended
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	answered := r.questions.settle(func(one *openQuestion) (tool.Answer, bool) {
		result, _ := rawjson.Get(inputResponses, one.id)
		return tool.Answer{Result: result, Request: id}, rawjson.IsObject(result)
	})
	if id != nil && answered == 0 && len(r.idle) < maxQuestions {
		r.idle = append(r.idle, id)
	}
}

// inputRequests returns the open questions as the client of a gets them; nil where there is none. One
// that the client cannot take is answered at once.
func (r *runningCall) inputRequests(a *attempt) json.RawMessage {
	out := []byte("{")
	r.questions.settle(func(one *openQuestion) (tool.Answer, bool) {
		if l := cannot(a.peer.hop.ClientCapabilities, one.question); l != nil {
			return tool.Answer{Err: l.err}, true
		}
		question := labelled(a.server, one.question)
		request := rawjson.AppendMember([]byte("{"), "method", rawjson.Quote(question.Method))
		if question.Params != nil {
			request = rawjson.AppendMember(request, "params", question.Params)
		}
		out = rawjson.AppendMember(out, one.id, append(request, '}'))
		return tool.Answer{}, false
	})
	if len(out) == 1 {
		return nil
	}
	return append(out, '}')
}
