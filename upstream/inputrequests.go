package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

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

// askFor puts what the server wants to the client, all at once. The time that this takes counts
// towards the most that the call may take, and towards nothing else.
func (s *server) askFor(
	ctx context.Context, x *clientRequest, limits *callLimits, questions []tool.Question,
) ([]tool.Answer, error) {
	if len(questions) == 0 {
		return nil, nil // the server wants to be called again with its state, nothing else
	}
	if x.Ask == nil {
		return nil, &tool.Failure{Class: tool.ClassCapabilityGap, Code: "client_cannot_be_asked", Message: fmt.Sprintf(
			"%q of server %q needs something from the client (%s), which this client cannot be asked: call it from "+
				"one that can",
			x.about(), s.cfg.ID, questions[0].Method)}
	}
	asking, cancel := context.WithTimeout(ctx, limits.left(true))
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel()
	watching.Go(func() {
		select {
		case <-s.lifecycle.stopping:
			cancel()
		case <-asking.Done():
		}
	})
	answers, err := x.Ask(asking, questions)
	switch {
	case err == nil && len(answers) == len(questions):
		return answers, nil
	case ctx.Err() != nil:
		return nil, canceled(ctx, true)
	case errors.Is(asking.Err(), context.DeadlineExceeded):
		return nil, s.timedOut(x.about(), "was waiting for the client's answers, which did not come", true, *limits)
	case asking.Err() != nil:
		return nil, s.unavailable()
	case err == nil:
		err = fmt.Errorf("%d answers to %d questions", len(answers), len(questions))
	}
	return nil, &tool.Failure{Class: tool.ClassCanceled, Code: "client_gone", OutcomeUnknown: true, Cause: err,
		Message: "what the server asked was not answered, because the client has gone: call again if it is still wanted"}
}

// retryParams returns the params of the next request: the client's own with the answers to what the server wants, and
// the server's latest state. The first refusal among the answers is the error.
func retryParams(in tool.InputRequired, params json.RawMessage, answers []tool.Answer) (json.RawMessage, error) {
	if rawjson.IsNull(params) {
		params = json.RawMessage("{}")
	}
	// "If the result does not contain requestState, the client MUST NOT include" one: nor that of a round before.
	out, _, err := rawjson.DeleteFunc(params,
		func(m rawjson.Member) bool { return m.Is("inputResponses") || m.Is("requestState") })
	if len(answers) > 0 && err == nil {
		for _, a := range answers {
			if a.Err != nil {
				return nil, a.Err
			}
			if !rawjson.IsObject(a.Result) || !rawjson.Valid(a.Result) {
				rpc := errBadAnswer
				return nil, &rpc
			}
		}
		responses := []byte("{")
		_ = rawjson.Members(in.Requests, func(m rawjson.Member) bool {
			responses = rawjson.AppendMember(responses, string(m.Key), answers[0].Result) // the key as it was written
			answers = answers[1:]
			return true
		})
		out, err = rawjson.Set(out, "inputResponses", append(responses, '}'))
	}
	if in.State != nil && err == nil {
		out, err = rawjson.Set(out, "requestState", in.State)
	}
	if err != nil {
		return nil, &tool.Failure{Class: tool.ClassInvalidArguments, Cause: err,
			Message: "params of the call are no JSON object: send them as the protocol demands"}
	}
	return out, nil
}
