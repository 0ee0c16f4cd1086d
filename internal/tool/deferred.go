package tool

import "time"

// MetaSelectionRef is the key of a call's _meta under which a client gives the selection_ref of a deferred tool.
const MetaSelectionRef = "toolhub/selectionRef"

// MetaBatch is the key of a call's _meta by which a client groups parallel calls: an id, or an object with id and
// sibling_failure_policy.
const MetaBatch = "toolhub/batch"

// Loaded holds the deferred tools whose declarations one client session has: it has loaded them, or
// they were listed to it before they were deferred. It is safe for concurrent use.
type Loaded interface {
	// Digest returns the SchemaDigest of the declaration that the session has of a tool; ok is false where it has none.
	Digest(name Name) (digest string, ok bool)

	// Load notes that the session gets the present declarations of tools of a surface.
	Load(s *Surface, tools ...*Tool)
}

// DeferredCall is a call of a tool that the caller's list does not show.
type DeferredCall struct {
	Invocation   InvocationID
	Surface      *Surface
	Listed       *Listed
	Actor        Actor
	SelectionRef string // as the caller gave it; "" for none
	Loaded       Loaded // nil where there is no session
}

// LoadingState is the state of a deferred tool.
type LoadingState string

// The loading states of the standard that tools of the hub have.
const (
	LoadingLoaded       LoadingState = "loaded"
	LoadingDiscoverable LoadingState = "discoverable"
	LoadingPending      LoadingState = "pending_provider"
)

// ReasonDeferred is the reason of deferred tools in records.
const ReasonDeferred = "deferred_until_discovered"

// DeferredRef is the standard's deferred_tool_ref: a tool that a search has found, or whose declaration has gone out.
type DeferredRef struct {
	Head
	ToolID           Name         `json:"tool_id"`
	Name             string       `json:"name"` // as the caller's surface shows it
	Namespace        string       `json:"namespace,omitempty"`
	SearchHint       string       `json:"search_hint,omitempty"`
	Source           string       `json:"source,omitempty"`
	SchemaVisibility string       `json:"schema_visibility"` // "loaded" where the declaration went out, or "deferred"
	LoadingState     LoadingState `json:"loading_state"`
	Reason           string       `json:"reason,omitempty"`
	Pending          string       `json:"pending_provider_or_server,omitempty"`
	SelectionRef     string       `json:"selection_ref,omitempty"`
	SchemaDigest     string       `json:"schema_digest"`
	InvocationID     InvocationID `json:"invocation_id,omitempty"` // of the call that found or loaded it
	ActorRef         string       `json:"actor_ref,omitempty"`
	CreatedAt        time.Time    `json:"created_at"`
}

// SurfaceRecord is the standard's tool_surface: the tools that one kind of caller sees from now on.
// All members that the standard names are always there.
type SurfaceRecord struct {
	Head
	SurfaceID   SurfaceID     `json:"surface_id"`
	Scope       string        `json:"scope"` // "profile:<name>", "server:<id>" for a direct view
	CreatedAt   time.Time     `json:"created_at"`
	Producer    string        `json:"producer"`
	ToolRefs    []Name        `json:"tool_refs"` // the loaded and the deferred tools, as these members name them
	LoadedTools []SurfaceTool `json:"loaded_tools"`
	// or, of very many, globs over names; reason of all: ReasonDeferred
	DeferredTools   []Name         `json:"deferred_tools"`
	BlockedTools    []SurfaceTool  `json:"blocked_tools"`
	ExcludedTools   []Exclusion    `json:"excluded_tools"`
	SelectionPolicy map[string]any `json:"selection_policy"`
	ToolChoice      string         `json:"default_tool_choice"` // always "auto": the client's model chooses
	// always empty: every client can call every tool of its surface
	Requirements []string       `json:"capability_requirements"`
	Model        map[string]any `json:"model_capabilities"` // what is known of the client
	// audience: the digest of the tools that the policy hides from the caller
	Roles         map[string]any `json:"role_constraints"`
	PolicyRefs    []string       `json:"policy_refs"`
	RuntimeRefs   []string       `json:"runtime_refs"` // the program that made it
	SurfaceReason string         `json:"surface_reason"`
	Digest        string         `json:"digest"`
}

// SurfaceTool is a tool of a surface, with the reason for its place.
type SurfaceTool struct {
	ToolID Name   `json:"tool_id"`
	Name   string `json:"name"`
	Reason string `json:"reason"` // machine-readable
}
