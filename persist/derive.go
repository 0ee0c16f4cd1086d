package persist

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// callLine is a call record as it is read.
type callLine struct {
	Object     tool.Object            `json:"object"`
	Version    int                    `json:"version"`
	Invocation tool.InvocationID      `json:"invocation_id"`
	Status     tool.Status            `json:"status"`
	Tool       tool.Name              `json:"tool_id"`
	Actor      string                 `json:"actor_ref"`
	Surface    tool.SurfaceID         `json:"surface_id"`
	Parent     tool.InvocationID      `json:"parent_invocation_id"`
	Created    time.Time              `json:"created_at"`
	EndedUS    *int64                 `json:"ended_us"`
	Model      json.RawMessage        `json:"model_input"`
	ModelRef   string                 `json:"model_input_ref"`
	Observable json.RawMessage        `json:"observable_input"`
	Mappings   []tool.ExternalMapping `json:"external_mappings"`
	From       int                    `json:"from"`
	Steps      [][]json.RawMessage    `json:"steps"`
	Result     struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structured_content"`
		ContentRef string          `json:"content_ref"`
	} `json:"result"`
	Error *tool.Error `json:"error"`
}

// deriver derives the standard's objects from the lines of a journal.
type deriver struct {
	open map[tool.InvocationID]*derivation // calls whose last line has not come
}

// derivation is what is known of a call from the steps so far.
type derivation struct {
	callLine // the last line; inputs are those of the first one
	next     int
	moves    []tool.StatusTransition
	decided  []tool.DecisionID
	mapped   int // external mappings so far
	started  *time.Time
	reports  int
	changed  struct { // by the last mutation
		Input json.RawMessage `json:"permission_input"`
		Ref   string          `json:"permission_input_ref"`
	}
	yield func(json.RawMessage) bool
	more  bool // yield wants more
	err   error
}

// line yields the objects of a line: the line itself where it is no call record.
func (d *deriver) line(line json.RawMessage, yield func(json.RawMessage) bool) (more bool, err error) {
	if !bytes.HasPrefix(line, []byte(`{"object":"`+ObjectCall+`"`)) {
		return yield(line), nil
	}
	var l callLine
	if err := json.Unmarshal(line, &l); err != nil {
		return true, fmt.Errorf("is no call record: %w", err)
	}
	if l.Version != callVersion {
		return true, fmt.Errorf("is a call record of version %d, which a later hub has written: read it with that", l.Version)
	}
	c := d.open[l.Invocation]
	if c == nil {
		c = &derivation{next: l.From, mapped: 1}
		c.Surface, d.open[l.Invocation] = l.Surface, c
	} else if l.EndedUS == nil { // inputs stand in the first line and in the last one
		l.Model, l.ModelRef, l.Observable = c.Model, c.ModelRef, c.Observable
	}
	l.Surface = c.Surface // which may have changed since the call began
	c.callLine = l
	c.yield, c.more, c.err = yield, true, nil
	for i := max(0, c.next-l.From); i < len(l.Steps) && c.more && c.err == nil; i++ {
		c.next = l.From + i + 1
		c.step(l.Steps, i)
	}
	if l.EndedUS != nil {
		delete(d.open, l.Invocation)
		if c.more && c.err == nil {
			c.end()
		}
	}
	return c.more, c.err
}

// step yields what step i of steps stands for.
func (c *derivation) step(steps [][]json.RawMessage, i int) {
	name, us := "", int64(0)
	data := json.RawMessage(`{}`)
	if len(steps[i]) > 2 {
		data = steps[i][2]
	}
	if len(steps[i]) < 2 || data[0] != '{' || json.Unmarshal(steps[i][0], &name) != nil || json.Unmarshal(steps[i][1], &us) != nil {
		c.err = fmt.Errorf("has a step %d that is none", c.From+i)
		return
	}
	at := c.time(us)
	switch name {
	case stepDecision:
		c.decision(data, at)
	case stepMutation:
		c.mutation(data, at)
	case stepProgress:
		c.progress(data, at)
	case stepRecord:
		c.put(data)
	case stepAnswered:
		c.mapped++
	case stepResumed:
		c.mapped++
		c.decode(data, &struct {
			Surface *tool.SurfaceID `json:"surface_id"`
		}{&c.Surface})
	case stepNotStarted:
	default:
		if strings.HasPrefix(name, "tool.") {
			members := map[string]json.RawMessage{}
			c.decode(data, &members)
			c.event(tool.EventType(name), at, anyOf(members))
			return
		}
		runs := len(steps) <= i+1 || len(steps[i+1]) == 0 || string(steps[i+1][0]) != `"`+stepNotStarted+`"`
		c.move(tool.Status(name), at, data, runs)
	}
}

// move yields what comes with a status.
func (c *derivation) move(s tool.Status, at time.Time, data json.RawMessage, runs bool) {
	before := tool.Status("")
	if n := len(c.moves); n > 0 {
		before = c.moves[n-1].Status
	}
	c.moves = append(c.moves, tool.StatusTransition{Status: s, At: at})
	switch s {
	case tool.StatusPlanned:
		id := c.Tool
		c.Tool = tool.UnknownTool // as it is not resolved yet
		c.event(tool.EventInvocationPlanned, at, nil)
		c.Tool = id
	case tool.StatusSelected:
		c.event(tool.EventInvocationSelected, at, nil)
	case tool.StatusArgumentsReady:
		c.event(tool.EventInvocationArgumentsReady, at, nil)
	case tool.StatusQueued:
		c.event(tool.EventInvocationQueued, at, nil)
	case tool.StatusAwaitingApproval:
		members := map[string]json.RawMessage{}
		c.decode(data, &members)
		asked := anyOf(members)
		if n := len(c.decided); n > 0 {
			asked["decision_id"] = string(c.decided[n-1])
		}
		c.event(tool.EventPermissionRequested, at, asked)
		c.invocation(s)
	case tool.StatusNeedsInput:
		c.invocation(s)
	case tool.StatusRunning:
		if before != tool.StatusQueued || !runs {
			return // the client has answered, or nothing has run
		}
		if c.started == nil {
			c.started = &at
			c.event(tool.EventInvocationStarted, at, nil)
		}
		c.invocation(s)
	}
}

func (c *derivation) decision(data json.RawMessage, at time.Time) {
	var d struct{ Behavior string }
	c.decode(data, &d)
	id := tool.DecisionID(c.id("dec_"))
	c.decided = append(c.decided, id)
	c.object(tool.ObjectPermissionDecision, "decision_id", string(id), data, "decided_at", at)
	c.event(tool.EventPermissionDecided, at, map[string]any{"behavior": d.Behavior, "decision_id": string(id)})
}

func (c *derivation) mutation(data json.RawMessage, at time.Time) {
	c.changed.Input, c.changed.Ref = nil, ""
	c.decode(data, &c.changed)
	var m tool.InputMutation
	c.decode(data, &m)
	m.Head, m.MutationID, m.InvocationID, m.CreatedAt = tool.HeadOf(tool.ObjectInputMutation), tool.MutationID(c.id("mut_")), c.Invocation, at
	c.record(m)
}

func (c *derivation) progress(data json.RawMessage, at time.Time) {
	c.reports++
	var r tool.ProgressRecord
	c.decode(data, &r)
	r.Head, r.ProgressID, r.InvocationID = tool.HeadOf(tool.ObjectProgress), tool.ProgressID(c.id("prg_")), c.Invocation
	r.Sequence, r.Timestamp, r.Status, r.ElapsedMS = c.reports, at, tool.StatusRunning, at.Sub(c.Created).Milliseconds()
	if n := len(c.moves); n > 0 && c.moves[n-1].Status == tool.StatusAwaitingApproval {
		r.Status = tool.StatusAwaitingApproval
		c.record(r)
		return
	}
	if c.started != nil {
		r.ElapsedMS = at.Sub(*c.started).Milliseconds()
	}
	c.record(r)
	c.event(tool.EventInvocationProgress, at, map[string]any{"progress_id": string(r.ProgressID)})
}

// end yields the objects of the end of the call.
func (c *derivation) end() {
	at := c.time(*c.EndedUS)
	var data map[string]any
	if c.Error != nil {
		data = map[string]any{"error_class": string(c.Error.ErrorClass)}
	}
	c.next++
	c.event(terminalEvent(c.Status), at, data)
	r := tool.Result{Head: tool.HeadOf(tool.ObjectResult), ResultID: tool.ResultID("res_" + strings.TrimPrefix(string(c.Invocation), "inv_")),
		InvocationID: c.Invocation, Status: c.Status, IsError: c.Error != nil, Content: c.Result.Content,
		StructuredContent: c.Result.Structured, ContentRef: c.Result.ContentRef, Error: c.Error, CreatedAt: at}
	if c.Error != nil && c.Error.ErrorCode != tool.CodeToolError {
		r.Summary = c.Error.Message
	}
	c.next++
	c.event(tool.EventResultCreated, at, map[string]any{"result_id": string(r.ResultID)})
	c.record(r)
	c.invocation(c.Status)
}

func terminalEvent(s tool.Status) tool.EventType {
	switch s {
	case tool.StatusSucceeded:
		return tool.EventInvocationSucceeded
	case tool.StatusCanceled:
		return tool.EventInvocationCanceled
	case tool.StatusTimedOut:
		return tool.EventInvocationTimedOut
	case tool.StatusYielded:
		return tool.EventInvocationYielded
	}
	return tool.EventInvocationFailed
}

// invocation yields the invocation as it was at the last step.
func (c *derivation) invocation(s tool.Status) {
	r := tool.Invocation{Head: tool.HeadOf(tool.ObjectInvocation), InvocationID: c.Invocation, ToolID: c.Tool, SurfaceID: c.Surface,
		Status: s, ModelInput: c.Model, ObservableInput: c.Observable, PermissionInput: c.changed.Input, ModelInputRef: c.ModelRef,
		PermissionInputRef: c.changed.Ref, ParentInvocationID: c.Parent, ActorRef: c.Actor, PermissionDecisions: c.decided,
		StatusTransitions: c.moves, ExternalMappings: c.Mappings[:min(c.mapped, len(c.Mappings))], CreatedAt: c.Created, StartedAt: c.started}
	for _, m := range r.ExternalMappings {
		if m.Role == "client" {
			r.NativeCallID = m.JSONRPCRequestID
		}
	}
	if c.EndedUS != nil && s == c.Status {
		r.EndedAt = new(c.time(*c.EndedUS))
	}
	c.record(r)
}

func (c *derivation) event(t tool.EventType, at time.Time, data map[string]any) {
	c.record(tool.Event{Head: tool.HeadOf(tool.ObjectEvent), EventID: tool.EventID(c.id("evt_")), EventType: t, Source: tool.EventSource,
		Subject: string(c.Invocation), Time: at, InvocationID: c.Invocation, ToolID: c.Tool, Data: data})
}

// object yields an object whose step has its members.
func (c *derivation) object(kind tool.Object, idName, id string, members json.RawMessage, timeName string, at time.Time) {
	e := encoder{}
	e.text(`{"object":`, string(kind))
	e.text(`,"schema_version":`, tool.SchemaVersion)
	e.text(`,"`+idName+`":`, id)
	e.text(`,"invocation_id":`, string(c.Invocation))
	if members = members[1 : len(members)-1]; len(members) > 0 {
		e.out = append(append(e.out, ','), members...)
	}
	e.time(`,"`+timeName+`":`, at)
	e.end()
	c.put(e.out)
}

func (c *derivation) record(r tool.Record) {
	line, err := appendRecord(nil, r)
	if err != nil {
		c.err = err
		return
	}
	c.put(line[:len(line)-1])
}

func (c *derivation) put(line json.RawMessage) {
	if c.more && c.err == nil {
		c.more = c.yield(line)
	}
}

func (c *derivation) decode(data json.RawMessage, into any) {
	if err := json.Unmarshal(data, into); err != nil && c.err == nil {
		c.err = fmt.Errorf("has a step that cannot be read: %w", err)
	}
}

// id is the id of an object of the last step.
func (c *derivation) id(prefix string) string { return derivedID(prefix, c.Invocation, c.next-1) }

func (c *derivation) time(us int64) time.Time {
	return c.Created.Add(time.Duration(us) * time.Microsecond)
}

func anyOf(members map[string]json.RawMessage) map[string]any {
	out := make(map[string]any, len(members)+1)
	for name, value := range members {
		out[name] = value
	}
	return out
}
