package persist

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	// ObjectCall is the member object of call records.
	ObjectCall tool.Object = "call_record"

	// ObjectTask is the member object of the line with the result of the task that a call has
	// become. It comes after the call's last line, and goes on with its steps.
	ObjectTask tool.Object = "task_record"

	// endNumbers are the numbers of steps that the end of a call takes, for the ids of what is derived from it.
	endNumbers = 3

	// callVersion is the version of call records. It changes when a reader of the version before
	// would misread them: steps and members that it does not know are passed over.
	callVersion = 1

	// stepBytes is how many bytes of written steps a call keeps in memory, to write them again with its end.
	stepBytes = 16 << 10
)

// callRecord is a line of a call, or of its task, as it is written and as it is read. docs/records.md specifies it.
type callRecord struct {
	Object  tool.Object `json:"object"`
	Version int         `json:"version"`
	CallHead
	Status    tool.Status            `json:"status"`
	EndedUS   *int64                 `json:"ended_us,omitempty"`
	Task      string                 `json:"task_id,omitempty"` // of ObjectTask
	CallInput                        // in the first line and in the last one
	Mappings  []tool.ExternalMapping `json:"external_mappings,omitempty"`
	From      int                    `json:"from,omitempty"`
	Steps     []json.RawMessage      `json:"steps"`
	Result    *CallResult            `json:"result,omitempty"`
	Error     *tool.Error            `json:"error,omitempty"`
}

// CallMembers returns the names of the members of a call record whose values can be left out of
// evidence: all but those that say what the record is.
func CallMembers() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[callRecord]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" &&
			!slices.Contains([]string{"object", "version", "invocation_id"}, name) {
			names = append(names, name)
		}
	}
	return names
}

// CallHead is what is known of a call when it begins.
type CallHead struct {
	Invocation tool.InvocationID `json:"invocation_id"`
	Tool       tool.Name         `json:"tool_id"` // set once it is resolved
	Actor      string            `json:"actor_ref,omitempty"`
	Client     *tool.ClientRef   `json:"client,omitempty"` // nil where it has not said what it is
	Profile    string            `json:"profile,omitempty"`
	Surface    tool.SurfaceID    `json:"surface_id,omitempty"`
	Parent     tool.InvocationID `json:"parent_invocation_id,omitempty"`
	Batch      string            `json:"batch_id,omitempty"` // as the client calls it
	tool.Origin
	Created time.Time   `json:"created_at"`
	Agent   *tool.Agent `json:"agent,omitempty"` // what the caller says of itself
	Trace   tool.Trace  `json:"traceparent,omitempty"`
}

// CallInput is what the caller sent, as a record may hold it: masked, and by reference where it is large.
type CallInput struct {
	Model      json.RawMessage `json:"model_input,omitempty"`
	ModelRef   string          `json:"model_input_ref,omitempty"`
	Observable json.RawMessage `json:"observable_input,omitempty"` // where it differs
}

// CallResult is what a call brought, as tool.Result has it.
type CallResult struct {
	Content    json.RawMessage `json:"content,omitempty"`
	Structured json.RawMessage `json:"structured_content,omitempty"`
	ContentRef string          `json:"content_ref,omitempty"`
	Summary    string          `json:"summary,omitempty"` // where the tool says that it has failed: its first words
	Output     tool.Output     `json:"output,omitempty"`
	Redacted   int             `json:"redacted,omitempty"` // its secrets that have marks in their place
	Detected   int             `json:"detected,omitempty"` // its secrets that the caller got, where somebody has looked

	// Unmodified says that what hooks had for the model reached nobody: an error of the server has no room for it.
	Unmodified bool `json:"unmodified,omitempty"`
}

// CallEnd is how a call ended.
type CallEnd struct {
	At time.Time
	// its server's id of the task that the call has become, where that has brought its result,
	// after the call's own end
	Task string
	CallResult
	Error *tool.Error
}

// Names of the steps that are neither a status of the invocation nor the type of an event.
// docs/records.md specifies them.
const (
	stepDecision   = "decision" // with a tool.PermissionDecision
	stepMutation   = "mutation"
	stepProgress   = "progress"
	stepRecord     = "record" // with a tool.Record
	stepAnswered   = "answered"
	stepResumed    = "resumed"
	stepNotStarted = "not_started"
	stepHookStart  = "hook_started"
	stepHook       = "hook"

	stepAnswerInvalid = "answer_invalid"
	stepCancel        = "cancel" // with a tool.Cancellation

	stepPersistResult = "result_persistence" // with a tool.ResultPersistence
)

// What stands in steps, as it is written and as it is read.
type (
	approvalStep struct {
		Approval string `json:"approval_id"`
	}
	partialStep struct {
		Refs []tool.ResultID `json:"partial_result_refs"`
	}
	mutationStep struct {
		tool.InputMutation
		Input json.RawMessage `json:"permission_input,omitempty"`
		Ref   string          `json:"permission_input_ref,omitempty"`
	}
	progressStep struct {
		Message string   `json:"message,omitempty"`
		Percent *float64 `json:"percent,omitempty"`
	}
	answerInvalidStep struct {
		Problem string `json:"problem"`
	}
	resumedStep struct {
		Surface tool.SurfaceID `json:"surface_id"`
	}
)

// Call is the call record of one invocation while it is made: all that the journal keeps of it and
// that cannot be derived. Read derives the standard's objects from it. Its methods may be called
// concurrently; the fields of CallHead and Input are set before the first line is written.
type Call struct {
	CallHead
	Input CallInput

	// Secrets masks what steps and the result say; nil: nothing. Input is masked by who sets it.
	Secrets *secret.Masker

	mu       sync.Mutex
	learned  *secret.Masker // see Mask; nil for Secrets
	status   tool.Status
	mappings []tool.ExternalMapping
	names    []tool.Standing
	steps    []json.RawMessage // encoded: those from base on
	base     int
	written  int    // steps that are in the journal
	text     []byte // of steps
	endedUS  int64
	ended    bool
	ran      bool  // it has been running
	err      error // of the first step that could not be encoded
}

// Begin makes c the record of a call with the client's native ids.
func (c *Call) Begin(head CallHead, client tool.ExternalMapping) {
	c.CallHead, c.mappings = head, []tool.ExternalMapping{client}
	c.steps, c.text = make([]json.RawMessage, 0, 10), make([]byte, 0, 640) // of most calls
	c.Move(tool.StatusPlanned, head.Created)
}

// Name notes that the lines of the call name s from now on.
func (c *Call) Name(s tool.Standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = append(c.names, s)
}

// IsOpen reports whether the journal has a line of the call.
func (c *Call) IsOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written > 0
}

// isNew reports whether the journal has no line of the call, which has not been running.
func (c *Call) isNew() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written == 0 && !c.ran
}

// Move adds the step that the invocation has come to a status.
func (c *Call) Move(s tool.Status, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status, c.ran = s, c.ran || s == tool.StatusRunning
	c.step(string(s), at, nil)
}

// Partial adds the step that a part of the result is there: the result of a call that this one has made.
func (c *Call) Partial(of tool.ResultID, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = tool.StatusPartialResult
	c.step(string(c.status), at, partialStep{[]tool.ResultID{of}})
}

// Scheduling says how a call may run beside others.
type Scheduling struct {
	Concurrency string `json:"concurrency"`     // safe, by_target or exclusive
	Because     string `json:"because"`         // the rule that says so
	Locks       []Lock `json:"locks,omitempty"` // what the call has for itself while it runs
}

// Lock is one of the standard's resource locks.
type Lock struct {
	// "server", "caller" (its other calls to the server) or a target: its kind, a colon, and its
	// one spelling
	Resource string `json:"resource"`
	Mode     string `json:"mode"` // "exclusive" or "shared"
}

// Queue adds the step that the invocation is queued, and how it is scheduled.
func (c *Call) Queue(s *Scheduling, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = tool.StatusQueued
	c.step(string(c.status), at, s)
}

// Ask adds the step that the invocation waits for a person. parent is the invocation that it goes on with; "" for none.
func (c *Call) Ask(approval string, parent tool.InvocationID, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status, c.Parent = tool.StatusAwaitingApproval, cmp.Or(parent, c.Parent)
	c.step(string(c.status), at, approvalStep{approval})
}

// NextDecision is the id of the decision that Decide adds, where that is the next step.
func (c *Call) NextDecision() tool.DecisionID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return tool.DecisionID(derivedID("dec_", c.Invocation, c.base+len(c.steps)))
}

// Decide adds a decision. One that asks is followed by Ask where a person is asked.
func (c *Call) Decide(d *tool.PermissionDecision, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if by, _ := d.Reason["by"].(string); d.Behavior == tool.Allow {
		c.ApprovedBy = by
	}
	c.step(stepDecision, at, d)
}

// AnswerInvalid adds that an answer to the question about the call was none. problem says why.
func (c *Call) AnswerInvalid(problem string, at time.Time) {
	c.add(stepAnswerInvalid, at, answerInvalidStep{problem})
}

// Mutate adds a change of the input, and what is the input since then.
func (c *Call) Mutate(m *tool.InputMutation, input json.RawMessage, ref string, at time.Time) {
	c.add(stepMutation, at, mutationStep{*m, input, ref})
}

// Progress adds a report of progress. percent may be nil.
func (c *Call) Progress(message string, percent *float64, at time.Time) {
	c.add(stepProgress, at, progressStep{message, percent})
}

// Event adds an event that no other step stands for.
func (c *Call) Event(t tool.EventType, data map[string]any, at time.Time) {
	c.add(string(t), at, data)
}

// Add adds records of the call that its executor or the loader of deferred tools has made. Events
// get the time of the call's own clock: by another one they could come after the end of the call.
func (c *Call) Add(at time.Time, records ...tool.Record) {
	for _, r := range records {
		if e, ok := r.(tool.Event); ok {
			e.Time = c.Created.Add(at.Sub(c.Created).Truncate(time.Microsecond)).UTC()
			r = e
		}
		c.add(stepRecord, at, r)
	}
}

// HookStarted adds that a hook begins to run, and returns the number of the step for Hook. before
// says that the tool has not run yet.
func (c *Call) HookStarted(hook, event string, before bool, at time.Time) (step int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step(stepHookStart, at, HookStep{Hook: hook, Event: event, Before: before})
	return c.base + len(c.steps) - 1
}

// HookStep is the beginning of a run of a hook, or its end.
type HookStep struct {
	Hook     string `json:"hook"`
	Event    string `json:"event"`
	Before   bool   `json:"before,omitempty"`   // the tool has not run yet
	Started  int    `json:"started,omitempty"`  // the step with which the run began
	Modified bool   `json:"modified,omitempty"` // it has changed the result
	tool.HookRun
}

// HookEnded adds what a run of a hook has brought.
func (c *Call) HookEnded(h *HookStep, at time.Time) { c.add(stepHook, at, h) }

// Answered adds the executor's native ids.
func (c *Call) Answered(m tool.ExternalMapping, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mappings = append(c.mappings, m)
	c.step(stepAnswered, at, nil)
}

// Resumed adds that the client has come back with another request, maybe on another surface.
func (c *Call) Resumed(m tool.ExternalMapping, surface tool.SurfaceID, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mappings = append(c.mappings, m)
	var data any
	if surface != c.Surface {
		data = resumedStep{surface}
	}
	c.step(stepResumed, at, data)
}

// NotStarted takes the last step, which was to running, back: it could not be recorded, so nothing ran.
func (c *Call) NotStarted(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran = false
	c.step(stepNotStarted, at, nil)
}

// Cancel adds what is known of a cancellation once the call has ended by it, or in spite of it.
func (c *Call) Cancel(facts *tool.Cancellation, at time.Time) { c.add(stepCancel, at, facts) }

// PersistResult adds what was decided about a large result.
func (c *Call) PersistResult(d *tool.ResultPersistence, at time.Time) {
	c.add(stepPersistResult, at, d)
}

func (c *Call) add(name string, at time.Time, data any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step(name, at, data)
}

// step adds a step; data may be nil. It is called with mu held.
func (c *Call) step(name string, at time.Time, data any) {
	start := len(c.text)
	out := append(append(append(c.text, `["`...), name...), `",`...)
	out = strconv.AppendInt(out, at.Sub(c.Created).Microseconds(), 10)
	if data != nil {
		var err error
		out = append(out, ',')
		from := len(out)
		if out, err = appendChecked(out, data); err != nil && c.err == nil {
			c.err = err
		}
		secrets := c.Secrets
		if name == stepProgress {
			secrets = c.Learned()
		}
		if secrets != nil && err == nil {
			if masked, n := secrets.JSON(out[from:]); n > 0 {
				out = append(out[:from], masked...)
			}
		}
		if bytes.IndexByte(out[from:], '\n') >= 0 {
			out = append(out[:from], OneLine(out[from:])...)
		}
	}
	c.text = append(out, ']')
	c.steps = append(c.steps, c.text[start:])
}

// Mask makes m mask what the server says from now on, in place of Secrets.
func (c *Call) Mask(m *secret.Masker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learned = m
}

// Learned masks what the server says: it is Secrets, or what Mask has put in its place. A caller
// chooses what it knows, so it is for no member that the hub writes: a caller whose password is
// "behavior" would take that out of decisions.
func (c *Call) Learned() *secret.Masker { return cmp.Or(c.learned, c.Secrets) }

// redact masks the secrets of what a call has brought, and adds the event of that.
func (c *Call) redact(end *CallEnd) {
	secrets := c.Learned()
	if secrets == nil {
		return
	}
	for _, text := range [...]*json.RawMessage{&end.Content, &end.Structured} {
		masked, n := secrets.JSON(*text)
		*text, end.Redacted = masked, end.Redacted+n
	}
	end.Summary, _ = secrets.Text(end.Summary)
	if e := end.Error; e != nil {
		message, n := secrets.Text(e.Message)
		native, k := secrets.JSON(e.NativeErrorRef)
		if n+k > 0 {
			masked := *e
			masked.Message, masked.NativeErrorRef = message, native
			end.Error, end.Redacted = &masked, end.Redacted+max(n, k) // both say the same
		}
	}
	if end.Redacted > 0 {
		c.Event(tool.EventResultRedacted, map[string]any{"result_id": tool.ResultOf(c.Invocation),
			"secrets": end.Redacted}, end.At)
	}
}

// line is a line with the steps so far: where end is not nil, the last one. It is called with mu held.
func (c *Call) line(end *CallEnd) (text []byte, l *callRecord, err error) {
	if c.err != nil {
		return nil, nil, c.err
	}
	l = &callRecord{Object: ObjectCall, Version: callVersion, CallHead: c.CallHead, Status: c.status,
		Mappings: c.mappings, From: c.written, Steps: c.steps[c.written-c.base:]}
	l.Created = c.Created.UTC()
	if c.written == 0 || end != nil {
		l.CallInput = c.Input
	}
	var r CallResult
	if end != nil {
		r, c.endedUS = end.CallResult, end.At.Sub(c.Created).Microseconds()
		l.EndedUS, l.From, l.Steps, l.Error = &c.endedUS, c.base, c.steps, end.Error
		if c.ended {
			l.Object, l.Task, l.From, l.Steps, l.Mappings, l.CallInput = ObjectTask, end.Task, c.written,
				c.steps[c.written-c.base:], nil, CallInput{}
		}
		// else the inputs lost their white space, too
		r.Content, r.Structured = OneLine(r.Content), OneLine(r.Structured)
		if len(r.Content) > 0 || len(r.Structured) > 0 || r.ContentRef != "" || r.Summary != "" || r.Output != "" ||
			max(r.Redacted, r.Detected) > 0 {
			end.CallResult = r
			l.Result = &end.CallResult
		}
	}
	for _, text := range [...]json.RawMessage{l.Model, l.Observable, r.Content, r.Structured} {
		if len(text) > 0 && !isJSON(text) {
			return nil, nil, errors.New("an input or a result is no JSON")
		}
	}
	// Most lines fit.
	size := 1600 + len(l.Model) + len(l.Observable) + len(r.Content) + len(r.Structured) + len(c.text)
	if text, err = appendJSON(make([]byte, 0, size), l); err != nil {
		return nil, nil, err
	}
	return append(OneLine(text), '\n'), l, nil
}

// derivedID is the id of an object that is derived from a step of an invocation: the same whenever it is read.
func derivedID(prefix string, id tool.InvocationID, position int) string {
	return prefix + strings.TrimPrefix(string(id), "inv_") + "." + strconv.Itoa(position)
}
