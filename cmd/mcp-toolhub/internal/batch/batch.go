// Package batch is the hub's tool tool_batch: several calls in one request. Each is an invocation
// of its own, which passes the whole pipeline; the batch decides in which order they run, fills
// arguments from earlier results, and puts the results together.
package batch

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// name is that of the tool.
const name tool.Name = "tool_batch"

const description = "Makes several tool calls in one request and returns all their results, in the order of the " +
	"calls. Each call is " +
	"checked and permitted on its own. A call can take arguments from the structured result of an earlier one " +
	"(arguments_from), so a " +
	"chain needs one request."

// The bounds of a batch. schema says the first two to models.
const (
	maxCalls        = 50
	defaultParallel = 8
	maxArguments    = 4 << 20 // bytes of the arguments of all calls, those filled in among them
	maxResults      = 8 << 20 // bytes of the results of all calls
)

const schema = `{"type":"object","properties":{` +
	`"calls":{"type":"array","minItems":1,"maxItems":50,"items":{"type":"object","properties":{` +
	`"id":{"type":"string","minLength":1,"maxLength":64,"description":"Your name for the call: another one for each."},` +
	`"name":{"type":"string","minLength":1,"description":"The tool to call."},` +
	`"arguments":{"type":"object","description":"The tool's own arguments."},` +
	`"selection_ref":{"type":"string","description":"As tool_search gave it."},` +
	`"depends_on":{"type":"array","maxItems":50,"items":{"type":"string"},"description":"ids of earlier calls that must end first."},` +
	`"arguments_from":{"type":"object","description":"Fills arguments from structured results of earlier calls, by JSON pointer: ` +
	`{\"path\":{\"call\":\"a\",\"pointer\":\"/files/0\"}}.","additionalProperties":{"type":"object","properties":{` +
	`"call":{"type":"string"},"pointer":{"type":"string"}},"required":["call"],"additionalProperties":false}}},` +
	`"required":["id","name"],"additionalProperties":false}},` +
	`"sibling_failure_policy":{"type":"string","enum":["ignore","cancel_siblings","cancel_dependent"],"description":` +
	`"When a call fails. cancel_dependent (default): calls that depend on it do not run; cancel_siblings: no other call goes on; ` +
	`ignore: the others run."},` +
	`"ordering_policy":{"type":"string","enum":["preserve_terminal_order","allow_unordered","serial"],"description":` +
	`"preserve_terminal_order (default): calls that only read run together, one that may write runs alone and in its place; serial: one ` +
	`after the other; allow_unordered: all together. After a failed write, later calls do not run, but for allow_unordered."},` +
	`"max_parallel":{"type":"integer","minimum":1,"maximum":50,"description":"Calls that run at a time; default 8."}},` +
	`"required":["calls"],"additionalProperties":false}`

// Options are what the tool works with. All are needed.
type Options struct {
	// Invoke runs a call through the pipeline.
	Invoke func(context.Context, *invoke.Call) invoke.Outcome

	// Reads reports whether a tool is known to read only.
	Reads func(*tool.Tool) bool

	// Listed is that of tool.HubTool.
	Listed func(defers, cuts bool) bool
}

// HubTool returns the tool.
func HubTool(o Options) *tool.HubTool {
	return &tool.HubTool{Name: name, Title: "Call several tools", Description: description, InputSchema: schema,
		Annotations: `{"openWorldHint":true}`, Listed: o.Listed, Batches: true,
		Run: func(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
			reply, err := o.run(ctx, e)
			reply.Mapping = tool.ExternalMapping{Source: tool.OwnServer, ToolName: string(name)}
			return reply, err
		}}
}

func (o Options) run(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
	r, err := read(e)
	if err != nil {
		return tool.Reply{}, err
	}
	b := newBatch(o, e, r)
	b.run(ctx)
	if ctx.Err() != nil {
		return tool.Reply{}, &tool.Failure{Class: tool.ClassCanceled, Message: "the batch was canceled",
			Cause:          context.Cause(ctx),
			OutcomeUnknown: slices.ContainsFunc(b.members, (*member).mayHaveWritten)}
	}
	return b.reply(), nil
}

// request is the arguments of the tool.
type request struct {
	Calls       []call                `json:"calls"`
	Failure     invoke.SiblingFailure `json:"sibling_failure_policy"`
	Ordering    ordering              `json:"ordering_policy"`
	MaxParallel int                   `json:"max_parallel"`
}

// call is one of the calls.
type call struct {
	ID            string            `json:"id"`
	Name          string            `json:"name"`
	Arguments     json.RawMessage   `json:"arguments"`
	SelectionRef  string            `json:"selection_ref"`
	DependsOn     []string          `json:"depends_on"`
	ArgumentsFrom map[string]source `json:"arguments_from"`
}

// source says where the value of an argument comes from.
type source struct {
	Call    string `json:"call"`
	Pointer string `json:"pointer"`
}

// ordering is the standard's ordering_policy.
type ordering string

const (
	preserveOrder  ordering = "preserve_terminal_order"
	allowUnordered ordering = "allow_unordered"
	serial         ordering = "serial"
)
