package events

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// Statuses of a tool call in the Agent Client Protocol.
const (
	acpPending    = "pending"
	acpInProgress = "in_progress"
	acpCompleted  = "completed"
	acpFailed     = "failed"
)

// acp writes messages of the Agent Client Protocol, version 1. An agent sends them on to its
// client, with its own session id. It keeps what is known of tools, and of calls until their
// results.
type acp struct {
	tools map[tool.Name]*knownTool
	calls map[tool.InvocationID]*acpCall
}

// acpCall is a call that has no result yet.
type acpCall struct {
	Head      toolCall // without content
	tool      tool.Name
	session   string
	announced bool
	ends      bool            // the event of its end is wanted, and so its result
	said      string          // why it is asked about, or the last report of its progress
	waits     bool            // as the last report says
	choices   []policy.Choice // that a person has
}

// toolCall is the protocol's ToolCall, and its ToolCallUpdate.
type toolCall struct {
	Update    string            `json:"sessionUpdate,omitempty"`
	ID        tool.InvocationID `json:"toolCallId"`
	Title     string            `json:"title,omitempty"`
	Kind      string            `json:"kind,omitempty"`
	Status    string            `json:"status,omitempty"`
	Content   []json.RawMessage `json:"content,omitempty"`
	Locations []acpLocation     `json:"locations,omitempty"`
	RawInput  json.RawMessage   `json:"rawInput,omitempty"`
	RawOutput json.RawMessage   `json:"rawOutput,omitempty"`
}

// acpLocation is the protocol's ToolCallLocation.
type acpLocation struct {
	Path string `json:"path"` // absolute
	Line *int   `json:"line,omitempty"`
}

// acpMessage is a notification session/update, or a request session/request_permission, whose id is
// that of the approval.
type acpMessage struct {
	JSONRPC string    `json:"jsonrpc"`
	ID      string    `json:"id,omitempty"`
	Method  string    `json:"method"`
	Params  acpParams `json:"params"`
}

type acpParams struct {
	Session  string            `json:"sessionId"`
	Update   *toolCall         `json:"update,omitempty"`
	ToolCall *toolCall         `json:"toolCall,omitempty"`
	Options  []acpOption       `json:"options,omitempty"`
	Meta     map[string]string `json:"_meta"`
}

type acpOption struct {
	ID   policy.Choice `json:"optionId"`
	Name string        `json:"name"`
	Kind string        `json:"kind"`
}

// option is a person's choice as the protocol shows it. It has no kind of its own for a session.
func option(c policy.Choice) acpOption {
	switch c {
	case policy.AllowOnce:
		return acpOption{c, "Allow once", "allow_once"}
	case policy.AllowSession:
		return acpOption{c, "Allow for this session", "allow_always"}
	case policy.AllowAlways:
		return acpOption{c, "Always allow", "allow_always"}
	case policy.AllowOffered:
		return acpOption{c, "Always allow what is offered", "allow_always"}
	case policy.DenyOffered:
		return acpOption{c, "Always reject what is offered", "reject_always"}
	case policy.DenyAlways:
		return acpOption{c, "Always reject", "reject_always"}
	}
	return acpOption{policy.DenyOnce, "Reject", "reject_once"}
}

func newACP() *acp {
	return &acp{tools: make(map[tool.Name]*knownTool), calls: make(map[tool.InvocationID]*acpCall)}
}

// message is the writer of the format ACP.
func (a *acp) message(e persist.Entry, ev *tool.Event, wanted bool) (json.RawMessage, error) {
	if ev != nil {
		return a.event(e, ev, wanted)
	}
	switch objectOf(e.Object) {
	case tool.ObjectDeclaration, tool.ObjectPermissionProfile:
		a.learn(e.Object)
	case tool.ObjectPermissionDecision:
		a.decided(e.Object)
	case tool.ObjectProgress:
		var p tool.ProgressRecord
		if json.Unmarshal(e.Object, &p) == nil && p.Message != "" {
			if c := a.calls[p.InvocationID]; c != nil {
				c.said, c.waits = p.Message, p.Status != tool.StatusRunning
			}
		}
	case tool.ObjectResult, tool.ObjectTaskResult:
		var r tool.Result
		if json.Unmarshal(e.Object, &r) != nil || a.calls[r.InvocationID] == nil {
			return nil, nil
		}
		c := a.calls[r.InvocationID]
		if !isTask(&r) {
			delete(a.calls, r.InvocationID)
		}
		if wanted || c.ends {
			return c.update(a.resultOf(&r, c, directoryOf(e.Line)))
		}
	}
	return nil, nil
}

func (a *acp) event(e persist.Entry, ev *tool.Event, wanted bool) (json.RawMessage, error) {
	if ev.InvocationID == "" {
		return nil, nil
	}
	c := a.calls[ev.InvocationID]
	if ev.EventType == tool.EventInvocationPlanned {
		c = a.begin(e.Line, ev.InvocationID)
		a.calls[ev.InvocationID] = c
	}
	if c == nil || !wanted {
		return nil, nil // of the one the journal does not have the beginning
	}
	switch ev.EventType {
	case tool.EventInvocationPlanned:
		return c.update(toolCall{Status: acpPending})
	case tool.EventInvocationStarted:
		return c.update(toolCall{Status: acpInProgress})
	case tool.EventInvocationProgress:
		u := toolCall{Status: acpInProgress}
		if c.waits {
			u.Status = acpPending
		}
		if c.said != "" {
			u.Content = []json.RawMessage{textContent(c.said)}
		}
		return c.update(u)
	case tool.EventPermissionRequested:
		if approval, _ := ev.Data["approval_id"].(string); approval != "" { // none where nobody could be asked
			return c.ask(approval)
		}
	case tool.EventInvocationSucceeded, tool.EventInvocationFailed, tool.EventInvocationCanceled,
		tool.EventInvocationTimedOut,
		tool.EventInvocationYielded:
		c.ends = true // what to tell of it stands in the result, which comes with another event
	}
	return nil, nil
}

// begin is a call whose first line is in the journal.
func (a *acp) begin(line json.RawMessage, id tool.InvocationID) *acpCall {
	var known struct {
		Tool     tool.Name              `json:"tool_id"`
		Actor    string                 `json:"actor_ref"`
		Input    json.RawMessage        `json:"model_input"`
		Mappings []tool.ExternalMapping `json:"external_mappings"`
	}
	_ = json.Unmarshal(line, &known) // the derivation has read it
	t := a.tools[known.Tool]
	c := &acpCall{tool: known.Tool, session: known.Actor,
		Head: toolCall{ID: id, Title: string(known.Tool), Kind: kindOf(known.Tool, t), RawInput: known.Input}}
	if known.Tool == tool.UnknownTool && len(known.Mappings) > 0 {
		c.Head.Title = cmp.Or(known.Mappings[0].ToolName, c.Head.Title) // which the caller asked for
	}
	if t != nil {
		if t.Title != "" {
			c.Head.Title = t.Title
		}
		c.Head.Locations = t.locations(known.Input, "")
		if first := t.first(known.Input); first != "" {
			c.Head.Title += ": " + first
		}
	}
	return c
}

// update writes a session/update. The first of a call in the stream has all that is known of it.
func (c *acpCall) update(u toolCall) (json.RawMessage, error) {
	u.ID, u.Update = c.Head.ID, "tool_call_update"
	if !c.announced {
		c.announced, u.Update = true, "tool_call"
		u.Title, u.Kind, u.RawInput = c.Head.Title, c.Head.Kind, c.Head.RawInput
		if u.Locations == nil {
			u.Locations = c.Head.Locations
		}
	}
	p := acpParams{Session: c.session, Update: &u, Meta: c.meta()}
	return rawjson.Encode(acpMessage{JSONRPC: "2.0", Method: "session/update", Params: p})
}

// meta says which call it is: the session id is no session of the protocol's, and the agent puts its own there.
func (c *acpCall) meta() map[string]string {
	return map[string]string{"toolhub/invocation": string(c.Head.ID)}
}

// ask writes a session/request_permission.
func (c *acpCall) ask(approval string) (json.RawMessage, error) {
	call := c.Head
	call.Status = acpPending
	if c.said != "" {
		call.Content = []json.RawMessage{textContent(c.said)}
	}
	p := acpParams{Session: c.session, ToolCall: &call, Meta: c.meta()}
	for _, choice := range c.choices {
		p.Options = append(p.Options, option(choice))
	}
	return rawjson.Encode(acpMessage{JSONRPC: "2.0", ID: approval, Method: "session/request_permission", Params: p})
}

// decided takes in a decision that asks: why, and what a person may answer.
func (a *acp) decided(object json.RawMessage) {
	var d struct {
		Invocation tool.InvocationID `json:"invocation_id"`
		Behavior   tool.Behavior     `json:"behavior"`
		Reason     struct {
			Message string `json:"message"`
		} `json:"reason"`
		Suggested []struct {
			Choice policy.Choice `json:"choice"`
		} `json:"suggested_updates"`
	}
	if json.Unmarshal(object, &d) != nil || d.Behavior != tool.Ask || a.calls[d.Invocation] == nil {
		return
	}
	given := map[policy.Choice]bool{policy.AllowOnce: true, policy.DenyOnce: true}
	for _, s := range d.Suggested {
		given[s.Choice] = true
	}
	c := a.calls[d.Invocation]
	c.said, c.choices = d.Reason.Message, nil
	for _, choice := range policy.Choices() {
		if given[choice] {
			c.choices = append(c.choices, choice)
		}
	}
}

// isTask reports whether the call has become a task, whose result comes later.
func isTask(r *tool.Result) bool { return r.Status == tool.StatusYielded && r.Error == nil }

// directoryOf is the directory where relative paths of a call start, as its line in the journal has
// it; "" where that is not known.
func directoryOf(line json.RawMessage) string {
	var known struct {
		Mappings []tool.ExternalMapping `json:"external_mappings"`
	}
	_ = json.Unmarshal(line, &known)
	for _, m := range known.Mappings {
		if m.CWD != "" {
			return m.CWD
		}
	}
	return ""
}

// resultOf is the last update of a call, or of one that has become a task, whose relative paths
// start in dir. Everything that the tool has not done counts as failed.
func (a *acp) resultOf(r *tool.Result, c *acpCall, dir string) toolCall {
	u := toolCall{Status: acpFailed, Content: contentOf(r.Content)}
	switch {
	case r.Status == tool.StatusSucceeded:
		u.Status = acpCompleted
	case isTask(r):
		u.Status = acpInProgress
	}
	output := map[string]any{}
	if len(r.Content) > 0 {
		output["content"] = r.Content
	}
	if len(r.StructuredContent) > 0 {
		output["structuredContent"] = r.StructuredContent
	}
	if r.ContentRef != "" {
		output["contentRef"] = r.ContentRef
		u.Content = []json.RawMessage{textContent("The result is too large for the journal: " + r.ContentRef)}
	}
	if len(u.Content) == 0 && r.Error != nil {
		u.Content = []json.RawMessage{textContent(r.Error.Message)}
	}
	if r.Error != nil {
		output["error"] = map[string]any{"error_class": r.Error.ErrorClass, "error_code": r.Error.ErrorCode,
			"message": r.Error.Message}
	}
	u.RawOutput, _ = rawjson.Encode(output) // raw members of a record are JSON
	if c.tool.Source() == codeToolset {
		u.worked(r.StructuredContent, dir)
	}
	if t := a.tools[c.tool]; t != nil && u.Locations == nil && dir != "" {
		u.Locations = t.locations(c.Head.RawInput, dir)
	}
	return u
}

// codeToolset is the first word of the names of the hub's own tools for files.
const codeToolset = "code"

// worked shows what a tool of the hub has written or found. What it has written has diffs and locations as the protocol
// has them; what it has found are matches, whose relative paths start in dir. What other tools say there is theirs.
func (u *toolCall) worked(structured json.RawMessage, dir string) {
	var said struct {
		Content   []json.RawMessage `json:"content"`
		Locations []acpLocation     `json:"locations"`
		Matches   []acpLocation     `json:"matches"`
	}
	if json.Unmarshal(structured, &said) != nil {
		return
	}
	var diffs []json.RawMessage
	for _, block := range said.Content {
		path, _ := rawjson.GetString(block, "path")
		if kind, _ := rawjson.GetString(block, "type"); kind == "diff" && filepath.IsAbs(path) {
			diffs = append(diffs, block)
		}
	}
	if len(diffs) > 0 {
		u.Content = diffs
	}
	for _, l := range append(said.Locations, said.Matches...) {
		if l.Path = absolute(l.Path, dir); l.Path != "" {
			u.Locations = append(u.Locations, l)
		}
	}
}

// contentOf turns blocks of MCP into the protocol's, which are the same. One that the protocol does
// not know is shown as text.
func contentOf(blocks json.RawMessage) (all []json.RawMessage) {
	_ = rawjson.Elements(blocks, func(block []byte) bool {
		if isBlock(block) {
			all = append(all, fmt.Appendf(nil, `{"type":"content","content":%s}`, block))
		} else {
			all = append(all, textContent(string(block)))
		}
		return true
	})
	return all
}

// isBlock reports whether the protocol knows a block: its type, and the members that this needs.
func isBlock(block []byte) bool {
	kind, _ := rawjson.GetString(block, "type")
	needs := map[string][]string{"text": {"text"}, "image": {"data", "mimeType"}, "audio": {"data", "mimeType"},
		"resource_link": {"name", "uri"}, "resource": {"uri"}}[kind]
	if kind == "resource" {
		if !fits(block) {
			return false
		}
		block = rawjson.GetObject(block, "resource")
		_, text := rawjson.GetString(block, "text")
		_, blob := rawjson.GetString(block, "blob")
		if text == blob {
			return false
		}
	}
	for _, name := range needs {
		if _, ok := rawjson.GetString(block, name); !ok {
			return false
		}
	}
	return len(needs) > 0 && fits(block)
}

// fits reports whether the members of a block or resource that may be missing are what the protocol
// wants. A server writes what it likes.
func fits(block []byte) bool {
	var m struct {
		URI, MIMEType, Title, Description *string
		Size                              *int64
		Meta                              map[string]any `json:"_meta"`
		Annotations                       struct {
			Audience     []string
			LastModified *string
			Priority     *float64
			Meta         map[string]any `json:"_meta"`
		}
	}
	unknown := func(role string) bool { return role != "user" && role != "assistant" }
	return json.Unmarshal(block, &m) == nil && !slices.ContainsFunc(m.Annotations.Audience, unknown)
}

func textContent(text string) json.RawMessage {
	return fmt.Appendf(nil, `{"type":"content","content":{"type":"text","text":%s}}`,
		rawjson.Quote(strings.ToValidUTF8(text, "\ufffd")))
}
