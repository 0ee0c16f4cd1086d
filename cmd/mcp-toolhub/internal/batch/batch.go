// Package batch is the hub's tool tool_batch: several calls in one request. Each is an invocation
// of its own, which passes the whole pipeline; the batch decides in which order they run, fills
// arguments from earlier results, and puts the results together.
package batch

import (
	"bytes"
	"context"
	_ "embed"
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

//go:embed schema.json
var schema []byte

// Options are what the tool works with. All are needed.
type Options struct {
	// Invoke runs a call through the pipeline.
	Invoke func(context.Context, *invoke.Call) invoke.Outcome

	// Reads reports whether a tool is known to read only.
	Reads func(*tool.Tool) bool
}

// HubTool returns the tool.
func HubTool(o Options) *tool.HubTool {
	var compact bytes.Buffer // a declaration travels on one line of stdio
	_ = json.Compact(&compact, schema)
	return &tool.HubTool{Name: name, Title: "Call several tools", Description: description, InputSchema: compact.String(),
		Annotations: `{"openWorldHint":true}`, Listed: func(defers, _ bool) bool { return defers }, Batches: true,
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
