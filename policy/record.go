package policy

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// record turns a decision into the standard's tool_permission_decision.
func (e *Engine) record(r *Request, v *decision) tool.PermissionDecision {
	reason := map[string]any{"type": v.kind, "message": v.message}
	if v.by != "" {
		reason["by"] = v.by
	}
	if v.note != "" {
		reason["mode"] = v.note
	}
	if v.failed != "" {
		reason["condition_error"] = withoutValues(v.failed, r.Input, r.Meta)
	}
	d := tool.PermissionDecision{
		Behavior:    v.behavior,
		Mode:        string(v.mode),
		Source:      v.source,
		Reason:      reason,
		RuleRefs:    v.refs,
		PolicyRefs:  e.refs,
		BlockedPath: v.blocked,
	}
	if v.behavior == tool.Allow {
		d.BlockedPath = ""
	}
	if v.behavior == tool.Ask && e.settings.Grants != nil && !v.once {
		d.SuggestedUpdates = e.suggest(r)
	}
	return d
}

// withoutValues removes the texts of the call from an error. The error is recorded, and any of the
// texts may be a secret.
func withoutValues(text string, values ...[]byte) string {
	const shortest = 3 // of a text that is worth it
	var look func(value []byte)
	look = func(value []byte) {
		if s, ok := rawjson.String(value); ok && len(s) >= shortest {
			text = strings.ReplaceAll(text, s, "…")
			quoted := strconv.Quote(s)
			text = strings.ReplaceAll(text, quoted[1:len(quoted)-1], "…")
		}
		_ = rawjson.Members(value, func(m rawjson.Member) bool {
			look(m.Value)
			return true
		})
		_ = rawjson.Elements(value, func(v []byte) bool {
			look(v)
			return true
		})
	}
	for _, v := range values {
		look(v)
	}
	return text
}

// SuggestedGrant is an element of a decision's suggested_updates: the grant that a choice of the person would make.
type SuggestedGrant struct {
	Type        string        `json:"type"`        // add_grant
	Choice      Choice        `json:"choice"`      // the answer that does it
	Destination string        `json:"destination"` // session or always
	Behavior    tool.Behavior `json:"behavior"`
	Tool        tool.Name     `json:"tool"`
	Targets     []Scope       `json:"targets,omitempty"`
	Exact       string        `json:"exact,omitempty"`   // digest of these arguments: nothing wider can be granted
	Answers     int           `json:"answers,omitempty"` // equal ones that the grant is offered because of
}

// suggest lists the grants that a person could make. It is called before a person is asked, and only then.
func (e *Engine) suggest(r *Request) []any {
	scopes, ok := e.scopes(r)
	one := SuggestedGrant{Type: "add_grant", Choice: AllowSession, Destination: "session", Behavior: tool.Allow,
		Tool: r.Tool.Name, Targets: scopes}
	if !ok {
		one.Targets, one.Exact = nil, digestCall(r)
	}
	list := []any{one}
	if e.settings.Grants.file != nil {
		one.Choice, one.Destination = AllowAlways, "always"
		list = append(list, one)
		one.Choice, one.Behavior = DenyAlways, tool.Deny
		list = append(list, one)
	}
	return list
}

// DirectoryOf returns the directory that a grant for a path covers: a directory itself, and the
// parent of anything else where that is an area. It looks at the file system.
func DirectoryOf(home, resolved string) string {
	if info, err := os.Lstat(resolved); err == nil && info.IsDir() {
		return resolved
	}
	if dir := filepath.Dir(resolved); dir != resolved && IsArea(home, dir) {
		return dir
	}
	return resolved
}

// IsArea reports whether an answer about something in dir may cover all of it: dir is no root, not
// right beneath one, and not the directory home or above that.
func IsArea(home, dir string) bool {
	parent := filepath.Dir(dir)
	return filepath.Dir(parent) != parent && (home == "" || !target.Under(filepath.Clean(home), dir))
}
