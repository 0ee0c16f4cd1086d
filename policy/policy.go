// Package policy decides whether a call may run.
//
// At present it has no rules: every call is allowed, and each decision says so in its reason. What protects a hub is
// therefore who can reach it, which tools its profiles show, and what its upstream servers refuse. The pipeline asks
// for a decision before every call all the same and records it, so that rules take effect for every door at once.
package policy

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Request is what a decision is about. Nothing in it is changed.
type Request struct {
	Invocation tool.InvocationID
	Tool       *tool.Tool
	Input      json.RawMessage // the standard's permission_input
	Actor      tool.Actor
}

// Engine makes permission decisions. It is safe for concurrent use.
type Engine struct{}

// New returns an engine without rules: it allows every call.
func New() *Engine { return &Engine{} }

// Decide returns the decision about r, ready to be recorded. It always comes to one: a rule that cannot be evaluated
// must deny, so there is no error that a caller could pass over. ctx bounds how long it may take.
func (e *Engine) Decide(ctx context.Context, r Request) tool.PermissionDecision {
	return tool.PermissionDecision{
		Head:         tool.HeadOf(tool.ObjectPermissionDecision),
		DecisionID:   tool.NewDecisionID(),
		InvocationID: r.Invocation,
		Behavior:     tool.Allow,
		Mode:         "default",
		Source:       "default",
		Reason:       map[string]any{"type": "default", "message": "no rule applies: every call is allowed"},
		DecidedAt:    time.Now().UTC(),
	}
}
