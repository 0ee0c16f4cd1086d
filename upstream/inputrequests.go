package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// maxInputRequired bounds how often one call may be sent, because the server asks for input each time.
const maxInputRequired = 10

// replacedWhileAsking is the failure of a call whose server went away while the client was asked.
func replacedWhileAsking(cause error) *tool.Failure {
	return &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: codeConnectionLost, OutcomeUnknown: true,
		Cause: cause,
		Message: "the server was replaced while the call waited for the client's answers, so it may have taken " +
			"effect in " +
			"part: check before calling again"}
}

// resultType returns what a result of 2026-07-28 says that it is.
func resultType(r *tool.Reply) string {
	object, read := r.Object.(rawjson.Object)
	if !read {
		return rawjson.Text(r.Result, "resultType")
	}
	kind, _ := object.Get("resultType")
	text, _ := rawjson.String(kind)
	return text
}

// inputRequests holds inputRequests and requestState of a result of type input_required.
type inputRequests struct {
	keys      [][]byte // of inputRequests, as written
	questions []tool.Question
	state     []byte // requestState, as written; nil where there is none
}

// readInputRequests takes a result of type input_required apart. The error is a *tool.Failure.
func readInputRequests(result json.RawMessage) (w inputRequests, err error) {
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
			fault = fmt.Sprintf("asks for two inputs by the same key %q", hidden.Cut(q.Key, 80))
		case len(w.questions) == maxCallRequests:
			fault = fmt.Sprintf("asks for more than %d inputs at once", maxCallRequests)
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
		return inputRequests{}, invalidAnswer(fault).err
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
		return q, fmt.Sprintf("asks for an input %q that names no method", hidden.Cut(q.Key, 80))
	case !isServerRequest(method):
		return q, fmt.Sprintf("asks for an input by the method %q, which is none for that", hidden.Cut(method, 80))
	}
	q.Method = method
	if params, ok := rawjson.Get(m.Value, "params"); ok {
		if !rawjson.IsObject(params) {
			return q, fmt.Sprintf("asks for an input %q with params that are no object", hidden.Cut(q.Key, 80))
		}
		q.Params = params
	}
	return q, ""
}

// askFor puts what the server wants to the client, all at once. The time that this takes counts
// towards the most that the call may take, and towards nothing else.
func (c *executor) askFor(
	ctx context.Context, x *clientRequest, limits *callLimits, w inputRequests,
) ([]tool.Answer, error) {
	if len(w.questions) == 0 {
		return nil, nil // the server wants to be called again with its state, nothing else
	}
	if x.Ask == nil {
		return nil, &tool.Failure{Class: tool.ClassCapabilityGap, Code: "client_cannot_be_asked", Message: fmt.Sprintf(
			"%q of server %q needs something from the client (%s), which this client cannot be asked: call it from "+
				"one that can",
			x.about(), c.cfg.ID, w.questions[0].Method)}
	}
	asking, cancel := context.WithTimeout(ctx, limits.left(true))
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		select {
		case <-c.lifecycle.stopping:
			cancel()
		case <-asking.Done():
		}
	})
	answers, err := x.Ask(asking, w.questions)
	switch {
	case err == nil && len(answers) == len(w.questions):
		return answers, nil
	case ctx.Err() != nil:
		return nil, canceled(ctx, true)
	case errors.Is(asking.Err(), context.DeadlineExceeded):
		return nil, c.timedOut(x.about(), "was waiting for the client's answers, which did not come", true, *limits)
	case asking.Err() != nil:
		return nil, c.server.unavailable()
	case err == nil:
		err = fmt.Errorf("%d answers to %d questions", len(answers), len(w.questions))
	}
	return nil, &tool.Failure{Class: tool.ClassCanceled, Code: "client_gone", OutcomeUnknown: true, Cause: err,
		Message: "what the server asked was not answered, because the client has gone: call again if it is still wanted"}
}

// retryParams returns the params of the next request: the client's own with the answers and the
// server's latest state. The first refusal among the answers is the error.
func (w inputRequests) retryParams(params json.RawMessage, answers []tool.Answer) (json.RawMessage, error) {
	if rawjson.IsNull(params) {
		params = json.RawMessage("{}")
	}
	// "If the result does not contain requestState, the client MUST NOT include" one: nor that of a round before.
	out, _, err := rawjson.DeleteFunc(params,
		func(m rawjson.Member) bool { return m.Is("inputResponses") || m.Is("requestState") })
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
