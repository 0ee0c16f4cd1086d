package tool

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// ObjectVersion is the kind of a Version. It is the journal's own, and none of the standard's.
const ObjectVersion Object = "tool_version"

// Version is one version of a tool, as a journal keeps it: what its origin declares, what the config
// says of its calls, and what the hub takes it for. Objects derives the standard's objects from it.
type Version struct {
	Head
	Tool   Name      `json:"tool_id"`
	Server string    `json:"server_id"`
	Native string    `json:"native_name"`
	Method bool      `json:"is_method,omitempty"` // see Tool
	Hub    bool      `json:"is_hub_tool,omitempty"`
	Since  time.Time `json:"declared_at"` // no part of what tells versions apart

	Declaration  json.RawMessage `json:"declaration,omitempty"`
	Runtime      json.RawMessage `json:"runtime_input_schema,omitempty"` // nil: that of the declaration
	Internal     []string        `json:"internal_only_fields,omitempty"`
	SchemaDigest string          `json:"schema_digest"`
	SourceDigest string          `json:"source_digest,omitempty"`
	Validate     Validate        `json:"validation"`

	// Facts are what the hub takes the tool for, by their names in fact_origins.
	Facts     map[string]VersionFact `json:"facts"`
	Tags      []string               `json:"tags"`
	Targets   []TargetField          `json:"target_fields,omitempty"`
	Sensitive []string               `json:"sensitive_fields,omitempty"`

	TimeoutMS   int64    `json:"timeout_ms,omitempty"`      // the most that a call takes; 0: it is not bounded
	Credentials []string `json:"credential_refs,omitempty"` // names of what the origin gets, never the values
	Progress    bool     `json:"reports_progress,omitempty"`
	Partial     bool     `json:"has_partial_results,omitempty"`
	Artifacts   bool     `json:"makes_artifacts,omitempty"`
}

// VersionFact is one fact about a tool: Value is a boolean or a string, Values is a list.
type VersionFact struct {
	Value  any      `json:"value,omitempty"`
	Values []string `json:"values,omitempty"`
	FactOrigin
}

// FactOrigin says where a fact is from, and why in a few words.
type FactOrigin struct {
	Origin string `json:"origin"` // "declared", "inferred" or "configured"
	Why    string `json:"why,omitempty"`
}

// TargetField is an argument that names something outside the call.
type TargetField struct {
	Pointer string `json:"pointer"`
	Kind    string `json:"kind"`
	Write   bool   `json:"write"`
	FactOrigin
}

// What the hub does with every tool is the same. These members are equal in all objects of their kind.
const (
	everyInputContract  = `"argument_mode":"json_object","mutation_policy":"recorded_copies"`
	everyOutputContract = `"content_types":["text","image","audio","resource","resource_link"],` +
		`"media_modes":["inline","reference"]`
	everyInterface = `"model_requirements":[],"feature_gate_refs":[],"requires_user_interaction":false,` +
		`"value_validation":"by_executor",` +
		`"io_preflight_validation":"targets","deny_before_io":true,"sandbox_profile":"none","progress_schema":` +
		`{"type":"object","required":["progress"],"properties":{"progress":{"type":"number"},` +
		`"total":{"type":"number"},"message":{"type":"string"}}},"context_modifier_policy":"forbid",` +
		`"result_mapper":"pass_through","empty_result_policy":"empty_content"`
	everyExecutionProfile = `"supports_resume":false,"supports_retries":false,"supports_context_modifiers":false,` +
		`"sandboxed":false,"sandbox_profile":"none"`
	everyPermissionProfile = `"sandbox_profile":"none","rule_matching_fields":["tool_id","tags","server","profile",` +
		`"actor","arguments","targets","_meta","time"]`
	everySchedulerPolicy = `"context_modifier_policy":"forbid"`
)

// member is a member of an object. One without a value, which is null in JSON, is left out.
type member struct {
	name  string
	value any
}

// object writes one of the standard's objects: its members, and those of every object of its kind.
func object(kind Object, every string, members ...member) json.RawMessage {
	out := fmt.Appendf(nil, `{"object":%q,"schema_version":%q`, kind, SchemaVersion)
	for _, m := range members {
		if text, err := rawjson.Encode(m.value); err == nil && !rawjson.IsNull(text) {
			out = append(rawjson.AppendQuote(append(out, ','), m.name), ':')
			out = append(out, text...)
		}
	}
	if every != "" {
		out = append(append(out, ','), every...)
	}
	return append(out, '}')
}

// Objects returns the standard's objects about the tool: its tool_namespace, tool_declaration (with
// its contracts), tool_interface, tool_execution_profile, tool_permission_profile and
// tool_scheduler_policy, and the event that this version is declared. key is the version's
// StandingKey.
func (v *Version) Objects(key string) []json.RawMessage {
	space := v.namespace()
	event, _ := rawjson.Encode(Event{Head: HeadOf(ObjectEvent), EventID: EventID("evt_" + key[:min(26, len(key))]),
		EventType: EventToolDeclared, Source: EventSource, Subject: string(v.Tool), Time: v.Since, ToolID: v.Tool,
		Data: map[string]any{"digest": key}}) // cannot fail: it holds strings
	var server any
	if v.Tool.Source() == SourceMCP {
		server = v.Server
	}
	return []json.RawMessage{
		object(ObjectNamespace, "", member{"namespace_id", space}, member{"source", v.Tool.Source()},
			member{"server_id", server}),
		v.declaration(), v.toolInterface(), v.executionProfile(), v.permissionProfile(),
		object(ObjectSchedulerPolicy, everySchedulerPolicy, member{"scheduler_policy_id", v.ref("scheduler")},
			member{"scope", space}, member{"concurrency", v.Facts["concurrency"].Value},
			member{"concurrency_safe", v.isSafe()}, member{"interrupt_behavior", v.Facts["interrupt_behavior"].Value}),
		event,
	}
}

func (v *Version) declaration() json.RawMessage {
	output, checked := v.schema("outputSchema"), Validate("")
	if output != nil {
		checked = ValidateWarn
	}
	return object(ObjectDeclaration, "",
		member{"tool_id", v.Tool}, member{"namespace", v.namespace()}, member{"name", v.Native},
		member{"search_hint", v.searchHint()}, member{"title", given(v.title())},
		member{"description", rawjson.Text(v.Declaration, "description")},
		member{"lifecycle", v.Facts["lifecycle"].Value}, member{"tool_kind", v.Facts["tool_kind"].Value},
		member{"capability_refs", v.capabilities()},
		member{"input_contract", object(ObjectInputContract, everyInputContract,
			member{"model_input_schema", v.schema("inputSchema")}, member{"runtime_input_schema", v.runtime()},
			member{"schema_digest", v.SchemaDigest}, member{"strict", v.isStrict()},
			member{"validation", v.Validate}, member{"sensitive_fields", list(v.Sensitive)},
			member{"internal_only_fields", list(v.Internal)}, member{"target_fields", list(v.Targets)})},
		member{"output_contract", object(ObjectOutputContract, everyOutputContract,
			member{"output_schema", output}, member{"structured", output != nil},
			member{"validation", given(checked)})},
		member{"interface_ref", v.ref("interface")}, member{"execution_profile_ref", v.ref("execution")},
		member{"permission_profile_ref", v.ref("permission")}, member{"external_mappings", v.mappings()},
		// as the origin wrote them: untrusted
		member{"annotations", v.schema("annotations")}, member{"tags", list(v.Tags)},
		member{"source_digest", given(v.SourceDigest)}, member{"fact_origins", v.origins()})
}

func (v *Version) toolInterface() json.RawMessage {
	title, lifecycle := cmp.Or(v.title(), v.Native), v.Facts["lifecycle"].Value
	abort := "cancel_requested"
	if v.Facts["interrupt_behavior"].Value == "block" {
		abort = "runs_to_its_end"
	}
	classifier := "" // the standard wants a text of every tool that matters for safety
	if risk := v.Facts["risk_level"].Value; !v.is("is_read_only") || risk != "low" {
		classifier = fmt.Sprintf("%s [%s] risk %v", v.Tool, strings.Join(v.Tags, " "), risk)
	}
	return object(ObjectInterface, everyInterface,
		member{"interface_id", v.ref("interface")}, member{"tool_id", v.Tool}, member{"name", v.Native},
		member{"namespace", v.namespace()}, member{"native_ids", []string{v.Native}},
		member{"user_facing_name", title}, member{"search_hint", v.searchHint()},
		member{"description", rawjson.Text(v.Declaration, "description")},
		member{"capability_refs", v.capabilities()},
		member{"model_input_schema", v.schema("inputSchema")}, member{"runtime_input_schema", v.runtime()},
		member{"output_schema", v.schema("outputSchema")}, member{"strict", v.isStrict()},
		member{"is_enabled", lifecycle == "available" || lifecycle == "deprecated"},
		member{"requires_setup", lifecycle == "requires_setup"},
		member{"required_credentials", list(v.Credentials)}, member{"schema_validation", v.Validate},
		member{"is_read_only", v.is("is_read_only")}, member{"is_destructive", v.is("is_destructive")},
		member{"is_open_world", v.is("is_open_world")}, member{"is_concurrency_safe", v.isSafe()},
		member{"classifier_input", classifier}, member{"fact_origins", v.origins()},
		member{"permission_profile_ref", v.ref("permission")}, member{"permission_matcher", v.Tool},
		member{"execution_profile_ref", v.ref("execution")}, member{"timeout_ms", given(v.TimeoutMS)},
		member{"abort_semantics", abort},
		member{"rendering", map[string]string{"ui_summary": title, "activity_description": "Calls " + string(v.Tool),
			"progress_render_hint": "message_and_percent", "rejected_render_hint": "reason",
			"error_render_hint": "message", "transcript_search_text": title + " " + string(v.Tool)}},
		member{"external_mappings", v.mappings()})
}

func (v *Version) executionProfile() json.RawMessage {
	isMCP, kind := v.Tool.Source() == SourceMCP, "local"
	switch {
	case isMCP:
		kind = "mcp"
	case v.Facts["tool_kind"].Value == "shell_command":
		kind = "shell"
	}
	tasks := rawjson.Text(rawjson.GetObject(v.Declaration, "execution"), "taskSupport")
	return object(ObjectExecutionProfile, everyExecutionProfile,
		member{"execution_profile_id", v.ref("execution")}, member{"execution_kind", kind},
		member{"supports_progress", isMCP || v.Progress}, // what a server reports is passed on
		member{"supports_cancel", v.Facts["interrupt_behavior"].Value != "block"},
		member{"supports_partial_results", v.Partial},
		member{"supports_background", tasks == "optional" || tasks == "required"},
		member{"supports_artifacts", v.Artifacts}, member{"timeout_ms", given(v.TimeoutMS)},
		member{"external_mappings", v.mappings()})
}

func (v *Version) permissionProfile() json.RawMessage {
	scope := "none_shown"
	if v.is("network") {
		scope = "named_by_arguments"
		named := slices.ContainsFunc(v.Targets, func(f TargetField) bool { return f.Kind == "url" || f.Kind == "host" })
		if !named || v.is("command") {
			scope = "open"
		}
	}
	return object(ObjectPermissionProfile, everyPermissionProfile,
		member{"permission_profile_id", v.ref("permission")}, member{"risk_level", v.Facts["risk_level"].Value},
		member{"access_kinds", list(v.Facts["access_kinds"].Values)},
		member{"write_effects", list(v.Facts["write_effects"].Values)}, member{"network_scope", scope},
		member{"credential_refs", list(v.Credentials)}, member{"fact_origins", v.origins()})
}

func (v *Version) ref(kind string) string { return string(v.Tool) + "/" + kind }

func (v *Version) namespace() string {
	if source := v.Tool.Source(); source != SourceMCP {
		return source
	}
	return SourceMCP + "." + v.Server
}

// mappings refer to the tool's own names on its server.
func (v *Version) mappings() []ExternalMapping {
	m := ExternalMapping{Source: v.Tool.Source(), Role: "executor", ToolName: v.Native}
	if m.Source == SourceMCP {
		m.Role, m.ServerID, m.Method = "upstream", v.Server, "tools/call"
		if v.Method {
			m.ToolName, m.Method = "", v.Native
		}
	}
	return []ExternalMapping{m}
}

// title follows MCP's order: title, then annotations.title.
func (v *Version) title() string {
	return cmp.Or(rawjson.Text(v.Declaration, "title"), rawjson.Text(v.schema("annotations"), "title"))
}

func (v *Version) searchHint() string {
	return cmp.Or(rawjson.Text(rawjson.GetObject(v.Declaration, "_meta"), "anthropic/searchHint"), v.title(), v.Native)
}

// schema is a member of the declaration that the standard wants to be an object; nil for any other one.
func (v *Version) schema(name string) json.RawMessage {
	value, _ := rawjson.Get(v.Declaration, name)
	if !rawjson.IsObject(value) || !rawjson.Valid(value) {
		return nil
	}
	return value
}

func (v *Version) runtime() json.RawMessage {
	if v.Runtime != nil {
		return v.Runtime
	}
	return v.schema("inputSchema")
}

// isStrict says whether arguments that the schema does not name are refused.
func (v *Version) isStrict() bool {
	additional, _ := rawjson.Get(v.schema("inputSchema"), "additionalProperties")
	return v.Validate == ValidateReject && string(additional) == "false"
}

func (v *Version) is(fact string) bool { return v.Facts[fact].Value == true }

// isSafe reports whether calls run beside each other. The hub's own tools that call others do: each
// of their calls has a turn of its own.
func (v *Version) isSafe() bool { return v.Facts["concurrency"].Value == "safe" || v.Hub }

func (v *Version) capabilities() []string {
	refs := []string{}
	for _, kind := range v.Facts["access_kinds"].Values {
		refs = append(refs, "access:"+kind)
	}
	return refs
}

func (v *Version) origins() map[string]FactOrigin {
	all := make(map[string]FactOrigin, len(v.Facts))
	for name, f := range v.Facts {
		all[name] = f.FactOrigin
	}
	return all
}

// given returns value, and nil for the zero value.
func given[T comparable](value T) any {
	if value == *new(T) {
		return nil
	}
	return value
}

// list returns l, and an empty list for nil: a record says that there is none.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}
