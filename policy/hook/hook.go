// Package hook runs what an operator has put beside the calls of tools: a command, an HTTP endpoint
// or a function of the hub. A hook looks at one call at one moment of it (Event), and can say
// something to the person and the model, change the input or the output, take part in the
// permission decision, or stop the call.
//
// What a hook reads and writes is the format of Claude Code's hooks, so that hooks written for MCP
// tools work as they are. The facts that only the hub knows are in one more member, toolhub.
//
// This package decides which hooks run, in which order, and for how long. What their outputs do to
// a call is left to the pipeline.
package hook

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// Event is a moment of a call at which hooks run.
type Event string

// The six events of the standard.
const (
	PreToolUse         Event = "pre_tool_use"          // before permission is looked for
	PostToolUse        Event = "post_tool_use"         // after the tool has answered without an error
	PostToolUseFailure Event = "post_tool_use_failure" // after the tool has run and failed
	PermissionRequest  Event = "permission_request"    // before a person is asked
	PermissionDecision Event = "permission_decision"   // after the decision
	ResultPersistence  Event = "result_persistence"    // before the result is written into the journal
)

// Events are all events, in the order in which a call comes to them.
func Events() []Event {
	return []Event{PreToolUse, PermissionRequest, PermissionDecision, PostToolUse, PostToolUseFailure,
		ResultPersistence}
}

// Before reports whether hooks of the event run before the tool does.
func (e Event) Before() bool {
	return e == PreToolUse || e == PermissionRequest || e == PermissionDecision
}

// native is the event in the words of Claude Code. The last two of them are the hub's own.
func (e Event) native() string {
	switch e {
	case PreToolUse:
		return "PreToolUse"
	case PostToolUse:
		return "PostToolUse"
	case PostToolUseFailure:
		return "PostToolUseFailure"
	case PermissionRequest:
		return "PermissionRequest"
	case PermissionDecision:
		return "PermissionDecision"
	}
	return "ResultPersistence"
}

// Hook is one implementation: a command, an HTTP endpoint or a function of the hub. Run is called
// concurrently. It changes nothing in the input and returns soon after ctx is done. An error means
// that the hook has failed, and says nothing of the call.
type Hook interface {
	Run(ctx context.Context, in *Input) (Output, error)
}

// Input is the call that a hook looks at. Request has the input as it is now.
type Input struct {
	Event    Event
	Request  *policy.Request
	CallID   string                   // the client's JSON-RPC id, as JSON text; "" where there is none
	Via      string                   // the hub tool that the caller used to reach the tool; "" for none
	Result   json.RawMessage          // after the call: the whole result object
	Error    string                   // of a call that failed: why
	Class    tool.ErrorClass          // of a call that failed
	Decision *tool.PermissionDecision // at the events of permission

	hook string
}

// MetaKey is the member of a call's _meta that names the hook that has made the call, after those
// that this one's call came from, with spaces between. Variable holds it for commands. A hook does
// not run for a call that it has made itself: such a call is refused.
const (
	MetaKey  = "toolhub/hooks"
	Variable = "MCP_TOOLHUB_HOOKS"
)

// origin are the hooks that the call comes from.
func (in *Input) origin() string {
	names, _ := rawjson.GetString(in.Request.Meta, MetaKey)
	return names
}

// mark is what the hook sends with calls of its own.
func (in *Input) mark() string { return strings.TrimSpace(in.origin() + " " + in.hook) }

// Output is what a hook says. The zero value says nothing.
type Output struct {
	Messages   []string        // for people: they are recorded
	Progress   []Progress      // for the client
	Input      json.RawMessage // the arguments to use instead; nil for none
	Permission *Permission
	Context    []string        // for the model: one more text block of the result each
	Stop       *Stop           // ends the call
	Result     json.RawMessage // the result object to use instead; nil for none
}

// Progress is a report of progress by a hook.
type Progress struct {
	Message string   `json:"message,omitempty"`
	Percent *float64 `json:"percent,omitempty"` // 0 to 100
}

// Permission is what a hook says of permission: allow, ask or deny.
type Permission struct {
	Behavior tool.Behavior `json:"behavior"`
	Reason   string        `json:"reason,omitempty"`
}

// Stop ends the call.
type Stop struct {
	Reason string `json:"reason"`
}

// Report is the end of one run of a hook.
type Report struct {
	Hook    string // its name
	Event   Event
	Kind    string         // command, shell, url or the name of a built-in
	Matcher map[string]any // its name, its kind and which calls it is for, as in the config: nobody writes to it
	Output  Output
	Ignored []string      // outputs that mean nothing at this event
	Err     error         // why the hook failed
	Closed  bool          // a failure of it ends the call
	Took    time.Duration // without the wait for its turn
}

// Failed reports whether the run ends the call because the hook has failed.
func (r *Report) Failed() bool { return r.Err != nil && r.Closed }
