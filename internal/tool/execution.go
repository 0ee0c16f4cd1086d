package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Execution is one tools/call that has passed every check. The pipeline hands it to an executor.
type Execution struct {
	Invocation InvocationID
	Tool       *Tool

	// Params is the params object of the client's tools/call as it was received. The executor replaces name, arguments
	// and _meta in it and sends every other member on, in its place.
	Params json.RawMessage

	// Arguments is the standard's call_input: a JSON object, never nil and never null.
	Arguments json.RawMessage

	// Aims holds the paths that the call was permitted for. An executor that opens such a path
	// itself makes sure that it still leads there. Nobody has checked an argument that is not in
	// it.
	Aims []Aim

	// Command is the command that was permitted, for tools that run commands of their caller: they
	// run that and nothing else. Nil where nobody has checked it.
	Command *Command

	// Meta is the _meta to send on, without progressToken and without the io.modelcontextprotocol/ keys, which belong
	// to each hop. Nil where nothing is left.
	Meta json.RawMessage

	// Hop holds what the client's own hop said of itself, for executors that speak for the client on the next hop.
	Hop Hop

	// Session is the client session that the call belongs to.
	Session Session

	// Ask puts what the server asks to the client. Nil where the client cannot be asked.
	Ask Asker

	// Hears is that of the call: see invoke.Call. Nil: the client hears progress.
	Hears func() bool

	// InputByRetry says that the client takes a result of type input_required (2026-07-28).
	// Questions of a server of that revision go to it in that result, and not through Ask.
	InputByRetry bool

	// Notify receives log messages of the call, in order with progress and before the call returns.
	// They come on the call's own stream. On connections without such streams, they come while no
	// other session has a call in flight there. Notify does not block for long. Nil where nobody
	// listens.
	Notify func(Notification)

	// Surface and Actor are for the hub's own tools, which answer about what the caller sees.
	Surface *Surface
	Actor   Actor

	// Loaded holds the deferred tools whose declarations the session has. Nil where there is no session.
	Loaded Loaded

	// Arrival is the call's place among those that its client has written behind each other. A tool
	// that batches puts its calls behind it, and leaves then.
	Arrival *Arrival

	// Record writes records of the call to the journal, besides its result. It is never nil and
	// safe for concurrent use.
	Record func(...Record)

	// Progress receives each progress report of the call, in the order of the wire and before Execute returns. It is
	// never nil and does not block for long. Executors call it from one goroutine at a time.
	Progress func(Progress)
}

// Aim is the path that an argument led to when the call was permitted.
type Aim struct {
	Argument string // its JSON pointer
	Path     string // absolute, with every link followed
}

// Command holds the absolute paths that the words of a command led to, with every link followed.
type Command struct {
	Program string
	Dir     string // where it runs
}

// Hop holds what a client said on its own hop, raw; each is nil where it said nothing.
type Hop struct {
	// ClientCapabilities is _meta["io.modelcontextprotocol/clientCapabilities"] of a request on
	// protocol 2026-07-28, and the capabilities of the initialize request on older revisions.
	ClientCapabilities json.RawMessage

	// Revision is the protocol revision that the client speaks.
	Revision string

	// Direct says that the client sees one server alone: all that it says of itself can reach that server.
	Direct bool

	// _meta["io.modelcontextprotocol/logLevel"]; before 2026-07-28 what the session has asked for
	LogLevel json.RawMessage
}

// Reply is an executor's answer to an Execution.
type Reply struct {
	// Result is the result object of tools/call, byte for byte as the executor received or made it.
	Result json.RawMessage

	// Object, where it is not nil, is Result as the executor has read it: a rawjson.Object, so that nobody need read a
	// long result once more.
	Object interface{ Text() []byte }

	// Kept, where it is not nil, is what the record keeps in the place of Result: the one of a
	// batch, whose calls have records of their own.
	Kept json.RawMessage

	// Unkept says that a part of Result may be stored nowhere.
	Unkept bool

	// Free, where it is not nil, says that nobody reads Result any more, so that its part of the
	// memory for large messages can go to another one. Without the call that part is free once the
	// reply is garbage.
	Free func()

	// Artifacts are what the call has made beside its result: they are stored, and the result for
	// the caller names them. They count for a call that has failed, too.
	Artifacts []Artifact

	// Class is the class of a Result of the hub's own with isError; "" means execution_failed.
	Class ErrorClass

	// NeedsInput says that Result is of type input_required: the call goes on with the client's next request.
	NeedsInput bool

	// Task is the id of the task that the server has made of a tools/call; Result then describes the task. "" for none.
	Task string

	// Session is the key of the session on whose own connection the reply came; "" for a shared connection.
	Session string

	// Mapping holds the native ids of the call on the executor's side, for external_mappings of the invocation.
	Mapping ExternalMapping
}

// Progress is one notifications/progress of a call.
type Progress struct {
	// Params is the notification's params object as the executor received it. Its progressToken is the executor's own;
	// whoever sends the notification on replaces it.
	Params json.RawMessage

	// Message is a server's message in Params as records may keep it: short and without secrets.
	Message string

	// Partial is a call that this one has made, and that has ended: a part of the result is there. "" for none.
	Partial InvocationID
}

// RPCError is a JSON-RPC error object. An executor returns one, as an error, for a call that the server itself refused
// with a JSON-RPC error: code, message and data then reach the client unchanged.
type RPCError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`

	// Raw is the whole error object as received, or nil. If it is set, the client gets it.
	Raw json.RawMessage `json:"-"`

	// Shown is a server's Message as people and records may see it: short and without secrets. ""
	// for a message of the hub.
	Shown string `json:"-"`

	// ShownRaw is Raw, or the whole error of a hub's own, without secrets, for records.
	ShownRaw json.RawMessage `json:"-"`

	// Own says that the hub itself asks for what Data wants, and not the server of the call.
	Own bool `json:"-"`
}

// Error returns the error as people and the log may see it.
func (e *RPCError) Error() string { return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Text()) }

// Text returns the message as people and records may see it.
func (e *RPCError) Text() string {
	if e.Shown != "" {
		return e.Shown
	}
	return e.Message
}

// HTTPError is a server's refusal that is no JSON-RPC error, as records keep it.
type HTTPError struct {
	Status int    `json:"http_status"`
	Media  string `json:"content_type,omitempty"`
	Body   string `json:"body,omitempty"` // in records: its beginning, on one line and without the hub's secrets
}

func (e *HTTPError) Error() string { return fmt.Sprintf("HTTP status %d", e.Status) }

// ownPrefix begins the keys by which the hub marks what it says itself.
const ownPrefix = "toolhub/"

// IsOwn reports whether a key of _meta is one of the hub's own.
func IsOwn(key string) bool { return strings.HasPrefix(key, ownPrefix) }

// ownLevels is how deep such a key can mean something: in _meta of a resource in a block of a result, for instance.
const ownLevels = 8

// WithoutOwn returns what a server has answered, well-formed JSON, without the keys that are the
// hub's own. What is the tool's data, or a schema, stays.
func WithoutOwn(answer []byte) []byte {
	if !bytes.Contains(answer, []byte("toolhub")) && !bytes.Contains(answer, []byte(`\u00`)) { // which may spell it
		return answer
	}
	return withoutOwn(answer, ownLevels)
}

// withoutOwn copies nothing of a value without such a key.
func withoutOwn(value []byte, levels int) []byte {
	if levels == 0 {
		return value
	}
	if less, is, err := rawjson.DeleteFunc(value, func(m rawjson.Member) bool {
		return IsOwn(m.Name())
	}); err == nil && is {
		value = less
	}
	var out []byte
	done := 0 // bytes of value that are in out
	part := func(of []byte) bool {
		if inner := withoutOwn(of, levels-1); len(inner) != len(of) {
			at := cap(value) - cap(of) // of is a slice of value
			out = append(append(out, value[done:at]...), inner...)
			done = at + len(of)
		}
		return true
	}
	_ = rawjson.Members(value, func(m rawjson.Member) bool {
		return m.Is("structuredContent") || m.Is("inputSchema") || m.Is("outputSchema") || part(m.Value)
	})
	_ = rawjson.Elements(value, part)
	if out == nil {
		return value
	}
	return append(out, value[done:]...)
}

// JSON-RPC error codes, of JSON-RPC 2.0 and of MCP.
const (
	CodeParseError             = -32700
	CodeInvalidRequest         = -32600
	CodeMethodNotFound         = -32601
	CodeInvalidParams          = -32602
	CodeInternalError          = -32603
	CodeHeaderMismatch         = -32020
	CodeMissingCapabilities    = -32021
	CodeUnsupportedProtocol    = -32022
	CodeURLElicitationRequired = -32042
)

// ErrorClass is the standard's error_class.
type ErrorClass string

// The initial error classes of Agent Tool 0.2.0, all of them.
const (
	ClassUnknownTool            ErrorClass = "unknown_tool"
	ClassInvalidArguments       ErrorClass = "invalid_arguments"
	ClassSchemaValidationFailed ErrorClass = "schema_validation_failed"
	ClassSchemaNotLoaded        ErrorClass = "schema_not_loaded"
	ClassPermissionDenied       ErrorClass = "permission_denied"
	ClassApprovalRejected       ErrorClass = "approval_rejected"
	ClassPolicyBlocked          ErrorClass = "policy_blocked"
	ClassHookBlocked            ErrorClass = "hook_blocked"
	ClassCapabilityGap          ErrorClass = "capability_gap"
	ClassSetupRequired          ErrorClass = "setup_required"
	ClassCredentialMissing      ErrorClass = "credential_missing"
	ClassSandboxViolation       ErrorClass = "sandbox_violation"
	ClassTimeout                ErrorClass = "timeout"
	ClassRateLimited            ErrorClass = "rate_limited"
	ClassDependencyUnavailable  ErrorClass = "dependency_unavailable"
	ClassExecutionFailed        ErrorClass = "execution_failed"
	ClassPartialFailure         ErrorClass = "partial_failure"
	ClassResultTooLarge         ErrorClass = "result_too_large"
	ClassResultRedacted         ErrorClass = "result_redacted"
	ClassSiblingCanceled        ErrorClass = "sibling_canceled"
	ClassStreamingDiscarded     ErrorClass = "streaming_fallback_discarded"
	ClassCanceled               ErrorClass = "canceled"
)

// Failure says why a call has no answer of its tool. Phases and executors return it as an error;
// the pipeline turns it into the terminal result.
type Failure struct {
	Class   ErrorClass
	Code    string // error_code; "" means the class itself
	Message string // for the model or the person: what happened and what to do next. Holds no secret.
	Private string // what only the caller is told, after Message: no record holds it

	RetryAfter     time.Duration // 0: not known
	OutcomeUnknown bool          // the call may have run: it is never sent again unless its tool is idempotent
	AbortReason    string        // why a call that did nothing wrong did not run, or not to its end; "" for all others
	Detail         string        // a second text block of the result: JSON that the next call needs; "" for none
	Cause          error         // for the log only; never sent to a client

	// Ended says of a call that was cancelled, or ran out of time, that its tool has ended all the
	// same: its effect is there.
	Ended bool

	// Cancel says who has cancelled the call, when and why. Its Outcome is empty. Nil for other failures.
	Cancel *Cancellation
}

func (f *Failure) Error() string {
	if f.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", f.Class, f.Message, f.Cause)
	}
	return fmt.Sprintf("%s: %s", f.Class, f.Message)
}

// RPC returns the failure as a JSON-RPC error, for requests whose results have no room for it.
func (f *Failure) RPC() *RPCError {
	about, _ := json.Marshal(map[string]any{MetaError: map[string]any{"error_class": f.Class,
		"error_code":     f.ErrorCode(),
		"retry_after_ms": f.RetryAfter.Milliseconds()}})
	return &RPCError{Code: CodeInternalError, Message: f.Message + f.Private, Data: about}
}

// MetaError is the member of an error's data that describes a failed request for machines.
const MetaError = "toolhub/error"

func (f *Failure) Unwrap() error { return f.Cause }

// ErrorCode returns the failure's error_code: Code, or the class where there is none.
func (f *Failure) ErrorCode() string {
	if f.Code != "" {
		return f.Code
	}
	return string(f.Class)
}
