package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// resolveTool finds the tool among those that the caller sees, by any of its names. A name that is hidden from the
// caller and one that never was get the same bytes.
func (p *Pipeline) resolveTool(_ context.Context, inv *invocation) error {
	l, ok := inv.call.Surface.Resolve(inv.call.Name)
	if !ok {
		what := "list the tools and use a name from there"
		if finder := inv.call.Surface.Finder(); finder != "" && len(inv.call.Surface.Deferred) > 0 {
			what = "find one with " + string(finder)
		}
		inv.rpcErr = &tool.RPCError{Code: tool.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q: %s", inv.call.Name, what)}
		return &tool.Failure{Class: tool.ClassUnknownTool, Message: fmt.Sprintf("no tool %q is offered here: %s", inv.call.Name, what)}
	}
	if inv.rounds > 0 {
		if l.Tool.Name != inv.listed.Tool.Name {
			return fmt.Errorf("go on with %q: the call is one of %q", l.Tool.Name, inv.listed.Tool.Name)
		}
		inv.listed = l
		return nil
	}
	inv.listed, inv.facts = l, p.opts.Gate().Facts(l.Tool)
	inv.moveTo(tool.StatusSelected)
	inv.event(tool.EventInvocationSelected, nil)
	return p.admit(inv)
}

// admit refuses a call of a deferred tool whose declaration the caller has not got.
func (p *Pipeline) admit(inv *invocation) error {
	c := &inv.call
	if p.opts.Admit == nil || !c.Surface.IsDeferred(inv.listed.Tool.Name) {
		return nil
	}
	records, err := p.opts.Admit(tool.DeferredCall{Invocation: inv.id, Surface: c.Surface, Listed: inv.listed, Actor: c.Actor,
		SelectionRef: c.SelectionRef, Loaded: c.Loaded})
	inv.pending = append(inv.pending, records...)
	return err
}

// parseSchema checks the arguments against the tool's input schema before anything has an effect.
func (p *Pipeline) parseSchema(_ context.Context, inv *invocation) error {
	args := inv.call.Arguments
	if rawjson.IsNull(args) {
		args = json.RawMessage(`{}`)
	}
	if !rawjson.IsObject(args) {
		inv.moveTo(tool.StatusSchemaParseFailed)
		inv.rpcErr = &tool.RPCError{Code: tool.CodeInvalidParams, Message: "arguments must be a JSON object"}
		return &tool.Failure{Class: tool.ClassInvalidArguments, Message: "arguments must be a JSON object"}
	}
	inv.observableInput = args
	return p.validate(inv, args)
}

// validate checks arguments against the input schema of the invocation's tool.
func (p *Pipeline) validate(inv *invocation, args json.RawMessage) error {
	t := inv.listed.Tool
	invalid, err := p.invalid(t, args)
	if invalid == nil {
		return err
	}
	inv.event(tool.EventInvocationValidationFailed, map[string]any{"problems": invalid.Problems, "mode": string(t.Validate)})
	if t.Validate == tool.ValidateWarn {
		return nil
	}
	inv.moveTo(tool.StatusSchemaParseFailed)
	return &tool.Failure{Class: tool.ClassSchemaValidationFailed, Message: invalid.Error()}
}

// invalid is what the schema of t has against arguments; nil where it has nothing, or nobody checks.
func (p *Pipeline) invalid(t *tool.Tool, args json.RawMessage) (*schema.Invalid, error) {
	if t.Validate == tool.ValidateOff {
		return nil, nil
	}
	s, err := p.opts.Schemas.Get(t.SchemaDigest, t.InputSchema)
	if err != nil {
		// Admission replaces schemas that do not compile, so this is a fault of the hub; the server checks for itself.
		p.opts.Logger.Warn("input schema does not compile: arguments are not checked", "tool", t.Name, "error", err)
		return nil, nil
	}
	err = s.Validate(args)
	if err == nil {
		return nil, nil
	}
	var invalid *schema.Invalid
	if !errors.As(err, &invalid) {
		return nil, fmt.Errorf("validate arguments of %q: %w", t.Name, err)
	}
	return invalid, nil
}

// validateValues is the place of preflight checks beyond the schema. No tool declares any: executors check values
// themselves before their first side effect.
func (p *Pipeline) validateValues(_ context.Context, inv *invocation) error {
	inv.moveTo(tool.StatusArgumentsReady)
	inv.event(tool.EventInvocationArgumentsReady, nil)
	return nil
}

// prepareObservableInput derives the other inputs. They share bytes with the observable one as long as nobody changes
// them; nothing ever writes into those bytes.
func (p *Pipeline) prepareObservableInput(_ context.Context, inv *invocation) error {
	inv.permissionInput = inv.observableInput
	inv.callInput = inv.permissionInput
	return nil
}

// preHooks is the place of pre_tool_use hooks; none can be configured.
func (p *Pipeline) preHooks(context.Context, *invocation) error { return nil }

// schedule waits until it is this caller's turn at the tool's server.
func (p *Pipeline) schedule(ctx context.Context, inv *invocation) error {
	inv.moveTo(tool.StatusQueued)
	inv.event(tool.EventInvocationQueued, nil)
	actor := inv.call.Actor
	leave, err := p.turns.enter(ctx, inv.listed.Tool.Server, actor.Ref()+"/"+actor.Session)
	inv.leave = leave
	return err
}
