package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// consent is the answer of a person that allowed the invocation.
type consent struct {
	binding approval.Binding // what it was given for
	by      string
	says    string // to the model; may be empty
}

// permission decides whether the call may run: by the rules, and where those ask, by a person. It
// runs again after a suspension. A rule that denies then denies. An answer of a person holds as
// long as tool, policy and targets are the same.
func (p *Pipeline) permission(ctx context.Context, inv *invocation) (err error) {
	if inv.hooks != nil {
		defer func() { err = p.afterDeciding(ctx, inv, err) }()
	}
	g := p.opts.Settings.Gate()
	// all of a request's params are judged
	if err := plainParams(inv.call.Params); err != nil && inv.call.Request == nil {
		return err
	}
	r, err := requestOf(ctx, g, inv, inv.inputs.permission)
	if err != nil {
		return err
	}
	inv.record.Name(g.Engine)
	d := g.Engine.Decide(r)
	if inv.hooks != nil {
		d = inv.hooks.decide(d)
	}
	if a := inv.approved; d.Behavior == tool.Ask && a != nil && a.binding == p.approver.binding(g, inv, &r) {
		// nothing is remembered, so nothing can fail
		d, _ = g.Engine.Settle(r, policy.Settlement{Choice: policy.AllowOnce, By: a.by})
	}
	if d.Behavior == tool.Ask {
		if changed, err := p.beforeAsking(ctx, inv, &d); err != nil {
			return err
		} else if changed {
			return p.permission(ctx, inv) // what is decided about is another call by now
		}
		asked := d // which stays, and so d, that most calls have, need not
		return p.approver.ask(ctx, inv, &approvalRequest{approver: p.approver, gate: g, request: r, decision: &asked,
			id: inv.record.NextDecision()})
	}
	inv.decided(&d)
	switch d.Behavior {
	case tool.Allow, tool.Passthrough:
		inv.permitted = gate.PermittedBy(&r)
		return nil
	}
	return denied(&d)
}

// judgeAgain makes sure that the permission still holds of a call that has waited. Calls that ran
// meanwhile may have made a link of a path that it is aimed at. Where the targets are
// others by now, they are judged anew. Nobody is asked again, and an answer, or what a hook said,
// was about the targets before.
func (p *Pipeline) judgeAgain(ctx context.Context, inv *invocation) error {
	was := inv.permitted.Targets
	if !slices.ContainsFunc(was, func(t target.Target) bool {
		return t.Kind == target.Path && !t.Remote || t.Kind == target.Command
	}) {
		return nil
	}
	g := p.opts.Settings.Gate()
	r, err := requestOf(ctx, g, inv, inv.inputs.permission)
	if err != nil || slices.EqualFunc(was, r.Targets, sameTarget) {
		return err
	}
	d := g.Engine.Decide(r)
	if allowed := d.Behavior == tool.Allow || d.Behavior == tool.Passthrough; allowed && inv.approved == nil &&
		inv.hooks == nil {
		inv.decided(&d)
		inv.permitted = gate.PermittedBy(&r)
		return nil
	}
	d.Behavior, d.Source, d.SuggestedUpdates = tool.Deny, kindStale, nil
	d.Reason = map[string]any{"type": kindStale,
		"message": "what the call is aimed at leads elsewhere than when it was permitted: call again"}
	inv.decided(&d)
	f := denied(&d)
	f.Code = "path_changed"
	return f
}

// sameTarget reports whether two targets are one to everything that decides. That a file is there
// by now, for instance, is nothing new.
func sameTarget(a, b target.Target) bool {
	return a.Kind == b.Kind && a.Argument == b.Argument && a.Resolved == b.Resolved && a.Executable == b.Executable &&
		a.As == b.As &&
		a.Write == b.Write && a.Fault == b.Fault && a.Has(target.HardLink) == b.Has(target.HardLink)
}

// plainParams refuses params with two members that some server could take for the same, where one
// is judged: it would run arguments that no rule has seen. Some servers do not tell letter case.
func plainParams(params json.RawMessage) (err error) {
	judged := [...]string{"arguments", "name", "_meta"}
	var seen [len(judged)]bool
	_ = rawjson.Members(params, func(m rawjson.Member) bool {
		i := slices.IndexFunc(judged[:], m.Is)
		switch {
		case i >= 0 && seen[i]:
			err = repeated(judged[i], "the params of the call")
		case i >= 0:
			seen[i] = true
		default:
			name := m.Name()
			if i := slices.IndexFunc(judged[:2], func(of string) bool { return strings.EqualFold(name, of) }); i >= 0 {
				err = &tool.Failure{Class: tool.ClassInvalidArguments,
					Message: fmt.Sprintf("the params of the call hold %q, which some servers take for %q: write "+
						"that, or leave it out", name, judged[i])}
			}
		}
		return err == nil
	})
	return err
}

// requestOf returns the policy request for the invocation with these arguments.
func requestOf(ctx context.Context, g *gate.Gate, inv *invocation, input json.RawMessage) (policy.Request, error) {
	r, err := g.Request(ctx, policy.Request{Invocation: inv.id, Tool: inv.listed.Tool, Input: input,
		Meta: inv.call.Meta, Actor: inv.call.Actor, Profile: inv.call.Surface.Profile, Via: inv.call.Via})
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil:
		return r, becauseOf(ctx, &tool.Failure{Class: tool.ClassCanceled,
			Message: "the call was canceled before it began", Cause: err})
	}
	return r, fmt.Errorf("find what the call is aimed at: %w", err)
}

// decided records a decision.
func (inv *invocation) decided(d *tool.PermissionDecision) {
	written := &inv.decision
	if *written = *d; written.UpdatedInput != nil {
		written.UpdatedInput, written.UpdatedInputRef = inv.inline(written.UpdatedInput)
	}
	inv.record.Decide(written, time.Now())
}

// denied returns the failure of a call that d denies: what the model is told, and what it can do.
func denied(d *tool.PermissionDecision) *tool.Failure {
	message, _ := d.Reason["message"].(string)
	if message == "" {
		message = "the hub's policy says so"
	}
	kind, _ := d.Reason["type"].(string)
	f := &tool.Failure{Class: tool.ClassPermissionDenied,
		Message: "this call is not allowed: " + message +
			". Do not try it again as it is: use another way, or ask the person you work for"}
	switch kind {
	case kindStale: // nobody said no
		f.Message = "nothing ran: " + message
	case "limit", "mode":
		f.Class = tool.ClassPolicyBlocked
	case "sandbox":
		f.Class = tool.ClassSandboxViolation
	case "approval":
		f.Class = tool.ClassApprovalRejected
		if said := sentence(d); said != "" {
			f.Message = "a person denied this call and says: " + said
		}
	}
	return f
}

// sentence returns what the person who denied the call says to the model.
func sentence(d *tool.PermissionDecision) string {
	for _, block := range d.ContentBlocks {
		if text, ok := block["text"].(string); ok {
			return text
		}
	}
	return ""
}
