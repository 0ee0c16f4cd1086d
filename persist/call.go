package persist

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const (
	// ObjectCall is the member object of call records.
	ObjectCall tool.Object = "call_record"

	// callVersion is the version of call records. It changes when a reader of the version before would misread them: steps and
	// members that it does not know are passed over.
	callVersion = 1

	// stepBytes is how many bytes of written steps a call keeps in memory, to write them again with its end.
	stepBytes = 16 << 10
)

// Names of the steps that are neither a status of the invocation nor the type of an event. docs/records.md specifies them.
const (
	stepDecision   = "decision"
	stepMutation   = "mutation"
	stepProgress   = "progress"
	stepRecord     = "record"
	stepAnswered   = "answered"
	stepResumed    = "resumed"
	stepNotStarted = "not_started"
)

// Call is the call record of one invocation while it is made: all that the journal keeps of it and that cannot be derived. Read
// derives the standard's objects from it. Its methods may be called concurrently; the fields of Input are set before the first
// line is written.
type Call struct {
	CallHead

	mu       sync.Mutex
	status   tool.Status
	mappings []tool.ExternalMapping
	parent   tool.InvocationID
	steps    []byte // encoded, with commas between them: those from base on
	base     int
	count    int // of all steps
	written  int // steps that are in the journal
	at       int // where in steps the others begin
	ended    bool
	err      error // of the first step that could not be encoded

	mapping [3]tool.ExternalMapping // room for mappings
	room    [640]byte               // for steps
}

// CallHead is what is known of a call when it begins.
type CallHead struct {
	Invocation tool.InvocationID
	Tool       tool.Name // set once it is resolved
	Surface    tool.SurfaceID
	Actor      string
	Created    time.Time
	Input      CallInput
}

// CallInput is what the caller sent, as a record may hold it: masked, and by reference where it is large.
type CallInput struct {
	Model      json.RawMessage
	ModelRef   string
	Observable json.RawMessage // where it differs
}

// CallEnd is how a call ended.
type CallEnd struct {
	At         time.Time
	Content    json.RawMessage // see tool.Result
	Structured json.RawMessage
	ContentRef string
	Error      *tool.Error
}

// Begin makes c the record of a call with the client's native ids.
func (c *Call) Begin(head CallHead, client tool.ExternalMapping) {
	c.CallHead, c.mappings, c.steps = head, append(c.mapping[:0], client), c.room[:0]
	c.Move(tool.StatusPlanned, head.Created)
}

// IsOpen reports whether the journal has a line of the call.
func (c *Call) IsOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.written > 0
}

// Move adds the step that the invocation has come to a status.
func (c *Call) Move(s tool.Status, at time.Time) {
	e := c.begin(string(s), at)
	c.status = s
	c.end(&e)
}

// Ask adds the step that the invocation waits for a person. parent is the invocation that it goes on with; "" for none.
func (c *Call) Ask(approval string, parent tool.InvocationID, at time.Time) {
	e := c.begin(string(tool.StatusAwaitingApproval), at)
	c.status, c.parent = tool.StatusAwaitingApproval, parent
	e.text(`,{"approval_id":`, approval)
	e.end()
	c.end(&e)
}

// Decide adds a decision and returns its id.
func (c *Call) Decide(d *tool.PermissionDecision, at time.Time) tool.DecisionID {
	e := c.begin(stepDecision, at)
	e.out = append(e.out, ',', '{')
	e.decided(d)
	e.end()
	id := c.count
	c.end(&e)
	if d.Behavior != tool.Ask {
		return "" // which nobody refers to before it is read
	}
	return tool.DecisionID(derivedID("dec_", c.Invocation, id))
}

// Mutate adds a change of the input, and what is the input since then.
func (c *Call) Mutate(m *tool.InputMutation, input json.RawMessage, ref string, at time.Time) {
	e := c.begin(stepMutation, at)
	e.text(`,{"source_type":`, m.SourceType)
	e.optText(`,"source_ref":`, m.SourceRef)
	e.optText(`,"from_input_ref":`, m.FromInputRef)
	e.optText(`,"to_input_ref":`, m.ToInputRef)
	optTexts(&e, `,"changed_fields":`, m.ChangedFields)
	e.optText(`,"reason":`, m.Reason)
	e.optRaw(`,"permission_input":`, input)
	e.optText(`,"permission_input_ref":`, ref)
	e.end()
	c.end(&e)
}

// Progress adds a report of progress. percent may be nil.
func (c *Call) Progress(message string, percent *float64, at time.Time) {
	e := c.begin(stepProgress, at)
	before := `,{"message":`
	if message != "" {
		e.text(before, message)
		before = `,"percent":`
	} else {
		before = `,{"percent":`
	}
	if percent != nil {
		e.any(before, *percent)
	}
	if message != "" || percent != nil {
		e.end()
	}
	c.end(&e)
}

// Event adds an event that no other step stands for.
func (c *Call) Event(t tool.EventType, data map[string]any, at time.Time) {
	e := c.begin(string(t), at)
	e.optMap(`,`, data)
	c.end(&e)
}

// Add adds records of the call that its executor or the loader of deferred tools has made.
func (c *Call) Add(at time.Time, records ...tool.Record) {
	for _, r := range records {
		e := c.begin(stepRecord, at)
		e.out = append(e.out, ',')
		line, err := appendRecord(e.out, r)
		if err != nil {
			e.fail(err)
		}
		e.out = line[:len(line)-1] // without the line break
		c.end(&e)
	}
}

// Answered adds the executor's native ids.
func (c *Call) Answered(m tool.ExternalMapping, at time.Time) {
	e := c.begin(stepAnswered, at)
	c.mappings = append(c.mappings, m)
	c.end(&e)
}

// Resumed adds that the client has come back with another request, maybe on another surface.
func (c *Call) Resumed(m tool.ExternalMapping, surface tool.SurfaceID, at time.Time) {
	e := c.begin(stepResumed, at)
	c.mappings = append(c.mappings, m)
	if surface != c.Surface {
		e.text(`,{"surface_id":`, string(surface))
		e.end()
	}
	c.end(&e)
}

// NotStarted takes the last step, which was to running, back: it could not be recorded, so nothing ran.
func (c *Call) NotStarted(at time.Time) {
	e := c.begin(stepNotStarted, at)
	c.end(&e)
}

// begin begins a step. It returns with mu held, until end.
func (c *Call) begin(name string, at time.Time) encoder {
	c.mu.Lock()
	e := encoder{out: c.steps}
	if len(e.out) > 0 {
		e.out = append(e.out, ',')
	}
	e.out = append(append(append(e.out, `["`...), name...), `",`...)
	e.out = strconv.AppendInt(e.out, at.Sub(c.Created).Microseconds(), 10)
	return e
}

func (c *Call) end(e *encoder) {
	c.steps = append(e.out, ']')
	c.count++
	if c.err == nil {
		c.err = e.err
	}
	c.mu.Unlock()
}

// line adds a line with the steps so far to dst: where end is not nil, the last one. It is called with mu held.
func (c *Call) line(dst []byte, end *CallEnd) ([]byte, error) {
	if c.err != nil {
		return dst, c.err
	}
	e := encoder{out: dst}
	e.out = append(append(append(e.out, `{"object":"`...), ObjectCall...), `","version":`...)
	e.out = strconv.AppendInt(e.out, callVersion, 10)
	e.text(`,"invocation_id":`, string(c.Invocation))
	e.text(`,"status":`, string(c.status))
	e.text(`,"tool_id":`, string(c.Tool))
	e.optText(`,"actor_ref":`, c.Actor)
	e.optText(`,"surface_id":`, string(c.Surface))
	e.optText(`,"parent_invocation_id":`, string(c.parent))
	e.time(`,"created_at":`, c.Created.UTC())
	if end != nil {
		e.int(`,"ended_us":`, end.At.Sub(c.Created).Microseconds())
	}
	if c.written == 0 || end != nil {
		e.optRaw(`,"model_input":`, c.Input.Model)
		e.optText(`,"model_input_ref":`, c.Input.ModelRef)
		e.optRaw(`,"observable_input":`, c.Input.Observable)
	}
	optList(&e, `,"external_mappings":`, c.mappings, (*encoder).mapping)
	from, steps := c.base, c.steps
	if end == nil {
		from, steps = c.written, bytes.TrimPrefix(steps[c.at:], []byte{','})
	}
	if from > 0 {
		e.int(`,"from":`, int64(from))
	}
	e.out = append(append(append(e.out, `,"steps":[`...), steps...), ']')
	if end != nil {
		e.callEnd(end)
	}
	e.end()
	if e.err != nil {
		return dst, e.err
	}
	return append(e.out, '\n'), nil
}

// wrote notes that all steps are in the journal. It is called with mu held.
func (c *Call) wrote() {
	c.written, c.at = c.count, len(c.steps)
	if c.at > stepBytes {
		c.steps, c.base, c.at = c.steps[:0], c.count, 0
	}
}

func (e *encoder) callEnd(end *CallEnd) {
	if len(end.Content) > 0 || len(end.Structured) > 0 || end.ContentRef != "" {
		e.out = append(e.out, `,"result":{`...)
		at := len(e.out)
		e.optRaw(`,"content":`, end.Content)
		e.optRaw(`,"structured_content":`, end.Structured)
		e.optText(`,"content_ref":`, end.ContentRef)
		e.out = append(e.out[:at], e.out[at+1:]...) // the first comma
		e.end()
	}
	if end.Error != nil {
		e.out = append(e.out, `,"error":`...)
		e.failure(end.Error)
	}
}

// decided writes the members of a decision that its step has: all but ids and times that are the step's.
func (e *encoder) decided(r *tool.PermissionDecision) {
	e.text(`"behavior":`, string(r.Behavior))
	e.optText(`,"mode":`, r.Mode)
	e.optText(`,"source":`, r.Source)
	e.optMap(`,"reason":`, r.Reason)
	optTexts(e, `,"rule_refs":`, r.RuleRefs)
	optTexts(e, `,"policy_refs":`, r.PolicyRefs)
	e.optRaw(`,"updated_input":`, r.UpdatedInput)
	e.optText(`,"updated_input_ref":`, r.UpdatedInputRef)
	if r.UserModified {
		e.bool(`,"user_modified":`, true)
	}
	optList(e, `,"suggested_updates":`, r.SuggestedUpdates, func(e *encoder, value *any) { e.any("", *value) })
	e.optMap(`,"pending_classifier_check":`, r.PendingClassifierCheck)
	e.optText(`,"blocked_path":`, r.BlockedPath)
	optList(e, `,"content_blocks":`, r.ContentBlocks, func(e *encoder, value *map[string]any) { e.any("", *value) })
	e.optText(`,"accept_feedback":`, r.AcceptFeedback)
	if r.ExpiresAt != nil {
		e.time(`,"expires_at":`, *r.ExpiresAt)
	}
}

// derivedID is the id of an object that is derived from a step of an invocation: the same whenever it is read.
func derivedID(prefix string, id tool.InvocationID, position int) string {
	return prefix + strings.TrimPrefix(string(id), "inv_") + "." + strconv.Itoa(position)
}
