package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/redact"
)

// maxRounds bounds how often one request may be sent, because the server asks again each time.
const maxRounds = 10

// dialogue is a client's request that a server of 2026-07-28 may answer with questions.
type dialogue struct {
	name   string // of what is asked for, for messages
	params json.RawMessage
	ask    tool.Asker // nil where the client cannot be asked
	passes bool       // the client takes the questions itself: see tool.Execution.InRounds
	limits *callLimits

	// send sends the request once, with these params. round counts from 0: after that the server has begun to work on it.
	send func(params json.RawMessage, round int) (tool.Reply, error)
}

// converse sends a request, and again with the client's answers for as long as the server asks for something. A client
// that takes the questions itself is given them, once they are known to be well-formed.
func (s *server) converse(ctx context.Context, d dialogue) (tool.Reply, error) {
	params := d.params
	for round := 0; ; round++ {
		reply, err := d.send(params, round)
		if errors.Is(err, errRetired) && round > 0 {
			return reply, lostBetweenRounds(err) // whoever takes its place knows nothing of the rounds before
		}
		if err != nil || reply.Mapping.ProtocolVersion < modernVersion || !needsInput(reply.Result) {
			return reply, err
		}
		wanted, err := readWanted(reply.Result)
		if err != nil {
			return tool.Reply{Mapping: reply.Mapping}, err
		}
		if d.passes {
			reply.NeedsInput = true
			return reply, nil
		}
		none := tool.Reply{Mapping: reply.Mapping}
		if round+1 >= maxRounds {
			return none, invalidAnswer(fmt.Sprintf("asks for input for the %dth time in one call", maxRounds)).err
		}
		answers, err := s.askFor(ctx, d, wanted)
		if err != nil {
			return none, err
		}
		if params, err = wanted.answered(d.params, answers); err != nil {
			return none, err
		}
	}
}

// lostBetweenRounds is the answer of a call whose server went away while it waited for the client.
func lostBetweenRounds(cause error) *tool.Failure {
	return &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: codeConnectionLost, OutcomeUnknown: true, Cause: cause,
		Message: "the server was replaced while the call waited for the client's answers, so it may have taken effect in part: " +
			"check before calling again"}
}

// needsInput reports whether result is of type input_required.
func needsInput(result json.RawMessage) bool {
	kind := rawjson.Text(result, "resultType")
	return kind == "input_required"
}

// wanted is what a server needs before it goes on.
type wanted struct {
	keys      [][]byte // of inputRequests, as written
	questions []tool.Question
	state     []byte // requestState, as written; nil where there is none
}

// readWanted takes a result of type input_required apart. The error is a *tool.Failure.
func readWanted(result json.RawMessage) (w wanted, err error) {
	if state, ok := rawjson.Get(result, "requestState"); ok {
		if _, ok = rawjson.String(state); !ok {
			return w, invalidAnswer("asks for input with a requestState that is no string").err
		}
		w.state = state
	}
	requests, ok := rawjson.Get(result, "inputRequests")
	if !ok {
		if w.state == nil {
			return w, invalidAnswer("asks for input, but neither says what for nor has a requestState").err
		}
		return w, nil
	}
	seen, fault := map[string]bool{}, ""
	err = rawjson.Members(requests, func(m rawjson.Member) bool {
		var q tool.Question
		q, fault = readInputRequest(m)
		switch {
		case fault != "":
		case seen[q.Key]:
			fault = fmt.Sprintf("asks for two inputs by the same key %q", redact.Truncate(q.Key, 80))
		case len(w.questions) == maxCallQuestions:
			fault = fmt.Sprintf("asks for more than %d inputs at once", maxCallQuestions)
		}
		seen[q.Key] = true
		w.keys, w.questions = append(w.keys, m.Key), append(w.questions, q)
		return fault == ""
	})
	switch {
	case err != nil:
		fault = "asks for input with inputRequests that are no object"
	case fault == "" && len(w.questions) == 0 && w.state == nil:
		fault = "asks for input, but neither says what for nor has a requestState"
	}
	if fault != "" {
		return wanted{}, invalidAnswer(fault).err
	}
	return w, nil
}

// readInputRequest reads one of inputRequests. fault is not empty where it is malformed.
func readInputRequest(m rawjson.Member) (q tool.Question, fault string) {
	q.Key = m.Name()
	raw, _ := rawjson.Get(m.Value, "method")
	method, ok := rawjson.String(raw)
	switch {
	case !ok:
		return q, fmt.Sprintf("asks for an input %q that names no method", redact.Truncate(q.Key, 80))
	case !isQuestion(method):
		return q, fmt.Sprintf("asks for an input by the method %q, which is none for that", redact.Truncate(method, 80))
	}
	q.Method = method
	if params, ok := rawjson.Get(m.Value, "params"); ok {
		if !rawjson.IsObject(params) {
			return q, fmt.Sprintf("asks for an input %q with params that are no object", redact.Truncate(q.Key, 80))
		}
		q.Params = params
	}
	return q, ""
}

// askFor puts what the server wants to the client, all at once. The time that this takes counts towards the most that the
// call may take, and towards nothing else.
func (s *server) askFor(ctx context.Context, d dialogue, w wanted) ([]tool.Answer, error) {
	if len(w.questions) == 0 {
		return nil, nil // the server wants to be called again with its state, nothing else
	}
	if d.ask == nil {
		return nil, &tool.Failure{Class: tool.ClassCapabilityGap, Code: "client_cannot_be_asked", Message: fmt.Sprintf(
			"%q of server %q needs something from the client (%s), which this client cannot be asked: call it from one that can",
			d.name, s.cfg.ID, w.questions[0].Method)}
	}
	asking, cancel := context.WithTimeout(ctx, d.limits.left(true))
	defer cancel()
	var watching sync.WaitGroup
	defer watching.Wait()
	done := make(chan struct{})
	defer close(done)
	watching.Go(func() {
		select {
		case <-s.lifecycle.stopping:
			cancel()
		case <-done:
		}
	})
	answers, err := d.ask(asking, w.questions)
	switch {
	case err == nil && len(answers) == len(w.questions):
		return answers, nil
	case ctx.Err() != nil:
		return nil, canceled(ctx, false)
	case errors.Is(asking.Err(), context.DeadlineExceeded):
		return nil, s.timedOut(d.name, "was waiting for the client's answers, which did not come", false, *d.limits)
	case asking.Err() != nil:
		return nil, s.unavailable()
	case err == nil:
		err = fmt.Errorf("%d answers to %d questions", len(answers), len(w.questions))
	}
	return nil, &tool.Failure{Class: tool.ClassCanceled, Code: "client_gone", Cause: err,
		Message: "what the server asked was not answered, because the client has gone: call again if it is still wanted"}
}

// answered returns the params of the next round: the client's own with the answers and the server's latest state. The first
// refusal among the answers is the error.
func (w wanted) answered(params json.RawMessage, answers []tool.Answer) (json.RawMessage, error) {
	if rawjson.IsNull(params) {
		params = json.RawMessage("{}")
	}
	// "If the result does not contain requestState, the client MUST NOT include" one: nor that of a round before.
	out, _, err := rawjson.DeleteFunc(params, func(m rawjson.Member) bool { return m.Is("inputResponses") || m.Is("requestState") })
	if len(answers) > 0 && err == nil {
		responses := []byte("{")
		for i, a := range answers {
			if a.Err != nil {
				return nil, a.Err
			}
			if !rawjson.IsObject(a.Result) || !rawjson.Valid(a.Result) {
				rpc := errBadAnswer
				return nil, &rpc
			}
			if i > 0 {
				responses = append(responses, ',')
			}
			responses = append(append(append(responses, '"'), w.keys[i]...), `":`...)
			responses = append(responses, a.Result...)
		}
		out, err = rawjson.Set(out, "inputResponses", append(responses, '}'))
	}
	if w.state != nil && err == nil {
		out, err = rawjson.Set(out, "requestState", w.state)
	}
	if err != nil {
		return nil, &tool.Failure{Class: tool.ClassInvalidArguments, Cause: err,
			Message: "params of the call are no JSON object: send them as the protocol demands"}
	}
	return out, nil
}
