package hook

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// nativeInput is what a hook reads: the members of Claude Code's hooks, and toolhub.
type nativeInput struct {
	Session    string          `json:"session_id"`
	Transcript string          `json:"transcript_path"` // the hub has none
	CWD        string          `json:"cwd"`
	Mode       string          `json:"permission_mode"`
	Event      string          `json:"hook_event_name"`
	Tool       string          `json:"tool_name"`
	Input      json.RawMessage `json:"tool_input"`
	Response   json.RawMessage `json:"tool_response,omitempty"`
	Error      string          `json:"error,omitempty"`
	Interrupt  bool            `json:"is_interrupt,omitempty"` // the call was canceled
	UseID      string          `json:"tool_use_id"`
	Hub        hubFacts        `json:"toolhub"`
}

// hubFacts is what the hub alone knows of the call.
type hubFacts struct {
	Event         Event                    `json:"event"`
	Hook          string                   `json:"hook"`
	Hooks         string                   `json:"hooks"` // see MetaKey
	Invocation    tool.InvocationID        `json:"invocation_id"`
	Tool          tool.Name                `json:"tool_id"`
	Server        string                   `json:"server"`
	Native        string                   `json:"native_name"`
	Tags          []string                 `json:"tags"`
	ReadOnly      bool                     `json:"read_only"`
	Destructive   bool                     `json:"destructive"`
	Risk          string                   `json:"risk,omitempty"`
	Profile       string                   `json:"profile"`
	Actor         string                   `json:"actor"`
	Door          string                   `json:"door"`
	Client        string                   `json:"client,omitempty"`
	ClientVersion string                   `json:"client_version,omitempty"`
	CallID        string                   `json:"native_call_id,omitempty"`
	Via           string                   `json:"via,omitempty"`
	Meta          json.RawMessage          `json:"meta,omitempty"`
	Decision      *tool.PermissionDecision `json:"decision,omitempty"`
	Class         tool.ErrorClass          `json:"error_class,omitempty"`
}

// JSON is the input as hooks read it. The arguments and the result stand there byte for byte.
func (in *Input) JSON() ([]byte, error) {
	r := in.Request
	n := nativeInput{Session: r.Actor.Session, CWD: r.CWD, Mode: "default", Event: in.Event.native(),
		Tool:  ToolName(r.Tool),
		Input: r.Input, Response: in.Result, Error: in.Error, Interrupt: in.Class == tool.ClassCanceled,
		UseID: string(r.Invocation),
		Hub: hubFacts{Event: in.Event, Hook: in.hook, Hooks: in.mark(), Invocation: r.Invocation, Tool: r.Tool.Name,
			Server: r.Tool.Server, Native: r.Tool.Native,
			Profile: r.Profile, Actor: r.Actor.Name, Door: r.Actor.Door, Client: r.Actor.Client.Name,
			ClientVersion: r.Actor.Client.Version,
			CallID:        in.CallID, Via: in.Via, Meta: r.Meta, Decision: in.Decision, Class: in.Class}}
	if f := r.Facts; f != nil {
		n.Hub.Tags, n.Hub.ReadOnly, n.Hub.Destructive, n.Hub.Risk = f.Tags, f.ReadOnly.Value, f.Destructive.Value,
			f.Risk.Value
	}
	if rawjson.IsNull(n.Input) {
		n.Input = json.RawMessage(`{}`)
	}
	if !rawjson.Valid(n.Response) {
		n.Response = nil
	}
	if rawjson.IsNull(n.Hub.Meta) {
		n.Hub.Meta = nil
	}
	return rawjson.Encode(n)
}

// ToolName is the name of a tool as hooks see it: mcp__<server>__<tool>, where _ stands for all but
// letters, digits, _ and -.
func ToolName(t *tool.Tool) string { return "mcp__" + plain(t.Server) + "__" + plain(t.Native) }

func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' {
			return r
		}
		return '_'
	}, name)
}

// nativeOutput is what a hook writes, in the words of Claude Code, and toolhub.
type nativeOutput struct {
	Continue   *bool  `json:"continue"`
	StopReason string `json:"stopReason"`
	Message    string `json:"systemMessage"`
	Decision   string `json:"decision"` // block, or approve
	Reason     string `json:"reason"`
	Specific   struct {
		Decision       string          `json:"permissionDecision"`
		Reason         string          `json:"permissionDecisionReason"`
		Input          json.RawMessage `json:"updatedInput"`
		Context        string          `json:"additionalContext"`
		Output         json.RawMessage `json:"updatedMCPToolOutput"`
		OutputAnywhere json.RawMessage `json:"updatedToolOutput"`
		Request        struct {
			Behavior string          `json:"behavior"`
			Message  string          `json:"message"`
			Input    json.RawMessage `json:"updatedInput"`
		} `json:"decision"` // of PermissionRequest
	} `json:"hookSpecificOutput"`
	Hub struct {
		Progress []Progress `json:"progress"`
		Messages []string   `json:"messages"`
	} `json:"toolhub"`
}

// parse reads what a hook has written. Text that is no JSON object says nothing to the hub: it is a message for people.
func parse(e Event, text []byte) (o Output, err error) {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
	if len(text) == 0 {
		return o, nil
	}
	if text[0] != '{' {
		return Output{Messages: []string{clip(string(text))}}, nil
	}
	var n nativeOutput
	if !rawjson.Valid(text) {
		return o, errors.New("what the hook wrote begins like a JSON object and is none")
	}
	if err := json.Unmarshal(text, &n); err != nil {
		return o, fmt.Errorf("what the hook wrote is not of the format: %w", err)
	}
	o.Messages, o.Progress = n.Hub.Messages, n.Hub.Progress
	for i := range o.Progress {
		if p := o.Progress[i].Percent; p != nil && (*p < 0 || *p > 100) {
			return Output{}, fmt.Errorf("the hook reports a progress of %v percent: write 0 to 100", *p)
		}
	}
	if n.Message != "" {
		o.Messages = append(o.Messages, n.Message)
	}
	if n.Continue != nil && !*n.Continue {
		o.Stop = &Stop{cmp.Or(n.StopReason, n.Reason, "the hook says so")}
	}
	if n.Specific.Context != "" {
		o.Context = []string{n.Specific.Context}
	}
	if err := n.permission(e, &o); err != nil {
		return o, err
	}
	for _, input := range []json.RawMessage{n.Specific.Input, n.Specific.Request.Input} {
		if !rawjson.IsNull(input) {
			o.Input = input
		}
	}
	for _, output := range []json.RawMessage{n.Specific.OutputAnywhere, n.Specific.Output} {
		if !rawjson.IsNull(output) {
			o.Result = resultOf(output)
		}
	}
	return o, nil
}

// permission reads what the hook says of whether the call may go on.
func (n *nativeOutput) permission(e Event, o *Output) error {
	behavior, reason := cmp.Or(n.Specific.Decision, n.Specific.Request.Behavior),
		cmp.Or(n.Specific.Reason, n.Specific.Request.Message, n.Reason)
	switch behavior {
	case "", "defer":
	case string(tool.Allow), string(tool.Ask), string(tool.Deny):
		o.Permission = &Permission{tool.Behavior(behavior), reason}
	default:
		return fmt.Errorf("the hook decides %q: allow, ask and deny are known", behavior)
	}
	switch {
	case n.Decision == "" || o.Stop != nil:
	case n.Decision == "approve" && o.Permission == nil:
		o.Permission = &Permission{tool.Allow, n.Reason}
	case n.Decision == "block":
		block(e, o, cmp.Or(n.Reason, "the hook says so"))
	}
	return nil
}

// block is a hook's decision to block, in JSON or by exit code 2. Before the call it stops the
// call. After it the tool has run, and the reason goes to the model beside the result, as Claude
// Code has it.
func block(e Event, o *Output, reason string) {
	if e.Before() {
		o.Stop = &Stop{reason}
		return
	}
	o.Context = append(o.Context, reason)
}

// resultOf is the result object that an output stands for: an object with content itself, blocks, or a text.
func resultOf(output json.RawMessage) json.RawMessage {
	if rawjson.IsObject(output) {
		if content, ok := rawjson.Get(output, "content"); ok && content[0] == '[' {
			return output
		}
	}
	if output[0] == '[' {
		blocks := true
		_ = rawjson.Elements(output, func(e []byte) bool {
			_, typed := rawjson.GetString(e, "type")
			blocks = blocks && typed
			return blocks
		})
		if blocks {
			return fmt.Appendf(nil, `{"content":%s}`, output)
		}
	}
	text, ok := rawjson.String(output)
	if !ok {
		text = string(output)
	}
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, rawjson.Quote(text))
}

// checkOutput refuses an output that cannot be used.
func checkOutput(o *Output) error {
	if o.Input != nil {
		if !rawjson.IsObject(o.Input) || !rawjson.Valid(o.Input) {
			return errors.New("the updated input is no JSON object")
		}
		if name, twice := policy.RepeatedMember(o.Input); twice {
			return fmt.Errorf("the updated input holds %q twice", name)
		}
	}
	if o.Result != nil && (!rawjson.IsObject(o.Result) || !rawjson.Valid(o.Result)) {
		return errors.New("the updated output is no JSON object")
	}
	return nil
}

// maxText bounds a text of a hook that is no JSON, in bytes.
const maxText = 4 << 10

func clip(text string) string {
	if len(text) > maxText {
		return string(bytes.ToValidUTF8([]byte(text[:maxText]), nil)) + "…"
	}
	return string(bytes.ToValidUTF8([]byte(text), []byte("\uFFFD")))
}
