package facts

import (
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// The types below are the standard's objects about one tool. Their required members and those that
// the standard names are always there; the members fact_origins say which facts were declared,
// inferred and configured.

// FactOrigin is the origin of a member of a record.
type FactOrigin struct {
	Origin Origin `json:"origin"`
	Why    string `json:"why,omitempty"`
}

// Declaration is the standard's tool_declaration.
type Declaration struct {
	tool.Head
	ToolID            tool.Name              `json:"tool_id"`
	Namespace         string                 `json:"namespace"`
	Name              string                 `json:"name"`
	Aliases           []string               `json:"aliases"`
	SearchHint        string                 `json:"search_hint"`
	Title             string                 `json:"title,omitempty"`
	Description       string                 `json:"description"`
	Lifecycle         string                 `json:"lifecycle"`
	ToolKind          string                 `json:"tool_kind"`
	Capabilities      []string               `json:"capability_refs"`
	InputContract     InputContract          `json:"input_contract"`
	OutputContract    OutputContract         `json:"output_contract"`
	Interface         string                 `json:"interface_ref"`
	ExecutionProfile  string                 `json:"execution_profile_ref"`
	PermissionProfile string                 `json:"permission_profile_ref"`
	ExternalMappings  []tool.ExternalMapping `json:"external_mappings"`
	Annotations       json.RawMessage        `json:"annotations,omitempty"` // as the origin wrote them: untrusted
	Tags              []string               `json:"tags"`
	SourceDigest      string                 `json:"source_digest,omitempty"`
	Origins           map[string]FactOrigin  `json:"fact_origins"`
}

// InputContract is the standard's tool_input_contract.
type InputContract struct {
	tool.Head
	ModelSchema    json.RawMessage `json:"model_input_schema,omitempty"`
	RuntimeSchema  json.RawMessage `json:"runtime_input_schema,omitempty"`
	SchemaDigest   string          `json:"schema_digest"`
	Strict         bool            `json:"strict"`
	ArgumentMode   string          `json:"argument_mode"`
	Validation     tool.Validate   `json:"validation"`
	Sensitive      []string        `json:"sensitive_fields"`
	InternalOnly   []string        `json:"internal_only_fields"`
	MutationPolicy string          `json:"mutation_policy"`
	Targets        []TargetField   `json:"target_fields"`
}

// TargetField is an argument that names something outside the call.
type TargetField struct {
	Pointer string `json:"pointer"`
	Kind    string `json:"kind"`
	Write   bool   `json:"write"`
	Origin  Origin `json:"origin"`
	Why     string `json:"why,omitempty"`
}

// OutputContract is the standard's tool_output_contract.
type OutputContract struct {
	tool.Head
	Schema     json.RawMessage `json:"output_schema,omitempty"`
	Structured bool            `json:"structured"`
	// what happens to a result that the schema refuses; "" without one
	Validation   tool.Validate `json:"validation,omitempty"`
	ContentTypes []string      `json:"content_types"`
	MediaModes   []string      `json:"media_modes"`
	SizePolicy   string        `json:"result_size_policy"`
	MaxInline    int           `json:"max_inline_chars,omitempty"`
	Rendering    string        `json:"rendering_boundary"`
}

// ExecutionProfile is the standard's tool_execution_profile.
type ExecutionProfile struct {
	tool.Head
	ID               string                 `json:"execution_profile_id"`
	Kind             string                 `json:"execution_kind"`
	Progress         bool                   `json:"supports_progress"`
	Cancel           bool                   `json:"supports_cancel"`
	Resume           bool                   `json:"supports_resume"`
	Retries          bool                   `json:"supports_retries"`
	PartialResults   bool                   `json:"supports_partial_results"`
	Background       bool                   `json:"supports_background"`
	Artifacts        bool                   `json:"supports_artifacts"`
	ContextModifiers bool                   `json:"supports_context_modifiers"`
	Sandboxed        bool                   `json:"sandboxed"`
	SandboxProfile   string                 `json:"sandbox_profile"`
	TimeoutMS        int64                  `json:"timeout_ms,omitempty"`
	ExternalMappings []tool.ExternalMapping `json:"external_mappings"`
}

// PermissionProfile is the standard's tool_permission_profile.
type PermissionProfile struct {
	tool.Head
	ID                string                `json:"permission_profile_id"`
	RiskLevel         string                `json:"risk_level"`
	AccessKinds       []string              `json:"access_kinds"`
	WriteEffects      []string              `json:"write_effects"`
	NetworkScope      string                `json:"network_scope"`
	TenantScope       string                `json:"tenant_scope"`
	CredentialRefs    []string              `json:"credential_refs"`
	SandboxProfile    string                `json:"sandbox_profile"`
	ApprovalRequired  bool                  `json:"approval_required"`
	ApprovalReason    string                `json:"approval_reason"`
	PermissionChannel string                `json:"permission_channel"`
	RuleMatching      []string              `json:"rule_matching_fields"`
	DataSensitivity   string                `json:"data_sensitivity"`
	RetentionHint     string                `json:"retention_hint"`
	RedactionRequired bool                  `json:"redaction_required"`
	PolicyRefs        []string              `json:"policy_refs"`
	Origins           map[string]FactOrigin `json:"fact_origins"`
}

// SchedulerPolicy is the standard's tool_scheduler_policy, for the calls of one tool.
type SchedulerPolicy struct {
	tool.Head
	ID              string         `json:"scheduler_policy_id"`
	Scope           string         `json:"scope"`
	ConcurrencySafe bool           `json:"concurrency_safe"`
	MaxParallel     int            `json:"max_parallel,omitempty"`
	Ordering        string         `json:"ordering_policy"`
	Yield           string         `json:"yield_policy"`
	Interrupt       string         `json:"interrupt_behavior"`
	SiblingFailure  string         `json:"sibling_failure_policy"`
	ContextModifier string         `json:"context_modifier_policy"`
	Locks           []ResourceLock `json:"resource_locks"`
}

// ResourceLock is a lock that a call holds while it runs.
type ResourceLock struct {
	Resource string `json:"resource"`
	Mode     string `json:"mode"` // "shared" or "exclusive"
}

// Interface is the standard's tool_interface. Its parts are the ten partitions of its page; in JSON
// they are one object.
type Interface struct {
	tool.Head
	ID string `json:"interface_id"`
	InterfaceIdentity
	InterfaceDiscovery
	InterfaceSchemas
	InterfaceAvailability
	InterfaceValidation
	InterfaceSafety
	InterfacePermission
	InterfaceExecution
	InterfaceResult

	Rendering        Rendering              `json:"rendering"`
	ExternalMappings []tool.ExternalMapping `json:"external_mappings"`
}

// InterfaceIdentity names the tool, for programs and for people.
type InterfaceIdentity struct {
	ToolID         tool.Name `json:"tool_id"`
	Name           string    `json:"name"`
	Aliases        []string  `json:"aliases"`
	Namespace      string    `json:"namespace"`
	NativeIDs      []string  `json:"native_ids"`
	UserFacingName string    `json:"user_facing_name"`
}

// InterfaceDiscovery helps a search to find the tool, and says whether a surface lists it.
type InterfaceDiscovery struct {
	SearchHint       string   `json:"search_hint"`
	Description      string   `json:"description"`
	Capabilities     []string `json:"capability_refs"`
	SchemaVisibility string   `json:"schema_visibility"`
	ShouldDefer      bool     `json:"should_defer"`
	AlwaysLoad       bool     `json:"always_load"`
}

// InterfaceSchemas are the schemas of arguments and results.
type InterfaceSchemas struct {
	ModelSchema   json.RawMessage `json:"model_input_schema,omitempty"`
	RuntimeSchema json.RawMessage `json:"runtime_input_schema,omitempty"`
	OutputSchema  json.RawMessage `json:"output_schema,omitempty"`
	Strict        bool            `json:"strict"`
}

// InterfaceAvailability says whether the tool can be called, and what it needs first.
type InterfaceAvailability struct {
	IsEnabled           bool     `json:"is_enabled"`
	RequiresSetup       bool     `json:"requires_setup"`
	RequiredCredentials []string `json:"required_credentials"`
	ModelRequirements   []string `json:"model_requirements"`
	FeatureGates        []string `json:"feature_gate_refs"`
}

// InterfaceValidation says what is checked before a call.
type InterfaceValidation struct {
	SchemaValidation      tool.Validate `json:"schema_validation"`
	ValueValidation       string        `json:"value_validation"`
	IOPreflightValidation string        `json:"io_preflight_validation"`
	DenyBeforeIO          bool          `json:"deny_before_io"`
}

// InterfaceSafety says what a call may do.
type InterfaceSafety struct {
	IsReadOnly              bool                  `json:"is_read_only"`
	IsDestructive           bool                  `json:"is_destructive"`
	IsOpenWorld             bool                  `json:"is_open_world"`
	IsConcurrencySafe       bool                  `json:"is_concurrency_safe"`
	RequiresUserInteraction bool                  `json:"requires_user_interaction"`
	SandboxProfile          string                `json:"sandbox_profile"`
	ClassifierInput         string                `json:"classifier_input"`
	Origins                 map[string]FactOrigin `json:"fact_origins"`
}

// InterfacePermission refers to what decides about calls.
type InterfacePermission struct {
	PermissionProfile string `json:"permission_profile_ref"`
	PermissionMatcher string `json:"permission_matcher"`
	PermissionChannel string `json:"permission_channel"`
	DecisionRef       string `json:"decision_ref"` // of the call; empty in the record of a tool
}

// InterfaceExecution says how a call runs.
type InterfaceExecution struct {
	ExecutionProfile      string          `json:"execution_profile_ref"`
	TimeoutMS             int64           `json:"timeout_ms,omitempty"`
	AbortSemantics        string          `json:"abort_semantics"`
	ProgressSchema        json.RawMessage `json:"progress_schema"`
	ContextModifierPolicy string          `json:"context_modifier_policy"`
}

// InterfaceResult says what becomes of a result.
type InterfaceResult struct {
	ResultMapper      string   `json:"result_mapper"`
	MaxInlineChars    int      `json:"max_inline_chars,omitempty"`
	PersistencePolicy string   `json:"persistence_policy_ref"`
	EmptyResultPolicy string   `json:"empty_result_policy"`
	RedactionPolicies []string `json:"redaction_policy_refs"`
}

// Rendering is the partition of that name.
type Rendering struct {
	Summary      string `json:"ui_summary"`
	Activity     string `json:"activity_description"`
	ProgressHint string `json:"progress_render_hint"`
	RejectedHint string `json:"rejected_render_hint"`
	ErrorHint    string `json:"error_render_hint"`
	SearchText   string `json:"transcript_search_text"`
}
