package tool

import (
	"encoding/json"
	"fmt"
	"time"
)

// Execution is what the pipeline hands to an executor: one tools/call that has passed every check before it.
type Execution struct {
	Invocation InvocationID
	Tool       *Tool

	// Params is the params object of the client's tools/call as it was received. The executor replaces name, arguments
	// and _meta in it and sends every other member on, in its place.
	Params json.RawMessage

	// Arguments is the standard's call_input: a JSON object, never nil and never null.
	Arguments json.RawMessage

	// Aims are the paths that the call was permitted for. Whoever opens such a path itself makes sure that it leads there
	// still. An argument that is not in it was looked at by nobody.
	Aims []Aim

	// Command is what a command was found to be when the call was permitted, for tools that run commands of their caller:
	// they run that and nothing else. Nil where nobody has looked.
	Command *Command

	// Meta is the _meta to send on, without progressToken and without the io.modelcontextprotocol/ keys, which belong
	// to each hop. Nil where nothing is left.
	Meta json.RawMessage

	// Hop is what the client's own hop said of itself, for executors that speak for it on the next one.
	Hop Hop

	// Session is the client session that the call belongs to.
	Session Session

	// Ask puts what the server asks to the client. Nil where the client cannot be asked.
	Ask Asker

	// InRounds says that the client takes a result of type input_required (2026-07-28): what a server of that revision asks
	// goes to it as that result, and not through Ask.
	InRounds bool

	// Notify receives what the server says of the call besides progress: log messages. That is what comes on the call's own
	// stream, and on connections without such streams what comes while no other session has a call in flight there. All of
	// it comes before the call returns, in order with progress. It does not block for long. Nil where nobody listens.
	Notify func(Notification)

	// Surface is what the caller sees, and Actor who that is: for the hub's own tools, which answer about the surface.
	Surface *Surface
	Actor   Actor

	// Loaded are the deferred tools that the session has the declarations of. Nil where there is no session to keep them.
	Loaded Loaded

	// Record gives the journal what the call brings about besides its result. It is never nil and safe for concurrent use.
	Record func(...Record)

	// Progress receives each progress report of the call, in the order of the wire and before Execute returns. It is
	// never nil and does not block for long. Executors call it from one goroutine at a time.
	Progress func(Progress)
}

// Aim is what an argument has led to when the call was permitted.
type Aim struct {
	Argument string // its JSON pointer
	Path     string // absolute, with every link followed
}

// Command is where the words of a command have led: to absolute paths, with every link followed.
type Command struct {
	Program string
	Dir     string // where it runs
}

// Hop holds what a client said on its own hop, raw; each is nil where it said nothing.
type Hop struct {
	// ClientCapabilities is _meta["io.modelcontextprotocol/clientCapabilities"] of a request on protocol 2026-07-28, and the
	// capabilities of the initialize request on older revisions.
	ClientCapabilities json.RawMessage

	// Revision is the protocol revision that the client speaks.
	Revision string

	// Direct says that the client sees one server alone: whatever it says of itself can reach that.
	Direct bool

	LogLevel json.RawMessage // _meta["io.modelcontextprotocol/logLevel"]; before 2026-07-28 what the session has asked for
}

// Reply is an executor's answer to an Execution.
type Reply struct {
	// Result is the result object of tools/call, byte for byte as the executor received or made it.
	Result json.RawMessage

	// Object, where it is not nil, is Result as the executor has read it: a rawjson.Object, so that nobody need read a
	// long result once more.
	Object interface{ Text() []byte }

	// Free, where it is not nil, says that nobody reads Result any more, so that its part of the memory for large messages
	// can go to another one. Without the call that part is free once Result is garbage.
	Free func()

	// NeedsInput says that Result is of type input_required: the call goes on with the client's next request.
	NeedsInput bool

	// Task is the id of the task that the server has made of a tools/call; Result is then what tells of it. "" for none.
	Task string

	// Session is the key of the session whose own connection the reply came over; "" for one that is shared.
	Session string

	// Mapping are the native ids of the call on the executor's side, for external_mappings of the invocation.
	Mapping ExternalMapping
}

// Progress is one notifications/progress of a call.
type Progress struct {
	// Params is the notification's params object as the executor received it. Its progressToken is the executor's own;
	// whoever sends the notification on replaces it.
	Params json.RawMessage

	// Message is the one in Params as records may keep it, where that is a server's: short and without secrets.
	Message string
}

// RPCError is a JSON-RPC error object. An executor returns one, as an error, for a call that the server itself refused
// with a JSON-RPC error: code, message and data then reach the client unchanged.
type RPCError struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`

	// Raw is the whole error object as received, or nil. Where it is set, it is what the client gets.
	Raw json.RawMessage `json:"-"`

	// Shown is Message as people and records may see it, where that is a server's: short and without secrets. "" where the hub
	// itself says Message.
	Shown string `json:"-"`
}

// Error is the error as people and the log may see it.
func (e *RPCError) Error() string { return fmt.Sprintf("JSON-RPC error %d: %s", e.Code, e.Text()) }

// Text is the message as people and records may see it.
func (e *RPCError) Text() string {
	if e.Shown != "" {
		return e.Shown
	}
	return e.Message
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

// Failure is why a call did not yield its tool's own answer. Phases and executors return it as an error; the pipeline
// turns it into the terminal result.
type Failure struct {
	Class   ErrorClass
	Code    string // error_code; "" means the class itself
	Message string // for the model or the person: what happened and what to do next. Holds no secret.

	RetryAfter     time.Duration // 0: not known
	OutcomeUnknown bool          // the call may have run: it is never sent again unless its tool is idempotent
	Detail         string        // a second text block of the result: JSON that the next call needs; "" for none
	Cause          error         // for the log only; never sent to a client
}

func (f *Failure) Error() string {
	if f.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", f.Class, f.Message, f.Cause)
	}
	return fmt.Sprintf("%s: %s", f.Class, f.Message)
}

func (f *Failure) Unwrap() error { return f.Cause }

// ErrorCode is the failure's error_code: Code, or the class where there is none.
func (f *Failure) ErrorCode() string {
	if f.Code != "" {
		return f.Code
	}
	return string(f.Class)
}
