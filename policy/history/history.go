// Package history looks back at what was decided about calls. It says what a changed policy would
// have decided, finds the rules that would have spared people their answers, and names what is not
// used any more.
//
// It reads no store: package main gives it the records of calls. It decides nothing by itself:
// whatever a policy says of a recorded call, the gate says, as it does of a call that comes in.
package history

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// Answer is what a person made of a question.
type Answer string

// The answers. A call that nobody was asked about has none of them.
const (
	Allowed    Answer = "allowed"
	Denied     Answer = "denied"
	Unanswered Answer = "unanswered" // nobody answered, which denied the call
	Withdrawn  Answer = "withdrawn"  // the call ended before anybody answered
)

// Call is a recorded call, and what was decided about it.
type Call struct {
	ID      tool.InvocationID
	At      time.Time
	Tool    tool.Name
	Actor   tool.Actor
	Profile string
	Via     string          // see policy.Request
	Input   json.RawMessage // what was decided about; nil where Lost says why
	Meta    json.RawMessage // as far as records keep it: what the caller said of itself

	Said       tool.PermissionDecision // by the policy. Where a remembered answer or a person came instead, it asks
	Answer     Answer                  // "" where nobody was asked
	Remembered bool                    // the answer is one of an earlier call
	By         string                  // who answered, and where

	Refs []string // rules and grants that decisions about it came from: source/id, grant/ID

	Lost string // why no policy can decide about the call again; "" where one can
}

// refused reports whether the call was not let through, be it because nobody answered.
func (c *Call) refused() bool {
	return c.Answer == Denied || c.Answer == Unanswered || c.Answer == "" && c.Said.Behavior == tool.Deny
}

// Read reads the objects of Agent Tool that one call has left, in their order. ok is false where
// nothing was decided about it.
func Read(objects []json.RawMessage) (c Call, ok bool, err error) {
	var inv tool.Invocation
	for _, object := range objects {
		var head tool.Head
		if err := json.Unmarshal(object, &head); err != nil {
			return c, false, fmt.Errorf("read a record: %w", err)
		}
		switch head.Object {
		case tool.ObjectInvocation:
			inv = tool.Invocation{}
			err = json.Unmarshal(object, &inv)
		case tool.ObjectPermissionDecision:
			var r tool.PermissionDecisionRecord
			err = json.Unmarshal(object, &r)
			ok = true
			c.take(&r.PermissionDecision)
		}
		if err != nil {
			return c, false, fmt.Errorf("read a record of %s: %w", inv.InvocationID, err)
		}
	}
	c.ID, c.At, c.Tool, c.Profile = inv.InvocationID, inv.CreatedAt, inv.ToolID, inv.Profile
	door, name, _ := strings.Cut(strings.TrimPrefix(inv.ActorRef, "actor:"), "/")
	c.Actor = tool.Actor{Door: door, Name: name}
	if inv.Client != nil {
		c.Actor.Client = tool.Client{Name: inv.Client.Name, Version: inv.Client.Version}
	}
	for _, m := range inv.ExternalMappings {
		ofBatch := inv.ParentInvocationID != "" && m.JSONRPCRequestID == "" // it has no request of its own
		if m.Role == "client" && (ofBatch || m.ToolName == forwards && inv.ToolID != forwards) {
			c.Via = m.ToolName
		}
	}
	c.input(&inv)
	c.Meta = metaOf(inv.Agent)
	return c, ok && inv.ToolID != "" && inv.ToolID != tool.UnknownTool, nil
}

// forwards is the hub tool that calls others.
const forwards = "tool_call"

// take takes in the next decision about the call.
func (c *Call) take(d *tool.PermissionDecision) {
	kind, _ := d.Reason["type"].(string)
	for _, ref := range d.RuleRefs {
		if made := kind == "approval" && strings.HasPrefix(ref, "grant/"); !made && !slices.Contains(c.Refs, ref) {
			c.Refs = append(c.Refs, ref)
		}
	}
	if _, asked := d.Reason["asked_because"]; asked || d.Source == "call_ended" {
		c.Answer = Unanswered
		if kind != "timeout" && kind != "nobody" {
			c.Answer = Withdrawn
		}
		return
	}
	switch {
	case d.Source == "hook":
		c.Lost = "a hook decided, and hooks are not run again"
	case kind == "approval" || kind == "grant":
		c.Answer, c.Remembered = Denied, kind == "grant"
		if d.Behavior == tool.Allow {
			c.Answer = Allowed
		}
		c.By, _ = d.Reason["by"].(string)
		if c.Said.Behavior == "" {
			c.Said = *d
			c.Said.Behavior = tool.Ask
		}
		return
	}
	c.Said, c.Answer, c.Remembered, c.By = *d, "", false, ""
}

// mark is what stands in records for what they do not keep.
var mark = regexp.MustCompile(`\[(?:masked[\]:]|erased\])`)

// input finds the arguments that were decided about.
func (c *Call) input(inv *tool.Invocation) {
	in := inv.PermissionInput
	for _, earlier := range []json.RawMessage{inv.ObservableInput, inv.ModelInput} {
		if len(in) == 0 && inv.PermissionInputRef == "" {
			in = earlier
		}
	}
	lost := ""
	switch {
	case len(in) == 0 && (inv.PermissionInputRef != "" || inv.ModelInputRef != ""):
		lost = "its arguments are gone: they were too large for the records"
	case mark.Match(in):
		lost = "its arguments are masked: records do not keep what they held"
	case len(in) == 0 || rawjson.IsNull(in):
		in = json.RawMessage(`{}`)
	}
	if c.Input = bytes.Clone(in); lost != "" {
		c.Lost = cmp.Or(c.Lost, lost)
	}
}

// metaOf is the _meta in which a says that of itself.
func metaOf(a *tool.Agent) json.RawMessage {
	if a == nil {
		return nil
	}
	said := make(map[string]string)
	for key, text := range map[string]string{"toolhub/run": a.Run, "toolhub/agent": a.Name, "toolhub/parent": a.Parent,
		"toolhub/role": a.Role} {
		if text != "" {
			said[key] = text
		}
	}
	meta, err := rawjson.Encode(said)
	if err != nil {
		return nil // cannot be: nothing in it but strings
	}
	return meta
}

// Tools finds a tool as it is known now; nil where there is none of that name.
type Tools func(tool.Name) *tool.Tool

// request is the call as g sees it now, at the time when it was made. lost says why there is none.
func (c *Call) request(ctx context.Context, g *gate.Gate, tools Tools) (r policy.Request, lost string) {
	if c.Lost != "" {
		return r, c.Lost
	}
	t := tools(c.Tool)
	if t == nil {
		return r, "no server offers the tool any more"
	}
	r, err := g.Request(ctx, policy.Request{Invocation: c.ID, Tool: t, Input: c.Input, Meta: c.Meta, Actor: c.Actor,
		Profile: c.Profile, Via: c.Via})
	if err != nil {
		return r, "what it was aimed at cannot be found: " + err.Error()
	}
	r.Now = c.At
	return r, ""
}

// Use is how often something decided about calls, and when it did so last.
type Use struct {
	Calls int
	Last  time.Time
}

// Uses counts the calls that each rule and grant decided about, alone or with others: by its name
// in records, source/id or grant/ID. Calls are in the order in which they came.
func Uses(calls []Call) map[string]Use {
	all := make(map[string]Use)
	for i := range calls {
		for _, ref := range calls[i].Refs {
			all[ref] = Use{all[ref].Calls + 1, calls[i].At}
		}
	}
	return all
}
