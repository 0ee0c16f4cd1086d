package facts

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// noSandbox: the hub starts servers and commands as they are.
const noSandbox = "none"

// progressSchema is the schema of notifications/progress.
const progressSchema = `{"type":"object","required":["progress"],"properties":{"progress":{"type":"number"},` +
	`"total":{"type":"number"},"message":{"type":"string"}}}`

func (f *Facts) ref(kind string) string { return string(f.Tool) + "/" + kind }

func (f *Facts) namespace() string {
	if source := f.Tool.Source(); source != tool.SourceMCP {
		return source
	}
	return tool.SourceMCP + "." + f.Server
}

// Declaration is the tool's tool_declaration.
func (f *Facts) Declaration() Declaration {
	t := f.declared
	return Declaration{
		Head: tool.HeadOf(tool.ObjectDeclaration), ToolID: f.Tool, Namespace: f.namespace(), Name: t.Native,
		Aliases: list(f.state.Aliases), SearchHint: f.SearchHint(), Title: t.Title, Description: t.Description,
		Lifecycle: f.Lifecycle.Value, ToolKind: f.Kind.Value, Capabilities: f.capabilities(),
		InputContract: f.InputContract(), OutputContract: f.OutputContract(), Interface: f.ref("interface"),
		ExecutionProfile: f.ref("execution"), PermissionProfile: f.ref("permission"),
		ExternalMappings: f.ExternalMappings(), Annotations: objectOnly(member(t.Declaration, "annotations")),
		Tags: list(f.Tags), SourceDigest: t.SourceDigest, Origins: f.Origins(),
	}
}

// InputContract is the tool's tool_input_contract. Hooks and prompts may change values, and set the
// internal arguments, which the model's schema has not.
func (f *Facts) InputContract() InputContract {
	t := f.declared
	runtime, _ := t.RuntimeSchema()
	targets := make([]TargetField, len(f.Arguments))
	for i, a := range f.Arguments {
		targets[i] = TargetField(a)
	}
	return InputContract{
		Head: tool.HeadOf(tool.ObjectInputContract), ModelSchema: objectOnly(t.InputSchema),
		RuntimeSchema: objectOnly(runtime), SchemaDigest: t.SchemaDigest, Strict: f.strict(),
		ArgumentMode: "json_object",
		Validation:   f.validation(), Sensitive: list(f.Sensitive), InternalOnly: list(t.Internal),
		MutationPolicy: "recorded_copies", Targets: targets,
	}
}

// OutputContract is the tool's tool_output_contract. An MCP tool may answer with any content there is.
func (f *Facts) OutputContract() OutputContract {
	schema, validation := objectOnly(f.declared.OutputSchema), tool.Validate("")
	if schema != nil {
		validation = tool.ValidateWarn
	}
	policy := passThrough
	if f.state.MaxInlineChars > 0 && f.state.Excess != "" {
		policy = f.state.Excess
	}
	return OutputContract{
		Head: tool.HeadOf(tool.ObjectOutputContract), Schema: schema, Structured: schema != nil, Validation: validation,
		ContentTypes: []string{"text", "image", "audio", "resource", "resource_link"},
		MediaModes:   []string{"inline", "reference"}, SizePolicy: policy, MaxInline: f.maxInlineChars(),
		Rendering: "model_content_is_the_result",
	}
}

// maxInlineChars is the lesser of the hub's bound and the tool's own.
func (f *Facts) maxInlineChars() int {
	most := f.state.MaxInlineChars
	own := string(member(member(f.declared.Declaration, "_meta"), "anthropic/maxResultSizeChars"))
	if n, err := strconv.Atoi(own); err == nil && n > 0 && (most == 0 || n < most) {
		return n
	}
	return most
}

// ExecutionProfile is the tool's tool_execution_profile.
func (f *Facts) ExecutionProfile() ExecutionProfile {
	mcp := f.Tool.Source() == tool.SourceMCP
	kind := "local"
	switch {
	case mcp:
		kind = "mcp"
	case f.Kind.Value == "shell_command":
		kind = "shell"
	}
	support, _ := rawjson.String(member(member(f.declared.Declaration, "execution"), "taskSupport"))
	return ExecutionProfile{
		Head: tool.HeadOf(tool.ObjectExecutionProfile), ID: f.ref("execution"), Kind: kind,
		Progress:  mcp || f.state.Progress, // what a server reports is passed on
		Cancel:    f.Interrupt.Value != InterruptBlock,
		Retries:   false, // the hub calls a tool once, also one that is idempotent
		Artifacts: f.state.Artifacts, PartialResults: f.state.Partial,
		Background: support == "optional" || support == "required", SandboxProfile: noSandbox,
		TimeoutMS: f.state.Timeout.Milliseconds(), ExternalMappings: f.ExternalMappings(),
	}
}

// PermissionProfile is the tool's tool_permission_profile.
func (f *Facts) PermissionProfile() PermissionProfile {
	required, reason := f.approval()
	scope := "none_shown"
	if f.Network.Value {
		scope = "named_by_arguments"
		if !f.hasArgument(ArgumentURL) && !f.hasArgument(ArgumentHost) || f.Command.Value {
			scope = "open"
		}
	}
	sensitivity := "unknown"
	if len(f.Sensitive) > 0 {
		sensitivity = "secret_arguments"
	}
	return PermissionProfile{
		Head: tool.HeadOf(tool.ObjectPermissionProfile), ID: f.ref("permission"), RiskLevel: f.Risk.Value,
		AccessKinds: list(f.Access.Value), WriteEffects: list(f.WriteEffects.Value), NetworkScope: scope,
		TenantScope: f.namespace(), CredentialRefs: list(f.state.Credentials), SandboxProfile: noSandbox,
		ApprovalRequired: required, ApprovalReason: reason + " (where no rule matches)",
		PermissionChannel: f.options.Channel,
		RuleMatching: []string{"tool_id", "tags", "server", "profile", "actor", "arguments", "targets", "_meta",
			"time"},
		DataSensitivity: sensitivity, RetentionHint: "journal", RedactionRequired: len(f.Sensitive) > 0,
		PolicyRefs: []string{}, Origins: f.Origins(),
	}
}

// approval reports whether a call is asked about where no rule matches, and why.
func (f *Facts) approval() (bool, string) {
	switch {
	case f.options.Unasked != "":
		return false, f.options.Unasked
	case !f.ReadOnly.Value && f.options.Denied != "":
		return false, f.options.Denied
	case f.Has(tagDangerous):
		return true, "it is dangerous"
	case !f.ReadOnly.Value:
		return true, "it is not known to be read-only: " + f.ReadOnly.Why
	case !f.Vouched():
		return true, "nobody vouches for its server"
	}
	return false, "a read-only tool of a trusted origin"
}

// SchedulerPolicy is the tool's tool_scheduler_policy: see Concurrency and Interrupt.
func (f *Facts) SchedulerPolicy() SchedulerPolicy {
	p := SchedulerPolicy{
		Head: tool.HeadOf(tool.ObjectSchedulerPolicy), ID: f.ref("scheduler"), Scope: f.namespace(),
		ConcurrencySafe: f.isSafe(), Ordering: "preserve_terminal_order",
		Yield: "progress_immediate_results_ordered", Interrupt: f.Interrupt.Value, SiblingFailure: "ignore",
		ContextModifier: "forbid",
		Locks:           []ResourceLock{},
	}
	switch {
	case p.ConcurrencySafe:
	case f.Concurrency.Value == ConcurrencyExclusive:
		p.Ordering = "serial"
		server := f.namespace()
		if f.state.Apart { // no two sessions share the lock
			server += "/{session}"
		} else {
			p.MaxParallel = 1
		}
		p.Locks = append(p.Locks, ResourceLock{Resource: server, Mode: "exclusive"})
	default:
		if !f.hasArgument(ArgumentCommand) { // which may be aimed at anything
			for _, a := range f.Arguments {
				mode := "shared"
				if a.Write {
					mode = "exclusive"
				}
				p.Locks = append(p.Locks, ResourceLock{Resource: a.Kind + ":{" + a.Pointer + "}", Mode: mode})
			}
		}
		if len(p.Locks) == 0 {
			p.Ordering = "serial"
			p.Locks = append(p.Locks, ResourceLock{Resource: f.namespace() + "/{caller}", Mode: "exclusive"})
		}
	}
	return p
}

// ExternalMappings refer to the tool's own names on its server.
func (f *Facts) ExternalMappings() []tool.ExternalMapping {
	m := tool.ExternalMapping{Source: f.Tool.Source(), Role: "executor", ToolName: f.declared.Native}
	if m.Source == tool.SourceMCP {
		m.Role, m.ServerID, m.Method = "upstream", f.Server, "tools/call"
		if f.declared.Method {
			m.ToolName, m.Method = "", f.declared.Native
		}
	}
	return []tool.ExternalMapping{m}
}

// Interface is the tool's tool_interface.
func (f *Facts) Interface() Interface {
	t := f.declared
	runtime, _ := t.RuntimeSchema()
	title := cmp.Or(t.Title, t.Native)
	visibility := "loaded"
	if f.Lifecycle.Value == Deferred {
		visibility = "deferred"
	}
	return Interface{
		Head: tool.HeadOf(tool.ObjectInterface), ID: f.ref("interface"),
		InterfaceIdentity: InterfaceIdentity{
			ToolID: f.Tool, Name: t.Native, Aliases: list(f.state.Aliases), Namespace: f.namespace(),
			NativeIDs: []string{t.Native}, UserFacingName: title,
		},
		InterfaceDiscovery: InterfaceDiscovery{
			SearchHint: f.SearchHint(), Description: t.Description, Capabilities: f.capabilities(),
			SchemaVisibility: visibility,
			ShouldDefer:      f.Lifecycle.Value == Deferred, AlwaysLoad: f.state.AlwaysLoad,
		},
		InterfaceSchemas: InterfaceSchemas{
			ModelSchema: objectOnly(t.InputSchema), RuntimeSchema: objectOnly(runtime),
			OutputSchema: objectOnly(t.OutputSchema), Strict: f.strict(),
		},
		InterfaceAvailability: InterfaceAvailability{
			IsEnabled: f.enabled(), RequiresSetup: f.Lifecycle.Value == RequiresSetup,
			RequiredCredentials: list(f.state.Credentials), ModelRequirements: []string{}, FeatureGates: []string{},
		},
		InterfaceValidation: InterfaceValidation{
			SchemaValidation: f.validation(), ValueValidation: "by_executor", IOPreflightValidation: "targets",
			DenyBeforeIO: true,
		},
		InterfaceSafety: InterfaceSafety{
			IsReadOnly: f.ReadOnly.Value, IsDestructive: f.Destructive.Value, IsOpenWorld: f.OpenWorld.Value,
			IsConcurrencySafe: f.isSafe(), RequiresUserInteraction: f.Interactive.Value, SandboxProfile: noSandbox,
			ClassifierInput: f.ClassifierInput(), Origins: f.Origins(),
		},
		InterfacePermission: InterfacePermission{
			PermissionProfile: f.ref("permission"), PermissionMatcher: string(f.Tool),
			PermissionChannel: f.options.Channel,
		},
		InterfaceExecution: InterfaceExecution{
			ExecutionProfile: f.ref("execution"), TimeoutMS: f.state.Timeout.Milliseconds(),
			AbortSemantics: f.abortSemantics(),
			ProgressSchema: json.RawMessage(progressSchema), ContextModifierPolicy: "forbid",
		},
		InterfaceResult: InterfaceResult{
			ResultMapper: passThrough, MaxInlineChars: f.maxInlineChars(), PersistencePolicy: f.ref("persistence"),
			EmptyResultPolicy: "empty_content", RedactionPolicies: []string{},
		},
		Rendering: Rendering{Summary: title, Activity: "Calls " + string(f.Tool), ProgressHint: "message_and_percent",
			RejectedHint: "reason", ErrorHint: "message", SearchText: title + " " + string(f.Tool)},
		ExternalMappings: f.ExternalMappings(),
	}
}

// isSafe reports whether calls run beside each other: those of the hub's own tools that call others
// do, and each of the calls has its own turn.
func (f *Facts) isSafe() bool { return f.Concurrency.Value == ConcurrencySafe || f.declared.Hub != nil }

func (f *Facts) abortSemantics() string {
	if f.Interrupt.Value == InterruptBlock {
		return "runs_to_its_end"
	}
	return "cancel_requested"
}

// ClassifierInput describes the tool to a classifier. The standard wants it of every tool that
// matters for safety, so only tools that merely read have none.
func (f *Facts) ClassifierInput() string {
	if f.ReadOnly.Value && f.Risk.Value == RiskLow {
		return ""
	}
	return string(f.Tool) + " [" + strings.Join(f.Tags, " ") + "] risk " + f.Risk.Value
}

// Origins says of each fact of the records where it is from.
func (f *Facts) Origins() map[string]FactOrigin {
	of := func(f Fact[bool]) FactOrigin { return FactOrigin{f.Origin, f.Why} }
	return map[string]FactOrigin{
		"is_read_only": of(f.ReadOnly), "is_destructive": of(f.Destructive), "is_idempotent": of(f.Idempotent),
		"is_open_world": of(f.OpenWorld), "is_concurrency_safe": {f.Concurrency.Origin, f.Concurrency.Why},
		"requires_user_interaction": of(f.Interactive), "network": of(f.Network), "filesystem": of(f.Filesystem),
		"command": of(f.Command), "risk_level": {f.Risk.Origin, f.Risk.Why},
		"access_kinds":  {f.Access.Origin, f.Access.Why},
		"write_effects": {f.WriteEffects.Origin, f.WriteEffects.Why}, "tool_kind": {f.Kind.Origin, f.Kind.Why},
		"lifecycle": {f.Lifecycle.Origin, f.Lifecycle.Why},
	}
}

// SearchHint is a phrase of three to ten words that says what the tool is good for.
func (f *Facts) SearchHint() string {
	t := f.declared
	if hint, ok := rawjson.String(member(member(t.Declaration, "_meta"), "anthropic/searchHint")); ok && hint != "" {
		return hint
	}
	words := strings.Fields(t.Title)
	if len(words) < 3 {
		words = split(t.Native)
	}
	if len(words) < 3 {
		for _, w := range strings.Fields(t.Description[:min(len(t.Description), 300)]) {
			if len(words) == 8 {
				break
			}
			words = append(words, strings.ToValidUTF8(w, ""))
		}
	}
	return strings.Join(words[:min(len(words), 10)], " ")
}

func (f *Facts) capabilities() []string {
	out := make([]string, len(f.Access.Value))
	for i, kind := range f.Access.Value {
		out[i] = "access:" + kind
	}
	return out
}

func (f *Facts) enabled() bool {
	return f.Lifecycle.Value == Available || f.Lifecycle.Value == Deferred || f.Lifecycle.Value == Deprecated
}

func (f *Facts) hasArgument(kind string) bool {
	return slices.ContainsFunc(f.Arguments, func(a Argument) bool { return a.Kind == kind })
}

// strict says whether arguments that the schema does not name are refused.
func (f *Facts) strict() bool {
	return f.validation() == tool.ValidateReject &&
		string(member(f.declared.InputSchema, "additionalProperties")) == "false"
}

func (f *Facts) validation() tool.Validate {
	if f.declared.Validate == "" {
		return tool.ValidateReject
	}
	return f.declared.Validate
}

func member(object []byte, name string) []byte {
	value, _ := rawjson.Get(object, name)
	return value
}

// objectOnly returns text where it is a JSON object; the records have objects there or nothing.
func objectOnly(text []byte) json.RawMessage {
	if !rawjson.IsObject(text) || !rawjson.Valid(text) {
		return nil
	}
	return text
}

// list returns list, and an empty one for nil: a record says that there is none.
func list(l []string) []string {
	if l == nil {
		return []string{}
	}
	return l
}
