package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Methods by which a server asks the client behind a call for something: as requests of its own up to 2025-11-25, as
// inputRequests of a result from 2026-07-28 on.
const (
	MethodElicit = "elicitation/create"
	MethodSample = "sampling/createMessage"
	MethodRoots  = "roots/list"
)

// IsServerRequest reports whether a method is one of these.
func IsServerRequest(method string) bool {
	return method == MethodElicit || method == MethodSample || method == MethodRoots
}

// InputRequired is the content of a result of type input_required.
type InputRequired struct {
	Requests  json.RawMessage // inputRequests; nil where there are none
	Questions []Question      // in Requests
	State     json.RawMessage // requestState, as written; nil where there is none
}

// ReadInputRequired reads a result of type input_required. The error says what is wrong with it.
func ReadInputRequired(result json.RawMessage) (in InputRequired, err error) {
	in.State, _ = rawjson.Get(result, "requestState")
	if _, isText := rawjson.String(in.State); in.State != nil && !isText {
		return in, errors.New("its requestState is no string")
	}
	in.Requests, _ = rawjson.Get(result, "inputRequests")
	if in.Requests != nil {
		in.Questions, err = ReadQuestions(in.Requests)
	}
	if err == nil && len(in.Questions) == 0 && in.State == nil {
		err = errors.New("there are neither inputRequests nor a requestState")
	}
	return in, err
}

// maxQuestions bounds those of one result.
const maxQuestions = 16

// ReadQuestions reads inputRequests. The error says what is wrong with them.
func ReadQuestions(requests json.RawMessage) (all []Question, err error) {
	if !rawjson.IsObject(requests) {
		return nil, errors.New("inputRequests is no object")
	}
	if name, twice := rawjson.Repeated(requests, bytes.Compare); twice {
		return nil, fmt.Errorf("inputRequests has two members %.80q", name)
	}
	var bad error
	err = rawjson.Members(requests, func(m rawjson.Member) bool {
		q := Question{Key: m.Name(), Method: rawjson.Text(m.Value, "method")}
		q.Params, _ = rawjson.Get(m.Value, "params")
		switch {
		case q.Method == "":
			bad = fmt.Errorf("the input %.80q names no method", q.Key)
		case !IsServerRequest(q.Method):
			bad = fmt.Errorf("an input is asked for by the method %.80q, which is none for that", q.Method)
		case q.Params != nil && !rawjson.IsObject(q.Params):
			bad = fmt.Errorf("the input %.80q has params that are no object", q.Key)
		case len(all) == maxQuestions:
			bad = fmt.Errorf("there are more than %d inputRequests", maxQuestions)
		}
		all = append(all, q)
		return bad == nil
	})
	return all, cmp.Or(bad, err)
}

// Question is a request of a server to the client behind one of its calls.
type Question struct {
	Key    string          // tells the questions that are put together apart; the server's own on 2026-07-28
	Method string          // one of the three
	Params json.RawMessage // as the server sent them; nil where it sent none

	// Server is the server that asks. "" is that of the call.
	Server string `json:"-"`

	// Own says that the hub itself asks, and not the server of the call: nothing is to say otherwise.
	Own bool

	// Sent is called once the question has gone to the client, or will not. The server's next
	// question goes after it. Nil where nobody waits for that.
	Sent func() `json:"-"`
}

// Answer is the client's answer to a Question: exactly one of Result and Err is set.
type Answer struct {
	Result json.RawMessage // the result object, byte for byte
	Err    *RPCError       // the client's refusal, or why it was not asked

	// Request is the native id of the request that has brought the answer, where that is another
	// one than the call's; else nil.
	Request json.RawMessage

	// Earlier are the native ids of requests that came before that one, and brought no answer to
	// any question of the call.
	Earlier []json.RawMessage

	// Ended says why the client, which was asked, can answer nothing more; nil where it can.
	Ended *Failure

	// Malformed says that the client has answered with what is neither a result nor an error, as Err tells.
	Malformed bool
}

// Asker puts questions of one server to the client behind a call and returns the answers in their order. It is called
// concurrently, also for one call. An error means that no answer will come, because ctx is done; a client that cannot
// be asked answers with an Err. An executor ends ctx, and waits for its questions, before it returns.
//
// An Asker checks the client's capabilities, shows to a person which server asks, and calls Sent of
// each question as soon as the client has it, at the latest when it returns.
type Asker func(ctx context.Context, questions []Question) ([]Answer, error)

// HubItself is the server of questions that the hub asks on its own account, where their end is
// told later. No server has that id.
const HubItself = "(hub)"

// SignInNeed is a call or request that has failed because somebody has to sign in to its server.
type SignInNeed struct {
	Server  string
	Why     *Failure // of class setup_required
	Actor   Actor
	Session Session
	Hop     Hop

	// Hidden says that nothing of the failure reaches the caller alone: it becomes a part of a
	// larger result, which is recorded.
	Hidden bool

	Ask      Asker          // nil where the client cannot be asked
	Progress func(Progress) // nil where nobody listens

	// Aside runs f, which waits for a person: meanwhile the call holds no lock, and is shown as one that needs input.
	Aside func(ctx context.Context, f func())
}

// SignInAsker does what a call needs that has failed because somebody has to sign in. It returns
// nil once somebody has: the call is to be sent again, once. Otherwise the error is how the call
// ends: a *Failure or a *RPCError.
type SignInAsker interface {
	SignIn(context.Context, *SignInNeed) error
}

// NeedsSignIn returns the failure of a call for which somebody has to sign in; nil where err is another one.
func NeedsSignIn(err error) *Failure {
	f, ok := errors.AsType[*Failure](err)
	if ok && f.Class == ClassSetupRequired && (f.Code == CodeNeedsSignIn ||
		f.Code == "server_"+string(ServerNeedsAuth)) {
		return f
	}
	return nil
}

// CodeNeedsSignIn is the error_code of a call that its server refuses until somebody signs in.
const CodeNeedsSignIn = "needs_sign_in"

// Refusal answers all questions with the same error.
func Refusal(questions []Question, err *RPCError) []Answer {
	all := make([]Answer, len(questions))
	for i := range all {
		all[i].Err = err
	}
	return all
}

// Sent calls Sent of questions that have gone to the client.
func Sent(questions []Question) {
	for i := range questions {
		if questions[i].Sent != nil {
			questions[i].Sent()
		}
	}
}
