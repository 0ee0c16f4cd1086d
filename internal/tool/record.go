package tool

import (
	"encoding/json"
	"time"
)

// Status is the state of an invocation or the status of a result.
type Status string

// The invocation states of the standard, all of them.
const (
	StatusPlanned           Status = "planned"
	StatusSelected          Status = "selected"
	StatusSchemaParseFailed Status = "schema_parse_failed"
	StatusArgumentsReady    Status = "arguments_ready"
	StatusValidationFailed  Status = "validation_failed"
	StatusPreHooksRunning   Status = "pre_hooks_running"
	StatusAwaitingApproval  Status = "awaiting_approval"
	StatusApproved          Status = "approved"
	StatusDenied            Status = "denied"
	StatusQueued            Status = "queued"
	StatusRunning           Status = "running"
	StatusNeedsInput        Status = "needs_input"
	StatusPartialResult     Status = "partial_result"
	StatusPostHooksRunning  Status = "post_hooks_running"
	StatusYielded           Status = "yielded"
	StatusSucceeded         Status = "succeeded"
	StatusFailed            Status = "failed"
	StatusCanceled          Status = "canceled"
	StatusTimedOut          Status = "timed_out"
	StatusBlocked           Status = "blocked"
)

// Statuses returns all of them.
func Statuses() []Status {
	return []Status{StatusPlanned, StatusSelected, StatusSchemaParseFailed, StatusArgumentsReady,
		StatusValidationFailed, StatusPreHooksRunning,
		StatusAwaitingApproval, StatusApproved, StatusDenied, StatusQueued, StatusRunning, StatusNeedsInput,
		StatusPartialResult,
		StatusPostHooksRunning, StatusYielded, StatusSucceeded, StatusFailed, StatusCanceled, StatusTimedOut,
		StatusBlocked}
}

// EventType is the standard's event_type.
type EventType string

// The event classes of Agent Tool 0.2.0, all of them.
const (
	EventToolDeclared               EventType = "tool.declared"
	EventSurfaceCreated             EventType = "tool.surface.created"
	EventSurfaceUpdated             EventType = "tool.surface.updated"
	EventDeferredDiscovered         EventType = "tool.deferred.discovered"
	EventDeferredLoaded             EventType = "tool.deferred.loaded"
	EventInvocationPlanned          EventType = "tool.invocation.planned"
	EventInvocationSelected         EventType = "tool.invocation.selected"
	EventInvocationArgumentsReady   EventType = "tool.invocation.arguments_ready"
	EventInvocationValidationFailed EventType = "tool.invocation.validation_failed"
	EventHookPreStarted             EventType = "tool.hook.pre.started"
	EventHookPreCompleted           EventType = "tool.hook.pre.completed"
	EventPermissionRequested        EventType = "tool.permission.requested"
	EventPermissionDecided          EventType = "tool.permission.decided"
	EventInvocationQueued           EventType = "tool.invocation.queued"
	EventInvocationStarted          EventType = "tool.invocation.started"
	EventInvocationProgress         EventType = "tool.invocation.progress"
	EventHookPostStarted            EventType = "tool.hook.post.started"
	EventHookPostCompleted          EventType = "tool.hook.post.completed"
	EventResultPersisted            EventType = "tool.result.persisted"
	EventInvocationYielded          EventType = "tool.invocation.yielded"
	EventInvocationSucceeded        EventType = "tool.invocation.succeeded"
	EventInvocationFailed           EventType = "tool.invocation.failed"
	EventInvocationCanceled         EventType = "tool.invocation.canceled"
	EventInvocationTimedOut         EventType = "tool.invocation.timed_out"
	// none of the standard's, which wants one: "a cancellation request should still create an
	// event"
	EventCancelRequested EventType = "tool.invocation.cancel_requested"
	// none of the standard's: a stored result is gone
	EventResultExpired EventType = "tool.result.expired"
	// none of the standard's: what was said was erased from the records
	EventInvocationErased EventType = "tool.invocation.erased"
	// none of the standard's: a decision that stores nothing
	EventResultNotPersisted EventType = "tool.result.not_persisted"
	EventResultCreated      EventType = "tool.result.created"
	EventResultRedacted     EventType = "tool.result.redacted"
)

// Object names the standard's core object that a record is; every record carries it, so that a line of a journal can be
// read without guessing.
type Object string

const (
	ObjectInvocation         Object = "tool_invocation"
	ObjectResult             Object = "tool_result"
	ObjectProgress           Object = "tool_progress"
	ObjectEvent              Object = "tool_event"
	ObjectPermissionDecision Object = "tool_permission_decision"
	ObjectInputMutation      Object = "tool_input_mutation"
	ObjectSurface            Object = "tool_surface"
	ObjectDeferredRef        Object = "deferred_tool_ref"
	ObjectNamespace          Object = "tool_namespace"
	ObjectDeclaration        Object = "tool_declaration"
	ObjectInterface          Object = "tool_interface"
	ObjectExecutionProfile   Object = "tool_execution_profile"
	ObjectPermissionProfile  Object = "tool_permission_profile"
	ObjectInputContract      Object = "tool_input_contract"
	ObjectOutputContract     Object = "tool_output_contract"
	ObjectSchedulerPolicy    Object = "tool_scheduler_policy"
	ObjectHook               Object = "tool_hook"
	ObjectResultPersistence  Object = "tool_result_persistence"
	ObjectTaskResult         Object = "tool_task_result" // none of the standard's
	ObjectPolicy             Object = "tool_policy"      // none of the standard's
)

// Record is one of the standard's objects, ready to be encoded as one JSON object: a struct with a
// Head. Its fields are not changed once it was handed to a journal.
type Record interface{ RecordObject() Object }

// Standing is what records name by an id, such as a surface. A journal holds its records in each
// file that names it. It is safe for concurrent use.
type Standing interface {
	StandingKey() string       // its id, of this version
	StandingRecords() []Record // the same whenever it is called; none of what has no record
}

// Head is the first two members of every record.
type Head struct {
	Object        Object `json:"object"`
	SchemaVersion string `json:"schema_version"`
}

// RecordObject returns the kind of the record.
func (h Head) RecordObject() Object { return h.Object }

// HeadOf returns the head of a record of kind o.
func HeadOf(o Object) Head { return Head{Object: o, SchemaVersion: SchemaVersion} }

// Invocation is the standard's tool_invocation: one requested or executed call. It is written
// several times under one id: when execution is about to start and whenever it begins to wait for
// its client (without EndedAt), and when it has ended.
type Invocation struct {
	Head
	InvocationID InvocationID `json:"invocation_id"`
	ToolID       Name         `json:"tool_id"`
	SurfaceID    SurfaceID    `json:"surface_id,omitempty"`
	// the client's JSON-RPC id as JSON text: "7", "\"a\""
	NativeCallID string          `json:"native_call_id,omitempty"`
	Status       Status          `json:"status"`
	ModelInput   json.RawMessage `json:"model_input,omitempty"`

	// Each of these is absent where it equals the one before it: observable_input where it equals model_input, and so
	// on. A large input is replaced by its *_ref, "sha256:<hex>;bytes=<n>".
	ObservableInput json.RawMessage `json:"observable_input,omitempty"`
	PermissionInput json.RawMessage `json:"permission_input,omitempty"`
	// Values of arguments that hold secrets are replaced by "[masked]".
	ModelInputRef      string `json:"model_input_ref,omitempty"`
	PermissionInputRef string `json:"permission_input_ref,omitempty"`

	// ParentInvocationID is the batch that made this call, or the invocation that ended as yielded
	// and that this one goes on with. The standard has no member for that, nor for the batch by
	// which a client has grouped its calls.
	ParentInvocationID InvocationID `json:"parent_invocation_id,omitempty"`
	Batch              string       `json:"batch_id,omitempty"`

	ActorRef string `json:"actor_ref,omitempty"`

	// What the client calls itself, and the profile whose tools it sees. The standard has no members for them.
	Client  *ClientRef `json:"client,omitempty"`
	Profile string     `json:"profile,omitempty"`
	Origin

	// what the caller says of itself; the standard has no member for it
	Agent               *Agent             `json:"agent,omitempty"`
	RuntimeRefs         []string           `json:"runtime_refs,omitempty"`
	PermissionDecisions []DecisionID       `json:"permission_decision_refs,omitempty"`
	HookRefs            []HookID           `json:"hook_refs,omitempty"`
	StatusTransitions   []StatusTransition `json:"status_transitions,omitempty"`
	ExternalMappings    []ExternalMapping  `json:"external_mappings,omitempty"`
	Artifacts           []PersistedRef     `json:"artifact_refs,omitempty"`
	Cancellation        *Cancellation      `json:"cancellation,omitempty"` // the standard has no member for it
	CreatedAt           time.Time          `json:"created_at"`
	StartedAt           *time.Time         `json:"started_at,omitempty"`
	EndedAt             *time.Time         `json:"ended_at,omitempty"`
}

// Origin says who approved a call, and where it came from. The standard has no members for it.
type Origin struct {
	ApprovedBy string `json:"approved_by,omitempty"`    // who allowed the call when asked, and where: "queue/ann"
	Address    string `json:"client_address,omitempty"` // the host that the request came from; "" for stdio
	Hub        string `json:"hub,omitempty"`            // hub.name, or the name of the hub's machine
}

// StatusTransition is one step of an invocation's life.
type StatusTransition struct {
	Status Status    `json:"status"`
	At     time.Time `json:"at"`
}

// ExternalMapping refers to the native protocol ids of a call or tool: "Agent Tool SHOULD preserve native protocol ids
// instead of replacing them."
type ExternalMapping struct {
	Source           string `json:"source"`         // "mcp" or the toolset
	Role             string `json:"role,omitempty"` // "client" for the downstream hop, "upstream" for the executor's
	ServerID         string `json:"server_id,omitempty"`
	SessionID        string `json:"mcp_session_id,omitempty"`
	ProtocolVersion  string `json:"mcp_protocol_version,omitempty"`
	Method           string `json:"method,omitempty"`
	ToolName         string `json:"tool_name,omitempty"` // the name used on that hop
	JSONRPCRequestID string `json:"jsonrpc_request_id,omitempty"`

	CWD      string `json:"cwd_ref,omitempty"`   // of a toolset: the directory where its relative paths start
	ExitCode *int   `json:"exit_code,omitempty"` // of a command that ended by itself
	Signal   string `json:"signal,omitempty"`    // that ended a command
}

// Result is the standard's tool_result: how an invocation ended. There is exactly one for each
// invocation. The result of the task that an invocation has become is a Result with the head of
// ObjectTaskResult.
type Result struct {
	Head
	ResultID          ResultID        `json:"result_id"`
	InvocationID      InvocationID    `json:"invocation_id"`
	Status            Status          `json:"status"`
	IsError           bool            `json:"is_error"`
	Content           json.RawMessage `json:"content,omitempty"`            // array of objects
	StructuredContent json.RawMessage `json:"structured_content,omitempty"` // any JSON
	// of a native result too large to stand here: "sha256:<hex>;bytes=<n>"
	ContentRef string `json:"content_ref,omitempty"`
	Summary    string `json:"summary,omitempty"`
	Output     Output `json:"output,omitempty"` // of a success: the standard has no member for it

	// ModifiedBy are the hooks that have changed the result, or added to it: then it is not what
	// the tool sent, byte for byte. The standard has no member for that.
	ModifiedBy []HookID `json:"modified_by,omitempty"`

	Redaction   RedactionState `json:"redaction_state"`
	Persistence []DecisionID   `json:"persistence_refs,omitempty"`
	Artifacts   []PersistedRef `json:"artifact_refs,omitempty"`

	Error        *Error        `json:"error,omitempty"`
	Cancellation *Cancellation `json:"cancellation,omitempty"` // the standard has no member for it
	CreatedAt    time.Time     `json:"created_at"`
}

// RedactionState says whether a record holds all of a result.
type RedactionState string

const (
	RedactionNone RedactionState = "none"     // nothing was taken out
	Detected      RedactionState = "detected" // its caller got secrets: of a result that is too large for the record
	Redacted      RedactionState = "redacted" // marks stand in the place of secrets
	Erased        RedactionState = "erased"   // somebody has erased what the call has said: nothing of it is left
)

// Output tells a success that has brought nothing from one that lacks its output; "" is every other result.
type Output string

const (
	// the tool has answered, and says nothing: no content block, or texts without a character
	OutputEmpty   Output = "empty"
	OutputMissing Output = "missing" // its answer has neither content nor structuredContent
)

// CodeToolError is the error_code of a tool's own answer that says isError.
const CodeToolError = "tool_error"

// Error is the standard's tool_error.
type Error struct {
	ErrorCode      string          `json:"error_code"`
	ErrorClass     ErrorClass      `json:"error_class"`
	Message        string          `json:"message"`
	Recoverability string          `json:"recoverability,omitempty"` // "retry", "fix_input", "ask_operator" or "none"
	RetryAfterMS   int64           `json:"retry_after_ms,omitempty"`
	OutcomeUnknown bool            `json:"outcome_unknown,omitempty"` // the call may have run
	AbortReason    string          `json:"abort_reason,omitempty"`    // see Failure
	NativeErrorRef json.RawMessage `json:"native_error_ref,omitempty"`
}

// ProgressRecord is the standard's tool_progress.
type ProgressRecord struct {
	Head
	ProgressID   ProgressID   `json:"progress_id"`
	InvocationID InvocationID `json:"invocation_id"`
	Sequence     int          `json:"sequence"` // from 1, without gaps
	Status       Status       `json:"status"`
	Message      string       `json:"message,omitempty"`
	Percent      *float64     `json:"percent,omitempty"` // 0 to 100, where a total is known
	ElapsedMS    int64        `json:"elapsed_ms"`
	Timestamp    time.Time    `json:"timestamp"`
}

// Event is the standard's tool_event.
type Event struct {
	Head
	EventID      EventID        `json:"event_id"`
	EventType    EventType      `json:"event_type"`
	Source       string         `json:"source"` // always "mcp-toolhub"
	Subject      string         `json:"subject,omitempty"`
	Time         time.Time      `json:"time"`
	InvocationID InvocationID   `json:"invocation_id,omitempty"`
	ToolID       Name           `json:"tool_id,omitempty"`
	Data         map[string]any `json:"data,omitempty"`
	TraceRefs    []TraceRef     `json:"trace_refs,omitempty"` // of the caller
}

// EventSource is the source of all events.
const EventSource = "mcp-toolhub"

// PermissionDecisionRecord is the standard's tool_permission_decision.
type PermissionDecisionRecord struct {
	Head
	DecisionID   DecisionID   `json:"decision_id"`
	InvocationID InvocationID `json:"invocation_id"`

	// What it is about, who called, and the decision to ask that it answers. The standard has no members for them.
	ToolID   Name       `json:"tool_id,omitempty"`
	ActorRef string     `json:"actor_ref,omitempty"`
	Closes   DecisionID `json:"closes_decision_id,omitempty"`

	PermissionDecision
	DecidedAt time.Time `json:"decided_at"`
}

// PermissionDecision is what a decision says, with every member that the specification names.
type PermissionDecision struct {
	Behavior   Behavior       `json:"behavior"`
	Mode       string         `json:"mode,omitempty"`
	Source     string         `json:"source,omitempty"`
	Reason     map[string]any `json:"reason,omitempty"`
	RuleRefs   []string       `json:"rule_refs,omitempty"`
	PolicyRefs []string       `json:"policy_refs,omitempty"` // the version of the policy that decided

	// What a person changed while approving: the input that is to be used instead, here or elsewhere.
	UpdatedInput    json.RawMessage `json:"updated_input,omitempty"`
	UpdatedInputRef string          `json:"updated_input_ref,omitempty"`
	UserModified    bool            `json:"user_modified,omitempty"`

	// what would spare the question next time; each an object
	SuggestedUpdates []any            `json:"suggested_updates,omitempty"`
	BlockedPath      string           `json:"blocked_path,omitempty"`   // the path that the decision is about
	ContentBlocks    []map[string]any `json:"content_blocks,omitempty"` // what the person says to the model, denying
	// what the person says to the model, allowing
	AcceptFeedback string     `json:"accept_feedback,omitempty"`
	ExpiresAt      *time.Time `json:"expires_at,omitempty"` // of an ask: no answer until then denies
}

// PolicyRecord is a version of the policy: its mode and rules, which policy_refs of decisions name
// by their digest. What people have answered is no part of it.
type PolicyRecord struct {
	Head
	Ref    string          `json:"policy_ref"` // "policy:sha256:" and the digest of Policy
	Policy json.RawMessage `json:"policy"`
}

// InputMutationRecord is the standard's tool_input_mutation.
type InputMutationRecord struct {
	Head
	MutationID   MutationID   `json:"mutation_id"`
	InvocationID InvocationID `json:"invocation_id"`
	InputMutation
	CreatedAt time.Time `json:"created_at"`
}

// InputMutation says that somebody changed the input of an invocation on its way.
type InputMutation struct {
	SourceType    string   `json:"source_type"` // hook, permission_prompt, adapter, migration or runtime
	SourceRef     string   `json:"source_ref,omitempty"`
	FromInputRef  string   `json:"from_input_ref,omitempty"`
	ToInputRef    string   `json:"to_input_ref,omitempty"`
	ChangedFields []string `json:"changed_fields,omitempty"` // names of members of the arguments
	Reason        string   `json:"reason,omitempty"`
}

// HookRecord is the standard's tool_hook: one run of a hook.
type HookRecord struct {
	Head
	HookID       HookID       `json:"hook_id"`
	Event        string       `json:"hook_event"`
	InvocationID InvocationID `json:"invocation_id"`
	ToolID       Name         `json:"tool_id"`
	HookRun
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at"`
}

// HookRun is what a run of a hook has brought.
type HookRun struct {
	// the name of the hook, and which calls it is for, as in the config
	Matcher    map[string]any `json:"matcher,omitempty"`
	DurationMS int64          `json:"duration_ms,omitempty"` // how long it ran, without the wait for its turn
	// messages, progress, what was ignored, and why the hook failed
	Outputs    []map[string]any `json:"outputs,omitempty"`
	Permission map[string]any   `json:"permission_result,omitempty"`
	// masked, or a string: digest and size where it is large
	Input   json.RawMessage  `json:"updated_input,omitempty"`
	Context []map[string]any `json:"additional_context,omitempty"`
	Stop    map[string]any   `json:"stop,omitempty"`
	Output  json.RawMessage  `json:"updated_output,omitempty"` // a string: digest and size
}

// Behavior is the outcome of a permission decision.
type Behavior string

const (
	Allow       Behavior = "allow"
	Ask         Behavior = "ask"
	Deny        Behavior = "deny"
	Passthrough Behavior = "passthrough"
)
