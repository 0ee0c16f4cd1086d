package gate

import (
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// Suggest is the answer that the hub itself would give where d asks about r, and why, for people: to deny what a limit or the
// classifier speaks against, what could not be judged, and what may do most harm; to allow, once, what only reads and tells
// nobody. It is "" for all the rest, which nobody but a person can weigh. Nothing is ever decided by it.
func Suggest(r *policy.Request, d *tool.PermissionDecision) (choice policy.Choice, why string) {
	kind, _ := d.Reason["type"].(string)
	_, failed := d.Reason["condition_error"]
	f := r.Facts
	switch {
	case kind == "limit":
		return policy.DenyOnce, "it goes beyond a limit that the operator has set"
	case kind == "classifier":
		return policy.DenyOnce, "the classifier did not allow it"
	case failed:
		return policy.DenyOnce, "the condition of a rule could not be evaluated"
	case f == nil:
		return policy.DenyOnce, "nothing is known of the tool"
	case f.Risk.Value == facts.RiskCritical, f.Risk.Value == facts.RiskHigh:
		return policy.DenyOnce, "its risk is " + f.Risk.Value
	case f.ReadOnly.Value && f.Risk.Value == facts.RiskLow && !f.Network.Value && !f.OpenWorld.Value:
		return policy.AllowOnce, "it only reads, and reaches nothing beyond its server"
	}
	return "", ""
}

// Suggested is Suggest for people, on one line; "" where nothing is suggested.
func Suggested(r *policy.Request, d *tool.PermissionDecision) string {
	choice, why := Suggest(r, d)
	switch choice {
	case policy.AllowOnce:
		return "allow once: " + why
	case policy.DenyOnce:
		return "deny, unless you expect this very call: " + why
	}
	return ""
}
