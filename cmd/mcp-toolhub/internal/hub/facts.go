package hub

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// Stranger returns an unknown client on stdio. "tools list --why" and the facts show what such a client would see. The
// commands themselves see every tool, deferred or not.
func Stranger() tool.Actor { return tool.Actor{Name: "local", Door: "stdio"} }

// execution is what the config says of the calls of a tool: how long they take, and what its origin
// gets to sign in with.
func (c *Configured) execution(t *tool.Tool) (e facts.Execution) {
	settings, own := c.Settings, c.Own
	var env []string
	switch source := t.Name.Source(); {
	case t.Hub != nil:
		e.Progress = t.Hub.Batches || t.Hub.Forwards // that of its calls
		e.Partial = t.Hub.Batches                    // the results of its calls
	case source == code.Name && own.code != nil:
		e.Timeout, e.Progress = own.code.Timeout(t.Native), own.code.Reports(t.Native)
		e.Artifacts = t.Name == runCommand
		if own.code.RunsCommands() && t.Name == runCommand {
			env = own.code.Env()
		}
	case source == declarative.Name && own.declared != nil:
		e.Timeout, e.Progress = own.declared.Timeout(t.Native), true
		e.Artifacts = true
		env = own.declared.Env()[t.Name]
	case source == tool.SourceMCP:
		for _, sc := range settings.Upstream.Servers {
			if sc.ID == t.Server {
				e.Timeout = sc.CallTimeout()
			}
		}
		e.Credentials = settings.Credentials[t.Server]
	}
	e.Artifacts = e.Artifacts || settings.Results.TakesIn(t.Name)
	for _, name := range env {
		if secret.Variable(name) {
			e.Credentials = append(e.Credentials, "env:"+name)
		}
	}
	return e
}

// Known fills in what the hub knows of a call.
func Known(ctx context.Context, h *Hub, name tool.Name, r *policy.Request) error {
	own := h.HubTool(name)
	if own != nil && own.Forwards {
		return fmt.Errorf("a call through %s is decided as one of the tool that it names: write that tool's name", name)
	}
	t := h.Surfaces.named(r.Profile, r.Actor.Client, string(name))
	if t == nil && own != nil {
		t = h.Surfaces.ownTool(name, r.Profile, r.Actor.Client)
	}
	if t == nil {
		hint := "write a name that mcp-toolhub tools list prints"
		if surface, err := h.Surfaces.Surface(r.Profile, LocalActor()); err == nil {
			hint = ToolMeant(string(name), surface, hint)
		}
		return fmt.Errorf("no server offers the tool %q: %s", string(name), hint)
	}
	if r.Input == nil {
		r.Input = json.RawMessage(`{}`)
	}
	full, err := h.Surfaces.Now().Gate.Request(ctx, policy.Request{Invocation: r.Invocation, Tool: t, Input: r.Input,
		Meta: r.Meta, Actor: r.Actor, Profile: r.Profile})
	if err != nil {
		return err
	}
	full.Now = r.Now
	if r.CWD != "" {
		full.CWD = r.CWD
	}
	*r = full
	return nil
}

// Explained says what happens to a call, and why.
func Explained(ctx context.Context, h *Hub, name tool.Name, r policy.Request) (x policy.Explanation, err error) {
	if err := Known(ctx, h, name, &r); err != nil {
		return x, err
	}
	for i := range r.Targets[:min(len(r.Targets), gate.MaxTwinLookups)] {
		r.Targets[i].Twins()
	}
	x = h.Surfaces.Now().Gate.Engine.Explain(ctx, r)
	surface, err := h.Surfaces.Surface(r.Profile, r.Actor)
	if err == nil {
		x.Deferred, x.FoundWith = surface.IsDeferred(r.Tool.Name), string(deferred.SearchName)
	}
	return x, err
}
