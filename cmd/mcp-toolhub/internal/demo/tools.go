package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// readOnly annotates tools that change nothing and reach nothing.
func readOnly() *mcp.ToolAnnotations {
	no := false
	return &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no}
}

// text is a result of one text block.
func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

type (
	addInput struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}
	addOutput struct {
		Sum float64 `json:"sum" jsonschema:"a plus b"`
	}
	countdownInput struct {
		Steps   int `json:"steps"`
		DelayMS int `json:"delay_ms"`
	}
	countdownOutput struct {
		Steps int `json:"steps" jsonschema:"steps that were counted"`
	}
	failInput struct {
		Message string `json:"message"`
	}
	logInput struct {
		Level   string `json:"level"`
		Message string `json:"message"`
	}
	bigInput struct {
		Bytes int `json:"bytes"`
	}
	none struct{}
)

func addCalculation(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{
		Name: "add", Title: "Add two numbers", Annotations: readOnly(),
		Description: "Returns a + b as structured output. Shows inputSchema, outputSchema and structuredContent.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number","description":"First number"},` +
			`"b":{"type":"number","description":"Second number"}},"required":["a","b"],"additionalProperties":false}`),
	}, func(_ context.Context, _ *mcp.CallToolRequest, in addInput) (*mcp.CallToolResult, addOutput, error) {
		return nil, addOutput{Sum: in.A + in.B}, nil
	})

	mcp.AddTool(s, &mcp.Tool{
		Name: "countdown", Title: "Count down", Annotations: readOnly(),
		Description: "Counts steps down with a pause between them, and reports progress for each where the caller " +
			"sent a progress token. " +
			"Stops when it is canceled.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"steps":{"type":"integer","minimum":1,"maximum":1000,"default":5,"description":"How many steps"},` +
			`"delay_ms":{"type":"integer","minimum":0,"maximum":60000,"default":200,"description":"Pause between steps in ` +
			`milliseconds"}},` +
			`"additionalProperties":false}`),
	}, countdown)

	mcp.AddTool(s, &mcp.Tool{
		Name: "fail", Title: "Fail", Annotations: readOnly(),
		Description: "Always returns a tool error: a result with isError, which is no JSON-RPC error.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"message":{"type":"string","maxLength":1000,` +
			`"default":"this tool always fails","description":"Text of the error"}},"additionalProperties":false}`),
	}, func(_ context.Context, _ *mcp.CallToolRequest, in failInput) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New(in.Message)
	})
}

func countdown(ctx context.Context, req *mcp.CallToolRequest, in countdownInput) (*mcp.CallToolResult, countdownOutput,
	error) {
	token := req.Params.GetProgressToken()
	for step := 1; step <= in.Steps; step++ {
		if step > 1 {
			select {
			case <-time.After(time.Duration(in.DelayMS) * time.Millisecond):
			case <-ctx.Done():
			}
		}
		if err := ctx.Err(); err != nil {
			return nil, countdownOutput{}, fmt.Errorf("stopped after %d of %d steps: %w", step-1, in.Steps, err)
		}
		if token == nil {
			continue
		}
		err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(step), Total: float64(in.Steps),
			Message: fmt.Sprintf("%d left", in.Steps-step),
		})
		if err != nil {
			return nil, countdownOutput{}, fmt.Errorf("report progress: %w", err)
		}
	}
	return text(fmt.Sprintf("counted %d steps", in.Steps)), countdownOutput{Steps: in.Steps}, nil
}

func addText(s *mcp.Server) {
	s.AddTool(&mcp.Tool{
		Name: "echo", Title: "Echo", Annotations: readOnly(),
		Description: "Returns the arguments, byte for byte in the text, and the request's _meta as this server " +
			"decoded it, where the order of keys " +
			"and the digits of very large numbers are lost.",
		InputSchema: json.RawMessage(`{"type":"object","description":"Anything"}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"arguments":{"type":"object"},"_meta":{"type":"object"}},` +
			`"required":["arguments"],"additionalProperties":false}`),
	}, echo)

	mcp.AddTool(s, &mcp.Tool{
		Name: "big", Title: "Big result", Annotations: readOnly(),
		Description: "Returns one text block of exactly so many bytes, lines of 63 characters that begin with " +
			"their offset. " +
			"Shows how a client deals with size.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{` +
			`"bytes":{"type":"integer","minimum":0,"maximum":8388608,` +
			`"description":"Size of the text, at most 8 MiB"}},"required":["bytes"],"additionalProperties":false}`),
	}, func(_ context.Context, _ *mcp.CallToolRequest, in bigInput) (*mcp.CallToolResult, any, error) {
		return text(big(in.Bytes)), nil, nil
	})
}

func echo(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	arguments := req.Params.Arguments
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = json.RawMessage("{}")
	}
	if bytes.TrimSpace(arguments)[0] != '{' {
		r := text("the arguments are not a JSON object: send one")
		r.IsError = true
		return r, nil
	}
	out := struct {
		Arguments json.RawMessage `json:"arguments"`
		Meta      map[string]any  `json:"_meta,omitempty"`
	}{arguments, req.Params.GetMeta()}
	r := text(string(arguments))
	r.StructuredContent = out
	return r, nil
}

// big returns n bytes of lines that tell where they are.
func big(n int) string {
	var b strings.Builder
	b.Grow(n + 64)
	for b.Len() < n {
		fmt.Fprintf(&b, "%08d %s\n", b.Len(), strings.Repeat("0123456789", 6)[:54])
	}
	return b.String()[:n]
}

// mostSprouts bounds the list of tools, whoever calls grow how often.
const mostSprouts = 10

type gardenOutput struct {
	Sprouts []string `json:"sprouts" jsonschema:"names of the added tools there are now"`
}

func (g *garden) addTools() {
	noArguments := json.RawMessage(`{"type":"object","additionalProperties":false}`)
	no := false
	changes := &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no}
	mcp.AddTool(g.server, &mcp.Tool{
		Name: "grow", Title: "Grow a tool", InputSchema: noArguments, Annotations: changes,
		Description: fmt.Sprintf("Adds a tool sprout_N to this server, at most %d, so that it announces a changed "+
			"list of tools.", mostSprouts),
	}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, gardenOutput, error) {
		return g.grow()
	})
	mcp.AddTool(g.server, &mcp.Tool{
		Name: "shrink", Title: "Remove a grown tool", InputSchema: noArguments, Annotations: changes,
		Description: "Removes the tool that grow added last, so that this server announces a changed list of tools.",
	}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, gardenOutput, error) {
		return g.shrink()
	})
}

func sprout(n int) string { return fmt.Sprintf("sprout_%d", n) }

func (g *garden) grow() (*mcp.CallToolResult, gardenOutput, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sprouts == mostSprouts {
		return nil, gardenOutput{}, fmt.Errorf("there are %d sprouts already: call shrink first", mostSprouts)
	}
	g.sprouts++
	name := sprout(g.sprouts)
	mcp.AddTool(g.server, &mcp.Tool{
		Name: name, Title: "Sprout", Annotations: readOnly(), Description: "Was added by grow. Returns its own name.",
		InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false}`),
	}, func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
		return text(name), nil, nil
	})
	return nil, g.list(), nil
}

func (g *garden) shrink() (*mcp.CallToolResult, gardenOutput, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sprouts == 0 {
		return nil, gardenOutput{}, errors.New("there is no sprout: call grow first")
	}
	g.server.RemoveTools(sprout(g.sprouts))
	g.sprouts--
	return nil, g.list(), nil
}

// list names the sprouts. The caller holds the lock.
func (g *garden) list() gardenOutput {
	out := gardenOutput{Sprouts: []string{}}
	for i := range g.sprouts {
		out.Sprouts = append(out.Sprouts, sprout(i+1))
	}
	return out
}
