package invoke

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// inline returns input as a record holds it: without its secrets and without line breaks, or by
// reference where it is large.
func (inv *invocation) inline(input json.RawMessage) (whole json.RawMessage, ref string) {
	shown := inv.shown(input)
	if len(shown) > persist.InlineLimit {
		return nil, inv.ref(input)
	}
	return persist.OneLine(inv.masked(shown)), ""
}

// masked is input as records hold it, without its secrets. From then on they do not have these in
// the words of the server, either.
func (inv *invocation) masked(input json.RawMessage) json.RawMessage {
	masker := inv.record.Learned()
	masked, learned := gate.Learn(masker, input, inv.facts)
	if learned != masker {
		inv.record.Mask(learned)
	}
	return masked
}

// shown is the part of input that records may have: that of a batch is without the arguments of its calls.
func (inv *invocation) shown(input json.RawMessage) json.RawMessage {
	if inv.listed != nil && inv.listed.Tool.Hub != nil && inv.listed.Tool.Hub.Batches {
		return withoutArguments(input)
	}
	return input
}

// ref is the digest of input by which records refer to it: of the bytes that a record holds. Where
// secrets are masked in those, it is the digest of input as it was, with the hub's key: without
// that key nobody can try out what the secret may be.
func (inv *invocation) ref(input json.RawMessage) string {
	held := inv.masked(inv.shown(input))
	if !bytes.Equal(held, input) && !bytes.Equal(compact(held), compact(input)) {
		return persist.KeyedRef(seal.Digest(inv.key, "inputs", input), len(input))
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
func (inv *invocation) mutate(o *Options, m *tool.InputMutation, to json.RawMessage) {
	from := inv.inputs.permission
	m.FromInputRef, m.ToInputRef = inv.ref(from), inv.ref(to)
	inv.keepInput(o, from, m.FromInputRef)
	inv.keepInput(o, to, m.ToInputRef)
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
	inv.record.Mutate(m, input, ref, time.Now())
	inv.inputs.permission, inv.inputs.call = to, to
}

// keepInput stores an input that was or is to be changed and is too large for the records. So its
// ref is the digest of bytes that are there. One that records have to mask is not stored: its ref
// is a keyed digest.
func (inv *invocation) keepInput(o *Options, input json.RawMessage, ref string) {
	digest, _, plain := persist.ParseRef(ref)
	if len(input) <= persist.InlineLimit || !plain || o.Results == nil {
		return
	}
	e := payload.Entry{ID: tool.InputOf(inv.id, digest), MediaType: "application/json", Tool: inv.toolID(),
		Actor: inv.call.Actor.Ref(), Created: time.Now()}
	if _, err := o.Results.Put(e, input); err != nil {
		o.Logger.Warn("a large input that was changed could not be stored: its record has the digest alone",
			"invocation", inv.id,
			"tool", inv.toolID(), "bytes", len(input), "error", err)
	}
}
