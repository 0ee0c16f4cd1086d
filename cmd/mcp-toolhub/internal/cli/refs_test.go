package cli

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// inputRefs holds the refs of input mutations against the inputs that the records hold.
type inputRefs map[tool.InvocationID]*inputsOfCall

type inputsOfCall struct {
	held, refs map[string]bool // inputs that a record holds, and refs of larger ones
	mutations  []tool.InputMutationRecord
}

func (r inputRefs) take(t testing.TB, read *anyRecord, line json.RawMessage) {
	t.Helper()
	c := r[read.Invocation]
	if c == nil {
		c = &inputsOfCall{held: map[string]bool{}, refs: map[string]bool{}}
		r[read.Invocation] = c
	}
	switch read.Object {
	case tool.ObjectInputMutation:
		var m tool.InputMutationRecord
		mustDecode(t, string(line), &m)
		c.mutations = append(c.mutations, m)
	case tool.ObjectInvocation:
		var inv tool.Invocation
		mustDecode(t, string(line), &inv)
		for _, held := range []json.RawMessage{inv.ModelInput, inv.ObservableInput, inv.PermissionInput} {
			c.held[string(held)] = true
		}
		c.refs[inv.ModelInputRef], c.refs[inv.PermissionInputRef] = true, true
	}
}

// check: a ref is the digest of bytes that a record or the store of results holds; of an input that is masked there, it is a keyed one.
func (r inputRefs) check(t testing.TB, journal string) {
	t.Helper()
	stored := ""
	if journal != "" {
		stored = filepath.Join(filepath.Dir(journal), "results", "bytes")
	}
	for id, c := range r {
		for _, m := range c.mutations {
			for _, ref := range []string{m.FromInputRef, m.ToInputRef} {
				if !c.has(ref, stored) {
					t.Errorf("%s: the ref %s of mutation %s is of none of the inputs %v, %v", id, ref, m.MutationID, c.held, c.refs)
				}
			}
		}
	}
}

func (c *inputsOfCall) has(ref, stored string) bool {
	if digest, size, plain := persist.ParseRef(ref); plain && size > persist.InlineLimit {
		found, _ := filepath.Glob(filepath.Join(stored, "*-"+digest[:8]))
		return (len(found) > 0 || stored == "") && c.refs[ref]
	} else if !plain && c.refs[ref] {
		return true
	}
	for held := range c.held {
		masked := strings.Contains(held, "[masked")
		if held != "" && !masked && persist.Ref([]byte(held)) == ref || (masked || strings.Contains(held, `"calls":`)) && strings.HasPrefix(ref, "hmac-sha256:") {
			return true
		}
	}
	return false
}
