package invoke

import (
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// The recoverability of an error.
const (
	recoverRetry    = "retry"
	recoverFixInput = "fix_input"
	recoverOperator = "ask_operator"
	recoverNone     = "none"
)

// errorClass is a row of the table of error classes.
type errorClass struct {
	class          tool.ErrorClass
	status         tool.Status // with which an invocation ends
	recoverability string
	next           string // what the model can do
	made           string // what makes such an error
}

// errorClasses is the table of all error classes of Agent Tool 0.2.0, in its order. docs/errors.md
// is generated from it.
func errorClasses() [22]errorClass {
	return [...]errorClass{
		{tool.ClassUnknownTool, tool.StatusFailed, recoverFixInput,
			"Use a name from the list of tools, or search for one.",
			"The caller's list of tools has no tool of that name."},
		{tool.ClassInvalidArguments, tool.StatusValidationFailed, recoverFixInput,
			"Correct the arguments as the message says, and call again.",
			"A request, arguments or `_meta` that are malformed; arguments in which an object has a member twice; " +
				"values that a tool of the hub refuses; a server that answers with JSON-RPC error -32602."},
		{tool.ClassSchemaValidationFailed, tool.StatusValidationFailed, recoverFixInput,
			"Correct the arguments as the message says, and call again.",
			"The arguments do not fit the tool's input schema. A hook has changed the arguments so that they do not " +
				"fit (`input_mutation_failed`: recoverability `none`)."},
		{tool.ClassSchemaNotLoaded, tool.StatusBlocked, recoverFixInput,
			"Read the declaration that came with the error, and call again.",
			"A deferred tool is called whose declaration the caller has not got, or that has changed since."},
		{tool.ClassPermissionDenied, tool.StatusDenied, recoverOperator,
			"Do not call again as it is: use another way, or ask the person you work for.",
			"A rule denies the call; nobody answered the question of a rule; the operating system refuses a file."},
		{tool.ClassApprovalRejected, tool.StatusDenied, recoverNone, "Do not call again: a person has said no.",
			"A person denies the call."},
		{tool.ClassPolicyBlocked, tool.StatusBlocked, recoverOperator,
			"Do not call again as it is: stay within the limits, or ask the person you work for.",
			"The permission mode, or a limit on paths and hosts, denies the call."},
		{tool.ClassHookBlocked, tool.StatusBlocked, recoverNone,
			"Do what the hook's reason says; the same call is blocked again.",
			"A hook refuses the call, or fails where the config says that its failure counts (`fail: closed`)."},
		{tool.ClassCapabilityGap, tool.StatusFailed, recoverOperator,
			"Use another tool: the client or the server cannot do what this one needs.",
			"A server asks the client for what it cannot do; a server answers with JSON-RPC error -32601 or -32021; " +
				"tasks that a server does not have."},
		{tool.ClassSetupRequired, tool.StatusFailed, recoverOperator,
			"Ask the person you work for to set up what the message names.",
			"Somebody has to sign in to the server first; its entry refers to a variable that is not set, or to a " +
				"secret that is not stored; the program of a declared tool is not there, or cannot be run."},
		{tool.ClassCredentialMissing, tool.StatusFailed, recoverOperator,
			"Ask the person you work for to sign in or to renew the credentials.",
			"A server refuses the credentials of its entry (HTTP 401 or 403)."},
		{tool.ClassSandboxViolation, tool.StatusBlocked, recoverFixInput,
			"Use a path within the directories that the tool may use.",
			"A command is to run outside of its directories; a path of a tool of the hub leads out of them."},
		{tool.ClassTimeout, tool.StatusTimedOut, recoverRetry,
			"Check whether the call has taken effect; then ask for less, or try again.",
			"A server does not answer within `timeout` or `timeout_max`; a command runs for too long; input does " +
				"not come in time."},
		{tool.ClassRateLimited, tool.StatusFailed, recoverRetry,
			"Wait as long as `retry_after_ms` says, or a moment; then try again.",
			"A queue is full; a server answers with HTTP 429; too many calls of one caller wait for input."},
		{tool.ClassDependencyUnavailable, tool.StatusFailed, recoverRetry,
			"Try again later, or go on without this server.",
			"A server is not ready, has ended, or was lost during the call; a tool is gone while its call waits for " +
				"input; the journal cannot be written."},
		{tool.ClassExecutionFailed, tool.StatusFailed, recoverFixInput,
			"Read the message: change the call accordingly, or use another way.",
			"The tool answers with `isError`; a server answers with any other JSON-RPC error, or with what cannot " +
				"be read; a stored result has expired (`result_expired`) or was changed (`result_corrupted`); the " +
				"hub itself fails."},
		{tool.ClassPartialFailure, tool.StatusFailed, recoverFixInput,
			"Look at the result of each part, and repeat only those that have failed.",
			"Some calls of a batch have failed, and others not."},
		{tool.ClassResultTooLarge, tool.StatusFailed, recoverFixInput, "Ask for less at once.",
			"The answer of a server or of a declared tool is larger than the hub takes in."},
		{tool.ClassResultRedacted, tool.StatusFailed, recoverNone, "Go on without what was taken out.",
			"The result holds secrets, and `results.redact` is `block`. The tool has run."},
		{tool.ClassSiblingCanceled, tool.StatusCanceled, recoverNone,
			"See to the call that failed first, then repeat this one.",
			"Another call of the same batch has failed, and the rest was cancelled or skipped."},
		{tool.ClassStreamingDiscarded, tool.StatusCanceled, recoverNone,
			"Use the result of the call that took its place.",
			"An agent core that began the call while the model still streamed it has dropped that stream: it " +
				"cancels the call, and says so in `_meta`."},
		{tool.ClassCanceled, tool.StatusCanceled, recoverNone, "Call again only if the result is still wanted.",
			"Somebody cancels the call, its client is gone, its session ends, or the hub stops."},
	}
}

// ErrorClasses returns all error classes of Agent Tool 0.2.0.
func ErrorClasses() (all []tool.ErrorClass) {
	for _, c := range errorClasses() {
		all = append(all, c.class)
	}
	return all
}

// classOf returns the row of a class.
func classOf(class tool.ErrorClass) errorClass {
	for _, c := range errorClasses() {
		if c.class == class {
			return c
		}
	}
	return errorClass{class: class, status: tool.StatusFailed, recoverability: recoverNone}
}

// Next returns what a model can do about an error, in one sentence.
func Next(e *tool.Error) string {
	switch e.ErrorCode {
	case codeHookFailed, codePostHookFailed, codeMutationFailed:
		return "Tell the person who runs the hub that this hook has to be mended; until then the same call fails."
	}
	return classOf(e.ErrorClass).next
}

// nativeError returns the JSON-RPC error object of a server as records keep it: whole, or short where it is large.
func nativeError(e *tool.RPCError) json.RawMessage {
	if raw := e.ShownRaw; len(raw) > 0 && len(raw) <= persist.InlineLimit && rawjson.IsObject(raw) &&
		rawjson.Valid(raw) {
		return raw
	}
	short := struct {
		Code    int64           `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}{Code: e.Code, Message: e.Text()}
	if e.Raw == nil && len(e.Data) <= persist.InlineLimit { // it is the hub's own
		short.Data = e.Data
	}
	text, err := json.Marshal(short)
	if err != nil {
		return nil // its data are no JSON
	}
	return text
}
