package persist

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

var (
	arguments = json.RawMessage(`{"owner":"octocat","repo":"hello-world","query":"is:open label:\"good first issue\"",` +
		`"page":1,"perPage":30}`)
	content = json.RawMessage(`[{"type":"text","text":"` +
		strings.Repeat(`{\"number\":1347,\"title\":\"Found a bug\"} `, 12) + `"}]`)
)

// OrdinaryCall is the record of an ordinary call that is about to run, and its end.
func OrdinaryCall() (*Call, *CallEnd) {
	at := time.Now()
	c := &Call{}
	c.Begin(CallHead{Invocation: tool.NewInvocationID(), Tool: "mcp.github.search_issues", Surface: "srf_1", Actor: "actor:stdio/local",
		Created: at},
		tool.ExternalMapping{Source: "mcp", Role: "client", ProtocolVersion: "2025-11-25", Method: "tools/call", ToolName: "search_issues",
			JSONRPCRequestID: "7"})
	c.Input.Model = arguments
	c.Move(tool.StatusSelected, at)
	c.Move(tool.StatusArgumentsReady, at)
	c.Decide(&tool.PermissionDecision{Behavior: tool.Allow, Mode: "default", Source: "user", RuleRefs: []string{"user:100"},
		PolicyRefs: []string{"policy:sha256:6a6fedd13d31cf50a3d07bdeec6d1d7263721f74941adeb426ee77cfd2579d83"},
		Reason:     map[string]any{"type": "rule", "message": "a rule allows it"}}, at)
	c.Move(tool.StatusQueued, at)
	c.Move(tool.StatusRunning, at)
	return c, &CallEnd{At: at, CallResult: CallResult{Content: content}}
}

// FinishCall adds what happens after it has run.
func FinishCall(c *Call) {
	c.Answered(tool.ExternalMapping{Source: "mcp", Role: "upstream", ServerID: "github", ToolName: "search_issues"}, c.Created)
	c.Move(tool.StatusSucceeded, c.Created)
}

// CallRecords are the records that one ordinary call leaves.
func CallRecords() []tool.Record {
	at := time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.UTC)
	id := tool.NewInvocationID()
	const name = tool.Name("mcp.github.search_issues")
	happened := func(kind tool.EventType, data map[string]any) tool.Event {
		return tool.Event{Head: tool.HeadOf(tool.ObjectEvent), EventID: tool.NewEventID(), EventType: kind, Time: at,
			Source: tool.EventSource, Subject: string(id), InvocationID: id, ToolID: name, Data: data}
	}
	begun := tool.Invocation{Head: tool.HeadOf(tool.ObjectInvocation), InvocationID: id, ToolID: name, SurfaceID: "srf_1",
		NativeCallID: `"call-7"`, Status: tool.StatusRunning, ModelInput: arguments, ActorRef: "actor:stdio/local",
		CreatedAt: at, StartedAt: &at,
		ExternalMappings: []tool.ExternalMapping{
			{Source: "mcp", Role: "client", ProtocolVersion: "2025-11-25", Method: "tools/call",
				ToolName: "search_issues", JSONRPCRequestID: "7"},
			{Source: "mcp", Role: "upstream", ServerID: "github", ToolName: "search_issues"}},
		StatusTransitions: []tool.StatusTransition{{Status: tool.StatusPlanned, At: at}, {Status: tool.StatusSelected, At: at},
			{Status: tool.StatusArgumentsReady, At: at}, {Status: tool.StatusApproved, At: at}, {Status: tool.StatusRunning, At: at}}}
	ended := begun
	ended.Status, ended.EndedAt = tool.StatusSucceeded, &at
	return []tool.Record{
		happened(tool.EventInvocationPlanned, nil),
		happened(tool.EventInvocationSelected, nil),
		happened(tool.EventInvocationArgumentsReady, nil),
		tool.PermissionDecisionRecord{Head: tool.HeadOf(tool.ObjectPermissionDecision), DecisionID: "dec_1", InvocationID: id,
			PermissionDecision: tool.PermissionDecision{Behavior: tool.Allow, Mode: "default", Source: "default",
				Reason: map[string]any{"type": "default", "message": "no rule applies: every call is allowed"}}, DecidedAt: at},
		happened(tool.EventPermissionDecided, map[string]any{"behavior": "allow"}),
		begun,
		happened(tool.EventInvocationStarted, nil),
		ended,
		happened(tool.EventInvocationSucceeded, map[string]any{"elapsed_ms": 12, "is_error": false}),
		tool.Result{Head: tool.HeadOf(tool.ObjectResult), ResultID: "res_1", InvocationID: id,
			Status: tool.StatusSucceeded, Content: content, CreatedAt: at},
	}
}
