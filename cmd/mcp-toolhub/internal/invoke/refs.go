package invoke

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// inline returns input as a record holds it: without its secrets and without line breaks, or by reference where it is large.
func (inv *invocation) inline(input json.RawMessage) (whole json.RawMessage, ref string) {
	if inv.listed != nil && inv.listed.Tool.Hub != nil && inv.listed.Tool.Hub.Batches {
		input = withoutArguments(input)
	}
	if len(input) > persist.InlineLimit {
		return nil, inv.ref(input)
	}
	return persist.OneLine(gate.Mask(input, inv.facts)), ""
}

// ref is the digest of input by which records refer to it: of the bytes that a record holds. Where secrets are masked in those,
// it is the digest of input as it was, with the hub's key: without that key nobody can try out what the secret may be.
func (inv *invocation) ref(input json.RawMessage) string {
	held := gate.Mask(input, inv.facts)
	if !bytes.Equal(held, input) && !bytes.Equal(compact(held), compact(input)) {
		return persist.KeyedRef(inv.keyed(input), len(input))
	}
	if len(input) > persist.InlineLimit {
		return persist.Ref(input)
	}
	return persist.Ref(persist.OneLine(held))
}

func compact(input json.RawMessage) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, input) // it is valid
	return b.Bytes()
}

// mutate puts other arguments in the place of the present ones, and records that as m, which says who did it and why.
func (inv *invocation) mutate(m *tool.InputMutation, to json.RawMessage) {
	from := inv.inputs.permission
	m.FromInputRef, m.ToInputRef = inv.ref(from), inv.ref(to)
	_ = rawjson.Members(to, func(now rawjson.Member) bool {
		if before, ok := rawjson.Get(from, now.Name()); !ok || string(before) != string(now.Value) {
			m.ChangedFields = append(m.ChangedFields, now.Name())
		}
		return true
	})
	_ = rawjson.Members(from, func(before rawjson.Member) bool {
		if _, ok := rawjson.Get(to, before.Name()); !ok {
			m.ChangedFields = append(m.ChangedFields, before.Name())
		}
		return true
	})
	input, ref := inv.inline(to)
	inv.record.Mutate(m, input, ref, inv.now())
	inv.inputs.permission, inv.inputs.call = to, to
	if inv.hooks != nil {
		inv.hooks.found = nil
	}
}
