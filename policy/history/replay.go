package history

import (
	"context"
	"regexp"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// Change is a call that a changed policy decides otherwise, or of which that cannot be told.
type Change struct {
	ID        tool.InvocationID `json:"invocation_id"`
	At        time.Time         `json:"created_at"`
	Tool      tool.Name         `json:"tool_id"`
	Actor     string            `json:"actor_ref"`
	Arguments string            `json:"arguments,omitempty"` // JSON with secrets masked
	Was       tool.Behavior     `json:"was"`
	WasBy     []string          `json:"was_by,omitempty"` // rules, the deciding one first
	Answer    Answer            `json:"answer,omitempty"`
	Now       tool.Behavior     `json:"now,omitempty"` // "" where it cannot be told
	NowBy     []string          `json:"now_by,omitempty"`
	Because   string            `json:"because"`            // why it is decided so now, or why that cannot be told
	Loosened  bool              `json:"loosened,omitempty"` // it was denied, and would not be now
}

// Replayed is what a changed policy makes of a history.
type Replayed struct {
	Calls    int      `json:"calls"`   // that were looked at
	Changes  []Change `json:"changes"` // oldest first
	Untold   []Change `json:"untold"`  // what would be decided about these cannot be told
	Loosened int      `json:"loosened"`
}

// Replay decides about calls anew, by the gate next. Remembered answers are left out: where one
// decided, the policy had asked. before is the gate that is in force: a call that it decides
// otherwise than it did is aimed at something else by now, so nothing can be told of it.
func Replay(ctx context.Context, calls []Call, before, next *gate.Gate, tools Tools) (*Replayed, error) {
	out := &Replayed{Changes: []Change{}, Untold: []Change{}}
	unseen := looksBeyond(next.Engine)
	for i := range calls {
		c := &calls[i]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out.Calls++
		change := Change{ID: c.ID, At: c.At, Tool: c.Tool, Actor: c.Actor.Ref(), Was: c.Said.Behavior,
			WasBy: c.Said.RuleRefs, Answer: c.Answer}
		r, lost := c.request(ctx, next, tools)
		if lost == "" {
			change.Arguments = string(gate.Mask(r.Input, r.Facts))
			lost = strayed(ctx, c, before, tools)
		}
		var d tool.PermissionDecision
		if lost == "" {
			d, lost = decide(ctx, next, r, unseen)
		}
		if change.Because = lost; lost != "" {
			out.Untold = append(out.Untold, change)
			continue
		}
		if d.Behavior == c.Said.Behavior {
			continue
		}
		change.Now, change.NowBy = d.Behavior, d.RuleRefs
		change.Because, _ = d.Reason["message"].(string)
		if change.Loosened = c.refused() && (d.Behavior == tool.Allow ||
			d.Behavior == tool.Passthrough); change.Loosened {
			out.Loosened++
		}
		out.Changes = append(out.Changes, change)
	}
	return out, nil
}

// decide is what the gate says of r; untold says why that is not known.
func decide(ctx context.Context, g *gate.Gate, r policy.Request, unseen []*policy.Matcher) (d tool.PermissionDecision,
	untold string) {
	if slices.ContainsFunc(unseen, func(m *policy.Matcher) bool { return m.Matches(policy.NewSubject(r)) }) {
		return d, "a rule looks at _meta or the session, which records do not keep"
	}
	return g.Engine.Decide(r), ""
}

var beyond = regexp.MustCompile(`\b_meta\b|\bactor\s*\.\s*session\b`)

// looksBeyond finds the rules that look at what records do not keep. The matchers say which calls these may be about.
func looksBeyond(e *policy.Engine) (all []*policy.Matcher) {
	var c policy.Compiler
	for _, r := range e.Rules() {
		if !beyond.MatchString(r.When) {
			continue
		}
		r.When = ""
		if m, problems := c.Matcher(r.Rule); len(problems) == 0 {
			all = append(all, m)
		}
	}
	return all
}

// strayed says that a call is not what it was: the policy that decided about it is in force, and decides otherwise now.
func strayed(ctx context.Context, c *Call, g *gate.Gate, tools Tools) string {
	if c.Remembered || !slices.Contains(c.Said.PolicyRefs, "policy:"+g.Engine.Version()) {
		return ""
	}
	r, lost := c.request(ctx, g, tools)
	if lost == "" && g.Engine.Decide(r).Behavior != c.Said.Behavior && len(looksBeyond(g.Engine)) == 0 {
		return "the policy that decided about it decides otherwise now: the tool, or what the call is aimed at, " +
			"has changed"
	}
	return ""
}
