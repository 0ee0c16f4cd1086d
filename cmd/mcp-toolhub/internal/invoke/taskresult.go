package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

// Task is the task that a server has made of a call. The invocation has ended with that, and goes
// on once the task brings its result: that goes through the phases from map_result on, as the
// call's would have.
type Task struct {
	ID, Session, RequestID string // of the server, and where it was made: see tool.Reply and tool.ExternalMapping

	pipeline *Pipeline

	mu     sync.Mutex
	inv    *invocation // nil once the task has brought its result
	gets   Outcome     // what the caller gets: Result is nil where that is too large to be kept here
	digest string      // of the result as the server gave it
}

// await makes t the owner of an invocation that has ended. Of that stays what its last phases need.
func (t *Task) await(p *Pipeline, inv *invocation) {
	c := inv.call
	kept := Call{Surface: c.Surface, Name: c.Name, Via: c.Via, Actor: c.Actor, Session: c.Session, Hop: c.Hop,
		NativeCallID: bytes.Clone(c.NativeCallID)}
	if inv.hooks != nil {
		kept.Meta, kept.Arguments = bytes.Clone(c.Meta), bytes.Clone(c.Arguments)
		inv.inputs.permission = bytes.Clone(inv.inputs.permission)
	} else {
		inv.inputs.permission = nil
	}
	kept.Hop.ClientCapabilities, kept.Hop.LogLevel = bytes.Clone(c.Hop.ClientCapabilities), bytes.Clone(c.Hop.LogLevel)
	inv.call, inv.inputs.model, inv.inputs.observable, inv.inputs.call = &kept, nil, nil, nil
	// the caller has had them
	inv.outcome, inv.reply, inv.end, inv.approved = Outcome{}, tool.Reply{}, persist.CallEnd{}, nil
	// which the last line has
	inv.record.Input = persist.CallInput{}
	t.pipeline, t.inv = p, inv
}

// Result takes the result that the server has given, a JSON object, and returns what the caller
// gets. The first one passes through the phases and is recorded before Result returns; all later
// answers are the same. The error is that the server gives another one.
func (t *Task) Result(ctx context.Context, native json.RawMessage) (Outcome, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inv != nil {
		inv := t.inv
		t.inv, t.digest = nil, tool.Digest(native)
		t.gets = t.pipeline.follow(context.WithoutCancel(ctx), inv, t.ID, native)
		out := t.gets
		t.gets.Object, t.gets.Result = rawjson.Object{}, nil
		if len(out.Result) <= persist.InlineLimit || !bytes.Equal(out.Result, native) {
			t.gets.Result = bytes.Clone(out.Result)
		}
		return out, nil
	}
	out := t.gets
	if out.Result == nil {
		if tool.Digest(native) != t.digest {
			return out, &tool.RPCError{Code: tool.CodeInternalError,
				Message: "the task's server gives another result than before, which is not passed on"}
		}
		out.Result = native
	}
	out.Object, _ = rawjson.ReadObject(out.Result)
	return out, nil
}

// follow goes on with an invocation that has ended as a task.
func (p *Pipeline) follow(ctx context.Context, inv *invocation, task string, native json.RawMessage) Outcome {
	meta, hasMeta := rawjson.Get(native, "_meta")
	inv.reply, inv.end = tool.Reply{Result: native}, persist.CallEnd{Task: task}
	inv.failure, inv.rpcErr = nil, nil
	if h := inv.hooks; h != nil {
		h.context, h.changed, h.kept = nil, false, nil
	}
	inv.walk = walk{next: slices.IndexFunc(p.phases[:], func(ph phase) bool { return ph.name == "map_result" })}
	out := p.run(ctx, inv)
	// in place of a result that is withheld
	if _, has := out.Object.Get("_meta"); hasMeta && !has && len(meta) <= persist.InlineLimit {
		if with, err := rawjson.Set(out.Result, "_meta", meta); err == nil {
			out.Result = with
			out.Object, _ = rawjson.ReadObject(with)
		}
	}
	return out
}
