package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// known fills in what the hub knows of a call.
func (h *hub) known(ctx context.Context, name tool.Name, r *policy.Request) error {
	own := h.hubTool(name)
	if own != nil && own.Forwards {
		return fmt.Errorf("a call through %s is decided as one of the tool that it names: write that tool's name", name)
	}
	t := h.named(r.Profile, r.Actor.Client, string(name))
	if t == nil && own != nil {
		t = h.ownTool(name, r.Profile, r.Actor.Client)
	}
	if t == nil {
		hint := "write a name that mcp-toolhub tools list prints"
		if surface, err := h.Surface(r.Profile, localActor()); err == nil {
			hint = toolMeant(string(name), surface, hint)
		}
		return fmt.Errorf("no server offers the tool %q: %s", string(name), hint)
	}
	if r.Input == nil {
		r.Input = json.RawMessage(`{}`)
	}
	full, err := h.gate.Load().Request(ctx, gate.Call{Invocation: r.Invocation, Tool: t, Input: r.Input, Meta: r.Meta, Actor: r.Actor, Profile: r.Profile})
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

// named returns the tool that goes by the name in the profile, whether or not the policy shows it; nil where there is none.
func (h *hub) named(profile string, client tool.Client, name string) *tool.Tool {
	if t := h.present(tool.Name(name)); t != nil {
		return t
	}
	full, err := h.names.Load().Surface(profile, client)
	if err != nil {
		return nil
	}
	if l, ok := full.Resolve(name); ok {
		return l.Tool
	}
	return nil
}

// ownTool returns a tool of the hub's own as a profile shows it, also if the policy hides it; nil if there is no such profile.
func (h *hub) ownTool(name tool.Name, profile string, client tool.Client) *tool.Tool {
	full, err := h.names.Load().Surface(profile, client)
	if err != nil {
		return nil
	}
	if l, ok := h.loader.Surface(full, client).Resolve(string(name)); ok {
		return l.Tool
	}
	return nil
}
