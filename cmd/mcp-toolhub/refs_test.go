package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// inputRefs holds the refs of input mutations against the inputs that the records hold.
type inputRefs map[string]*inputsOfCall

type inputsOfCall struct {
	held, refs map[string]bool // inputs that a record holds, and refs of larger ones
	mutations  []tool.InputMutationRecord
}

func (r inputRefs) take(t testing.TB, line json.RawMessage) {
	t.Helper()
	var head struct {
		Object       tool.Object `json:"object"`
		InvocationID string      `json:"invocation_id"`
	}
	mustDecode(t, string(line), &head)
	c := r[head.InvocationID]
	if c == nil {
		c = &inputsOfCall{held: map[string]bool{}, refs: map[string]bool{}}
		r[head.InvocationID] = c
	}
	switch head.Object {
	case tool.ObjectInputMutation:
		var m tool.InputMutationRecord
		mustDecode(t, string(line), &m)
		c.mutations = append(c.mutations, m)
	case tool.ObjectInvocation:
		var inv tool.Invocation
		mustDecode(t, string(line), &inv)
		for _, held := range []json.RawMessage{inv.ModelInput, inv.ObservableInput, inv.PermissionInput, inv.CallInput} {
			c.held[string(held)] = true
		}
		c.refs[inv.ModelInputRef], c.refs[inv.PermissionInputRef], c.refs[inv.CallInputRef] = true, true, true
	}
}

// surfaceRefs are the surfaces that records name; true of those that have a record of their own.
type surfaceRefs map[tool.SurfaceID]bool

func (r surfaceRefs) take(t testing.TB, line json.RawMessage) {
	t.Helper()
	var named struct {
		Object  tool.Object    `json:"object"`
		Surface tool.SurfaceID `json:"surface_id"`
	}
	mustDecode(t, string(line), &named)
	r[named.Surface] = r[named.Surface] || named.Object == tool.ObjectSurface
	if named.Object != tool.ObjectSurface {
		return
	}
	var members map[string]any
	mustDecode(t, string(line), &members)
	for _, name := range []string{"surface_id", "scope", "created_at", "producer", "tool_refs", "loaded_tools", "deferred_tools", "blocked_tools",
		"excluded_tools", "selection_policy", "default_tool_choice", "capability_requirements", "model_capabilities", "role_constraints",
		"policy_refs", "runtime_refs", "surface_reason"} {
		if members[name] == nil {
			t.Errorf("the surface %s says nothing of %s", named.Surface, name)
		}
	}
}

// check: every surface that a record names has a record.
func (r surfaceRefs) check(t testing.TB) {
	t.Helper()
	for id, recorded := range r {
		if id != "" && !recorded {
			t.Errorf("the surface %s has no record", id)
		}
	}
}

// check: a ref is the digest of bytes that a record holds; of an input that is masked there, it is a keyed one.
func (r inputRefs) check(t testing.TB) {
	t.Helper()
	for id, c := range r {
		for _, m := range c.mutations {
			for _, ref := range []string{m.FromInputRef, m.ToInputRef} {
				if !c.has(ref) {
					t.Errorf("%s: the ref %s of mutation %s is of none of the inputs %v, %v", id, ref, m.MutationID, c.held, c.refs)
				}
			}
		}
	}
}

func (c *inputsOfCall) has(ref string) bool {
	if c.refs[ref] {
		return true
	}
	for held := range c.held {
		masked := strings.Contains(held, "[masked]")
		if held != "" && !masked && persist.Ref([]byte(held)) == ref || masked && strings.HasPrefix(ref, "hmac-sha256:") {
			return true
		}
	}
	return false
}
