package gate

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// Forwarded is a request or notification of a caller that goes on to a server, other than a tool call.
type Forwarded struct {
	Server  string
	Method  string
	Params  json.RawMessage // nil or null where there are none
	Unknown bool            // nobody knows what the method does
	Actor   tool.Actor
	Profile string
}

// Name is the name by which rules match it: that of a tool of its server with the name of the method.
func (f *Forwarded) Name() tool.Name { return tool.MCPName(f.Server, f.Method) }

// Refuse returns why f may not reach its server, nil where it may.
//
// The methods of the protocol (prompts, resources, completion, tasks) only read. They are refused where a rule denies them
// whatever their params are. An unknown method is decided as the call of a tool of which nothing is known. It is refused where
// that would be asked about, because no such request waits for a person.
func (g *Gate) Refuse(ctx context.Context, f *Forwarded) *tool.Failure {
	t := &tool.Tool{Name: f.Name(), Server: f.Server, Native: f.Method}
	if !f.Unknown {
		if by, hidden := g.engine.Hides(t, reads(t), f.Profile, f.Actor); hidden {
			return &tool.Failure{Class: tool.ClassPermissionDenied, Message: "the hub's policy does not allow this (" + by + ")"}
		}
		return nil
	}
	input := f.Params
	if !rawjson.IsObject(input) {
		input = json.RawMessage(`{}`)
	}
	d := g.engine.Decide(ctx, policy.Request{Tool: t, Input: input, Actor: f.Actor, Profile: f.Profile})
	switch d.Behavior {
	case tool.Allow, tool.Passthrough:
		return nil
	case tool.Ask:
		return &tool.Failure{Class: tool.ClassPermissionDenied, Message: fmt.Sprintf("the hub does not know what %q does, and nobody can be "+
			"asked about it: to let it pass, add the rule {match: %q, then: allow} to policy.rules", f.Method, t.Name)}
	}
	why, _ := d.Reason["message"].(string)
	return &tool.Failure{Class: tool.ClassPermissionDenied, Message: "the hub's policy does not allow this: " + why}
}

// reads returns the facts of a method that only reads by the protocol.
func reads(t *tool.Tool) *facts.Facts {
	yes := facts.Fact[bool]{Value: true, Origin: facts.Declared, Why: "the protocol says so"}
	return &facts.Facts{Tool: t.Name, Server: t.Server, ReadOnly: yes, Idempotent: yes,
		Risk: facts.Fact[string]{Value: facts.RiskLow, Origin: facts.Declared, Why: yes.Why}, Tags: []string{"mcp", "readonly"}}
}
