package persist

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// deriver derives the standard's objects from the lines of a journal.
type deriver struct {
	open  map[tool.InvocationID]*derivation // calls whose last line has not come
	stood map[string]bool                   // keys of standing records
}

// derivation is what is known of a call from the steps so far.
type derivation struct {
	callRecord // the last line; inputs are those of the first one
	next       int
	moves      []tool.StatusTransition
	decided    []tool.DecisionID
	asked      *tool.PermissionDecisionRecord // the decision to ask that nothing has answered; nil for none
	mapped     int                            // external mappings so far
	started    *time.Time
	reports    int
	changed    mutationStep    // the last one
	hooks      map[int]hookRun // runs that have not ended, by the step with which they began
	ran        []tool.HookID
	modified   []tool.HookID
	canceled   *tool.Cancellation
	persisted  []tool.DecisionID // about the result, and artifacts
	artifacts  []tool.PersistedRef
	erased     bool // some steps are
	yield      func(json.RawMessage) bool
	more       bool // yield wants more
	err        error
}

// These begin the lines of calls, and of their tasks.
const (
	callPrefix = `{"object":"` + string(ObjectCall) + `"`
	taskPrefix = `{"object":"` + string(ObjectTask) + `"`
)

// line yields the objects of a line: the line itself where it is no call record.
func (d *deriver) line(line json.RawMessage, yield func(json.RawMessage) bool) (more bool, err error) {
	if isStanding(line) {
		return d.standing(line, yield)
	}
	isTask := bytes.HasPrefix(line, []byte(taskPrefix))
	if !isTask && !bytes.HasPrefix(line, []byte(callPrefix)) {
		return yield(line), nil
	}
	var l callRecord
	if err := json.Unmarshal(line, &l); err != nil {
		return true, fmt.Errorf("is no call record: %w", err)
	}
	if l.Version != callVersion {
		return true, fmt.Errorf("is a call record of version %d, which a later hub has written: read it with that",
			l.Version)
	}
	c := d.open[l.Invocation]
	if c == nil || isTask {
		c = &derivation{next: l.From, mapped: 1}
		c.Surface, d.open[l.Invocation] = l.Surface, c
	} else if l.EndedUS == nil { // inputs stand in the first line and in the last one
		l.CallInput = c.CallInput
	}
	l.Surface = c.Surface // which may have changed since the call began
	c.callRecord, c.yield, c.more, c.err = l, yield, true, nil
	for i := max(0, c.next-l.From); i < len(l.Steps) && c.more && c.err == nil; i++ {
		c.next = l.From + i + 1
		c.step(i)
	}
	if l.EndedUS != nil {
		delete(d.open, l.Invocation)
		c.end()
	}
	return c.more, c.err
}

// step yields what step i of the line stands for.
func (c *derivation) step(i int) {
	if IsErased(c.Steps[i]) {
		c.erased = true
		return
	}
	name, us, data := "", int64(0), json.RawMessage(`{}`)
	parts := [...]any{&name, &us, &data}
	if json.Unmarshal(c.Steps[i], &parts) != nil || name == "" || parts[1] == nil || data[0] != '{' {
		c.err = fmt.Errorf("has a step %d that is none", c.From+i)
		return
	}
	at := c.time(us)
	switch name {
	case stepDecision:
		c.decision(data, at, c.follows(i, string(tool.StatusAwaitingApproval)))
	case stepMutation:
		c.changed = mutationStep{}
		c.decode(data, &c.changed)
		c.record(tool.InputMutationRecord{Head: tool.HeadOf(tool.ObjectInputMutation),
			MutationID:   tool.MutationID(c.id("mut_")),
			InvocationID: c.Invocation, InputMutation: c.changed.InputMutation, CreatedAt: at})
	case stepProgress:
		var said progressStep
		c.decode(data, &said)
		c.report(said, at)
	case stepRecord:
		c.put(data)
	case stepAnswered:
		c.mapped++
	case stepResumed:
		c.mapped++
		now := resumedStep{c.Surface}
		c.decode(data, &now)
		c.Surface = now.Surface
	case stepAnswerInvalid:
		var said answerInvalidStep
		c.decode(data, &said)
		c.report(progressStep{Message: stepAnswerInvalid + ": " + said.Problem}, at)
	case stepNotStarted:
	case stepHookStart, stepHook:
		c.hook(name == stepHook, data, at)
	case stepCancel:
		c.cancel(data, at)
	case stepPersistResult:
		c.persistence(data, at)
	default:
		var members map[string]any
		c.decode(data, &members)
		if strings.HasPrefix(name, "tool.") {
			c.event(tool.EventType(name), at, members)
			return
		}
		c.move(tool.Status(name), at, members, !c.follows(i, stepNotStarted))
	}
}

// follows reports whether the line has a step of that name after step i.
func (c *derivation) follows(i int, name string) bool {
	return i+1 < len(c.Steps) && bytes.HasPrefix(c.Steps[i+1], []byte(`["`+name+`"`))
}

// move yields what comes with a status.
func (c *derivation) move(s tool.Status, at time.Time, data map[string]any, started bool) {
	before := c.status()
	c.moves = append(c.moves, tool.StatusTransition{Status: s, At: at})
	switch s {
	case tool.StatusPlanned, tool.StatusSelected, tool.StatusArgumentsReady:
		c.event(eventOf(s), at, nil)
	case tool.StatusQueued, tool.StatusPartialResult:
		c.event(eventOf(s), at, data) // its concurrency and locks; which part
	case tool.StatusAwaitingApproval:
		if n := len(c.decided); n > 0 {
			data["decision_id"] = c.decided[n-1]
		}
		c.event(tool.EventPermissionRequested, at, data)
		c.invocation(s)
	case tool.StatusNeedsInput:
		c.invocation(s)
	case tool.StatusRunning:
		if before != tool.StatusQueued && !c.erased || !started {
			return // the client has answered, or nothing has run
		}
		if c.started == nil {
			c.started = &at
			c.event(tool.EventInvocationStarted, at, nil)
		}
		c.invocation(s)
	}
}

// eventOf is the event of a status that has one of its own name; the other ones are those of calls that have failed.
func eventOf(s tool.Status) tool.EventType {
	switch s {
	case tool.StatusPlanned, tool.StatusSelected, tool.StatusArgumentsReady, tool.StatusQueued,
		tool.StatusPartialResult,
		tool.StatusSucceeded, tool.StatusCanceled, tool.StatusTimedOut, tool.StatusYielded:
		return "tool.invocation." + tool.EventType(s)
	}
	return tool.EventInvocationFailed
}

// status is the last one.
func (c *derivation) status() tool.Status {
	if len(c.moves) == 0 {
		return ""
	}
	return c.moves[len(c.moves)-1].Status
}

// decision yields a decision that a step holds, and its event.
func (c *derivation) decision(data json.RawMessage, at time.Time, awaited bool) {
	var d tool.PermissionDecision
	c.decode(data, &d)
	if d.ExpiresAt != nil {
		d.ExpiresAt = new(d.ExpiresAt.UTC())
	}
	c.decide(d, at, awaited)
}

// decide yields a decision and its event. A decision to ask asks: its event is a request, which
// awaiting_approval yields where that follows (awaited). The next decision closes it.
func (c *derivation) decide(d tool.PermissionDecision, at time.Time, awaited bool) {
	r := tool.PermissionDecisionRecord{Head: tool.HeadOf(tool.ObjectPermissionDecision),
		DecisionID:   tool.DecisionID(c.id("dec_")),
		InvocationID: c.Invocation, ToolID: c.Tool, ActorRef: c.Actor, PermissionDecision: d, DecidedAt: at}
	said := map[string]any{"decision_id": r.DecisionID}
	if c.asked != nil {
		r.Closes = c.asked.DecisionID
		said["closes_decision_id"] = r.Closes
		c.asked = nil
	}
	c.decided = append(c.decided, r.DecisionID)
	c.record(r)
	if r.Behavior != tool.Ask {
		said["behavior"] = r.Behavior
		c.event(tool.EventPermissionDecided, at, said)
		return
	}
	asked := r
	if c.asked = &asked; !awaited {
		c.event(tool.EventPermissionRequested, at, said)
	}
}

// sourceCallEnded is the source of a decision that the end of a call makes.
const sourceCallEnded = "call_ended"

// unanswered is the decision about an ask that the end of the call leaves without an answer: it has
// allowed nothing, and nothing can.
func (c *derivation) unanswered() tool.PermissionDecision {
	d := c.asked.PermissionDecision
	why := fmt.Sprintf("the call ended as %s before it was allowed", c.Status)
	if c.Status == tool.StatusYielded {
		why += ": the next call like it takes the answer"
	}
	reason := map[string]any{"type": sourceCallEnded, "message": why}
	if because, ok := d.Reason["message"]; ok {
		reason["asked_because"] = because
	}
	return tool.PermissionDecision{Behavior: tool.Deny, Mode: d.Mode, Source: sourceCallEnded, Reason: reason,
		RuleRefs: d.RuleRefs, PolicyRefs: d.PolicyRefs, BlockedPath: d.BlockedPath}
}

// hook yields the event of a run of a hook that begins or has ended, and the record of one that has ended.
func (c *derivation) hook(ended bool, data json.RawMessage, at time.Time) {
	var run HookStep
	c.decode(data, &run)
	started, completed := tool.EventHookPostStarted, tool.EventHookPostCompleted
	if run.Before {
		started, completed = tool.EventHookPreStarted, tool.EventHookPreCompleted
	}
	if !ended {
		if c.hooks == nil {
			c.hooks = make(map[int]hookRun)
		}
		c.hooks[c.next-1] = hookRun{run, at, completed}
		c.event(started, at, map[string]any{"hook": run.Hook, "hook_event": run.Event})
		return
	}
	c.hookEnded(run, completed, at)
}

// hookRun is a run of a hook that has begun.
type hookRun struct {
	HookStep
	began time.Time
	ends  tool.EventType // of its end
}

func (c *derivation) hookEnded(run HookStep, completed tool.EventType, at time.Time) {
	r := tool.HookRecord{Head: tool.HeadOf(tool.ObjectHook), HookID: tool.HookID(c.id("hook_")), Event: run.Event,
		InvocationID: c.Invocation,
		ToolID:       c.Tool, HookRun: run.HookRun, StartedAt: at,
		EndedAt: at}
	if begun, ok := c.hooks[run.Started]; ok {
		r.StartedAt = begun.began
		delete(c.hooks, run.Started)
	}
	c.ran = append(c.ran, r.HookID)
	if run.Modified {
		c.modified = append(c.modified, r.HookID)
	}
	c.record(r)
	c.event(completed, at, map[string]any{"hook": run.Hook, "hook_event": run.Event, "hook_id": r.HookID})
}

// endHooks yields what became of hooks that ran when the call ended: their hub was killed.
func (c *derivation) endHooks(at time.Time) {
	for _, step := range slices.Sorted(maps.Keys(c.hooks)) {
		run := c.hooks[step]
		run.Started, run.HookRun = step, tool.HookRun{Matcher: map[string]any{"hook": run.Hook},
			Outputs: []map[string]any{
				{"type": "failure",
					"message": "the hub was killed while the hook ran: nobody knows what the hook has done"}}}
		c.hookEnded(run.HookStep, run.ends, at)
		c.next++
	}
}

// report yields a report of progress and its event.
func (c *derivation) report(said progressStep, at time.Time) {
	c.reports++
	r := tool.ProgressRecord{Head: tool.HeadOf(tool.ObjectProgress), ProgressID: tool.ProgressID(c.id("prg_")),
		InvocationID: c.Invocation,
		Sequence:     c.reports, Status: tool.StatusRunning, Message: said.Message, Percent: said.Percent,
		Timestamp: at}
	since := cmp.Or(c.started, &c.Created)
	if s := c.status(); s == tool.StatusAwaitingApproval || s == tool.StatusQueued {
		r.Status, since = s, &c.Created
	}
	r.ElapsedMS = at.Sub(*since).Milliseconds()
	c.record(r)
	c.event(tool.EventInvocationProgress, at, map[string]any{"progress_id": r.ProgressID})
}

// cancel yields the event of a cancellation: "A cancellation request should still create an event".
func (c *derivation) cancel(data json.RawMessage, at time.Time) {
	facts := map[string]any{}
	c.canceled = &tool.Cancellation{}
	c.decode(data, c.canceled)
	c.decode(data, &facts)
	c.event(tool.EventCancelRequested, at, facts)
}

// persistence yields a decision about the result, or an artifact, and its event.
func (c *derivation) persistence(data json.RawMessage, at time.Time) {
	var d tool.ResultPersistence
	c.decode(data, &d)
	id := tool.DecisionID(c.id("dec_"))
	c.persisted = append(c.persisted, id)
	c.record(decisionRecord(id, c.Invocation, d, at))
	said := map[string]any{"decision_id": id, "result_id": tool.ResultOf(c.Invocation)}
	if d.Persisted == nil {
		said["strategy"] = d.Strategy
		c.event(tool.EventResultNotPersisted, at, said) // the standard has none
		return
	}
	said["uri"] = d.Persisted.URI
	c.event(tool.EventResultPersisted, at, said)
	if d.Persisted.ArtifactID != "" {
		c.artifacts = append(c.artifacts, *d.Persisted)
	}
}

func decisionRecord(id tool.DecisionID, of tool.InvocationID, d tool.ResultPersistence,
	at time.Time) tool.ResultPersistenceRecord {
	d.Redaction = cmp.Or(d.Redaction, tool.RedactionNone)
	return tool.ResultPersistenceRecord{Head: tool.HeadOf(tool.ObjectResultPersistence), DecisionID: id,
		InvocationID: of,
		ResultID:     tool.ResultOf(of), ResultPersistence: d, CreatedAt: at}
}

// ExpiryRecords are the records of the decision that a stored result has expired, lines of their own
// in the journal: the decision and its event.
func ExpiryRecords(of tool.InvocationID, name tool.Name, d *tool.ResultPersistence, at time.Time) []tool.Record {
	id, at := tool.NewDecisionID(), at.UTC()
	data := map[string]any{"decision_id": id, "result_id": tool.ResultOf(of), "uri": d.Persisted.URI,
		"reason": d.Reason}
	return []tool.Record{decisionRecord(id, of, *d, at), tool.Event{Head: tool.HeadOf(tool.ObjectEvent),
		EventID: tool.NewEventID(), EventType: tool.EventResultExpired,
		Source: tool.EventSource, Subject: string(of), Time: at, InvocationID: of, ToolID: name, Data: data}}
}

// there is a value of the line; nil where it was erased.
func (c *derivation) there(value json.RawMessage) json.RawMessage {
	if IsErased(value) {
		c.erased = true
		return nil
	}
	return value
}

// end yields the objects of the end of the call.
func (c *derivation) end() {
	at := c.time(*c.EndedUS)
	if c.Error != nil {
		c.Error.NativeErrorRef = c.there(c.Error.NativeErrorRef)
	}
	r := tool.Result{Head: tool.HeadOf(tool.ObjectResult), ResultID: tool.ResultOf(c.Invocation),
		InvocationID: c.Invocation, Status: c.Status, IsError: c.Error != nil, Error: c.Error, ModifiedBy: c.modified,
		Cancellation: c.canceled, Persistence: c.persisted, Artifacts: c.artifacts, Redaction: tool.RedactionNone,
		CreatedAt: at}
	if c.Result != nil {
		if c.Result.Unmodified {
			r.ModifiedBy = nil
		}
		switch {
		case c.Result.Redacted > 0:
			r.Redaction = tool.Redacted
		case c.Result.Detected > 0:
			r.Redaction = tool.Detected
		}
		r.Content, r.StructuredContent, r.ContentRef = c.there(c.Result.Content), c.there(c.Result.Structured),
			c.Result.ContentRef
		r.Summary, r.Output = c.Result.Summary, c.Result.Output
	}
	if c.erased {
		r.Redaction = tool.Erased
	}
	data := map[string]any{}
	if c.Error != nil {
		data["error_class"] = c.Error.ErrorClass
		if c.Error.ErrorCode != tool.CodeToolError {
			r.Summary = c.Error.Message
		}
	}
	c.next++
	if c.Object == ObjectTask {
		r.Head = tool.HeadOf(tool.ObjectTaskResult)
		c.event(tool.EventResultCreated, at, map[string]any{"result_id": r.ResultID, "task_id": c.Task})
		c.record(r)
		return
	}
	if c.asked != nil {
		c.decide(c.unanswered(), at, false)
		c.next++
	}
	c.endHooks(at)
	c.event(eventOf(c.Status), at, data)
	c.next++
	c.event(tool.EventResultCreated, at, map[string]any{"result_id": r.ResultID})
	c.record(r)
	c.invocation(c.Status)
}

// invocation yields the invocation as it was at the last step.
func (c *derivation) invocation(s tool.Status) {
	r := tool.Invocation{Head: tool.HeadOf(tool.ObjectInvocation), InvocationID: c.Invocation, ToolID: c.Tool,
		SurfaceID: c.Surface,
		Status:    s, ModelInput: c.Model, ObservableInput: c.Observable, PermissionInput: c.changed.Input,
		ModelInputRef:      c.ModelRef,
		PermissionInputRef: c.changed.Ref, ParentInvocationID: c.Parent, Batch: c.Batch, ActorRef: c.Actor,
		Client:  c.Client,
		Profile: c.Profile, Origin: c.Origin, PermissionDecisions: c.decided, HookRefs: c.ran,
		StatusTransitions: c.moves,
		ExternalMappings:  c.Mappings[:min(c.mapped, len(c.Mappings))], Cancellation: c.canceled,
		Artifacts: c.artifacts, Agent: c.Agent, CreatedAt: c.Created, StartedAt: c.started}
	if c.Agent != nil && c.Agent.Run != "" {
		r.RuntimeRefs = []string{"toolhub/run:" + c.Agent.Run}
	}
	if c.Trace != "" {
		r.RuntimeRefs = append(r.RuntimeRefs, tool.TraceRuntime+string(c.Trace))
	}
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
	c.record(tool.Event{Head: tool.HeadOf(tool.ObjectEvent), EventID: tool.EventID(c.id("evt_")), EventType: t,
		Source:  tool.EventSource,
		Subject: string(c.Invocation), Time: at, InvocationID: c.Invocation, ToolID: c.Tool, Data: data,
		TraceRefs: c.Trace.Refs()})
}

func (c *derivation) record(r tool.Record) {
	line, err := appendJSON(nil, r)
	if err != nil && c.err == nil {
		c.err = err
	}
	c.put(line)
}

// put yields an object, unless nobody wants more.
func (c *derivation) put(line json.RawMessage) {
	if c.more && c.err == nil {
		c.more = c.yield(line)
	}
}

// decode reads what stands in a step. Numbers in values of any type keep their text.
func (c *derivation) decode(data json.RawMessage, into any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(into); err != nil && c.err == nil {
		c.err = fmt.Errorf("has a step that cannot be read: %w", err)
	}
}

// id is the id of an object of the last step.
func (c *derivation) id(prefix string) string { return derivedID(prefix, c.Invocation, c.next-1) }

func (c *derivation) time(us int64) time.Time {
	return c.Created.Add(time.Duration(us) * time.Microsecond)
}
