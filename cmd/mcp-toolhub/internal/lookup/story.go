package lookup

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// story is what is known of one call. calls show -o json prints it.
type story struct {
	Visible    string          `json:"visible,omitempty"` // why the tool was on the caller's surface
	Invocation tool.Invocation `json:"invocation"`
	Result     *tool.Result    `json:"result,omitempty"` // nil while it runs
	// of the task that the call became; nil where it has brought none
	Task    *tool.Result      `json:"task_result,omitempty"`
	Objects []json.RawMessage `json:"objects"`         // in the order in which they came about
	Spans   *telemetry.Spans  `json:"spans,omitempty"` // nil where no hub that runs has them

	steps     []storyStep
	decisions []console.Decision
}

// storyStep is a line of the timeline.
type storyStep struct {
	at         time.Time
	what, said string
}

// ReadStory puts together what the store knows of a call.
func ReadStory(ctx context.Context, s store.Store, id tool.InvocationID) (*story, error) {
	lines, err := s.Lines(ctx, id)
	if err != nil {
		return nil, err
	}
	told := &story{}
	var fault error
	err = persist.Derive(lines, func(object json.RawMessage) bool {
		told.Objects = append(told.Objects, object)
		fault = told.take(object)
		return fault == nil
	})
	if err = errors.Join(err, fault); err != nil {
		return nil, fmt.Errorf("read the records of %s: %w", id, err)
	}
	standing, err := s.Standing(ctx, string(told.Invocation.SurfaceID))
	if err != nil {
		return nil, err
	}
	err = persist.Derive(standing, func(object json.RawMessage) bool {
		told.surface(object)
		return true
	})
	return told, err
}

// surface takes the reason why the tool was visible from the record of the surface.
func (t *story) surface(object json.RawMessage) {
	var r tool.SurfaceRecord
	if json.Unmarshal(object, &r) != nil || r.Object != tool.ObjectSurface {
		return
	}
	for _, l := range r.LoadedTools {
		if l.ToolID == t.Invocation.ToolID {
			t.Visible = "loaded: " + cmp.Or(l.Reason, r.SurfaceReason)
			return
		}
	}
	t.Visible = "not loaded on that surface: " + cmp.Or(r.SurfaceReason, "it was deferred")
}

// take takes in an object.
func (t *story) take(object json.RawMessage) error {
	var head tool.Head
	if err := json.Unmarshal(object, &head); err != nil {
		return err
	}
	switch head.Object {
	case tool.ObjectInvocation:
		t.Invocation = tool.Invocation{}
		return json.Unmarshal(object, &t.Invocation)
	case tool.ObjectResult:
		t.Result = new(tool.Result)
		return json.Unmarshal(object, t.Result)
	case tool.ObjectTaskResult:
		t.Task = new(tool.Result)
		err := json.Unmarshal(object, t.Task)
		t.step(t.Task.CreatedAt, "task result", string(t.Task.Status)+said("", t.Task.Summary))
		return err
	case tool.ObjectPermissionDecision:
		var r tool.PermissionDecisionRecord
		err := json.Unmarshal(object, &r)
		t.step(r.DecidedAt, "decision", decisionText(&r))
		by := cmp.Or(strings.Join(r.RuleRefs, ", "), r.Source)
		t.decisions = append(t.decisions, console.Decision{Then: string(r.Behavior), By: by, Why: reasonText(r.Reason)})
		return err
	case tool.ObjectInputMutation:
		var r tool.InputMutationRecord
		err := json.Unmarshal(object, &r)
		t.step(r.CreatedAt, "input changed", said("by", strings.TrimSpace(r.SourceType+" "+r.SourceRef), "fields",
			strings.Join(r.ChangedFields, ", "), "because", r.Reason,
			"before", storedInput(r.InvocationID, r.FromInputRef), "after", storedInput(r.InvocationID, r.ToInputRef)))
		return err
	case tool.ObjectResultPersistence:
		var r tool.ResultPersistenceRecord
		err := json.Unmarshal(object, &r)
		what := "large result"
		if r.Persisted != nil && r.Persisted.ArtifactID != "" || r.Strategy == tool.StrategyDropWithReason &&
			r.Threshold == nil {
			what = "artifact"
		}
		t.step(r.CreatedAt, what, persistenceText(&r.ResultPersistence))
		return err
	case tool.ObjectHook:
		var r tool.HookRecord
		err := json.Unmarshal(object, &r)
		t.step(r.EndedAt, "hook", said("", compact(r.Matcher), "at", r.Event, "took",
			r.EndedAt.Sub(r.StartedAt).String(), "permission", compact(r.Permission), "stop", compact(r.Stop)))
		return err
	case tool.ObjectProgress:
		var r tool.ProgressRecord
		err := json.Unmarshal(object, &r)
		t.step(r.Timestamp, "progress", r.Message)
		return err
	case tool.ObjectEvent:
		var e tool.Event
		err := json.Unmarshal(object, &e)
		t.event(&e)
		return err
	}
	return nil
}

// storedInput is the id of a stored input that was too large for the records; "" where they have
// it, or have to mask it.
func storedInput(id tool.InvocationID, ref string) string {
	digest, size, ok := persist.ParseRef(ref)
	if !ok || size <= persist.InlineLimit {
		return ""
	}
	return string(tool.InputOf(id, digest))
}

// event adds an event, unless the record that it is about says more.
func (t *story) event(e *tool.Event) {
	switch e.EventType {
	case tool.EventPermissionDecided, tool.EventHookPreStarted, tool.EventHookPreCompleted, tool.EventHookPostStarted,
		tool.EventHookPostCompleted, tool.EventInvocationProgress, tool.EventResultCreated, tool.EventResultPersisted,
		tool.EventResultNotPersisted:
		return
	}
	t.step(e.Time, strings.TrimPrefix(strings.TrimPrefix(string(e.EventType), "tool."), "invocation."), compact(e.Data))
}

func (t *story) step(at time.Time, what, said string) {
	t.steps = append(t.steps, storyStep{at, what, said})
}

// decisionText says what was decided, by which rule, and by whom.
func decisionText(r *tool.PermissionDecisionRecord) string {
	return string(r.Behavior) + said("", "", "by", strings.TrimSpace(r.Source+" "+r.Mode), "rules",
		strings.Join(r.RuleRefs, ", "),
		"because", reasonText(r.Reason), "policy", strings.Join(r.PolicyRefs, ", "))
}

// reasonText is the reason of a decision in words; as JSON where it has none.
func reasonText(reason map[string]any) string {
	if text, ok := reason["message"].(string); ok && text != "" {
		return text
	}
	return compact(reason)
}

// persistenceText says what was decided about a large result, and why.
func persistenceText(d *tool.ResultPersistence) string {
	uri, given := "", ""
	if d.Persisted != nil {
		uri = d.Persisted.URI
	}
	if d.PreviewSize > 0 {
		given = strconv.Itoa(d.PreviewSize) + " bytes"
	}
	return string(d.Strategy) + said("of", strconv.Itoa(d.OriginalSize)+" bytes", "given", given, "stored as", uri,
		"limit", compact(d.Threshold), "because", d.Reason)
}

// said writes names and values, without those that are "".
func said(pairs ...string) string {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		b.WriteString("  " + strings.TrimSpace(pairs[i]+" "+pairs[i+1]))
	}
	return b.String()
}

// compact writes data as JSON; "" where there is none.
func compact(data map[string]any) string {
	if len(data) == 0 {
		return ""
	}
	text, _ := json.Marshal(data) // it was read from JSON
	return string(text)
}

// Shown is the story as people look at it.
func (t *story) Shown() *console.Story {
	v := &t.Invocation
	s := &console.Story{ID: v.InvocationID, Tool: string(v.ToolID), Status: v.Status, Result: t.results(),
		Decisions: t.decisions}
	row := func(name, value string) {
		if value != "" {
			s.Rows = append(s.Rows, console.Row{Name: name, Value: value})
		}
	}
	if t.Result != nil && t.Result.Error != nil {
		s.Class = string(t.Result.Error.ErrorClass)
	}
	client := ""
	if v.Client != nil {
		client = strings.TrimSpace(v.Client.Name + " " + v.Client.Version)
	}
	row("caller", strings.TrimSpace(v.ActorRef+said("client", client, "profile", v.Profile, "from", v.Address)))
	row("approved by", v.ApprovedBy)
	row("hub", v.Hub)
	row("surface", string(v.SurfaceID)+said("", t.Visible))
	row("began", v.CreatedAt.Local().Format("2006-01-02 15:04:05.000 MST"))
	row("part of", string(v.ParentInvocationID)+said("batch", v.Batch))
	for _, m := range v.ExternalMappings {
		row(m.Role, strings.TrimSpace(said("server", m.ServerID, "tool", m.ToolName, "id", m.JSONRPCRequestID,
			"session", m.SessionID, "protocol", m.ProtocolVersion)))
	}
	for _, ref := range v.RuntimeRefs {
		if trace, is := strings.CutPrefix(ref, tool.TraceRuntime); is {
			row("trace", trace)
		}
	}
	row("input", cmp.Or(string(v.ModelInput), v.ModelInputRef))
	if changed := v.PermissionInput; len(changed) > 0 {
		s.Changed = udiff.Unified("as the caller wrote it", "as it ran", indented(v.ModelInput), indented(changed))
	}
	for _, step := range t.steps {
		s.Steps = append(s.Steps, console.Step{After: step.at.Sub(v.CreatedAt), What: step.what,
			Said: strings.TrimSpace(step.said)})
	}
	return s
}

// results are what the call, and its task, ended with.
func (t *story) results() (rows []console.Row) {
	row := func(name, value string) {
		if value != "" {
			rows = append(rows, console.Row{Name: name, Value: value})
		}
	}
	for i, r := range []*tool.Result{t.Result, t.Task} {
		if r == nil {
			continue
		}
		row([]string{"result", "task result"}[i], strings.TrimSpace(string(r.Status)+said("", r.Summary)))
		if r.Error != nil {
			row("error", fmt.Sprintf("%s (%s): %s", r.Error.ErrorClass, r.Error.ErrorCode, r.Error.Message))
		}
		row("output", string(r.Output))
		if r.Redaction != tool.RedactionNone {
			row("redaction", string(r.Redaction))
		}
		row("content", cmp.Or(string(r.Content), string(r.StructuredContent)))
		row("reference", r.ContentRef)
		for _, a := range r.Artifacts {
			row("artifact", fmt.Sprintf("%s  version %d  %s  %d bytes  sha256 %s  %s", a.Name, a.Version, a.MediaType,
				a.Size, a.SHA256, a.URI))
		}
	}
	return rows
}

func indented(text json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text) + "\n"
	}
	return b.String() + "\n"
}

// Text is the story for a person at a terminal.
func (t *story) Text() string {
	s := t.Shown()
	var b strings.Builder
	rows := func(all []console.Row) {
		for _, r := range all {
			fmt.Fprintf(&b, "%-12s%s\n", r.Name, r.Value)
		}
	}
	fmt.Fprintf(&b, "%s  %s  %s\n", s.ID, s.Tool, s.Status)
	rows(s.Rows)
	b.WriteString(s.Changed + "\n")
	for _, step := range s.Steps {
		fmt.Fprintf(&b, "%+11.3f ms  %-16s  %s\n", float64(step.After.Microseconds())/1000, step.What, step.Said)
	}
	if t.Spans != nil {
		fmt.Fprintf(&b, "\n%-14s  %-14s  SPAN\n", "AFTER", "TOOK")
		for _, span := range t.Spans.All {
			fmt.Fprintf(&b, "%+11.3f ms  %11.3f ms  %s\n", span.After.Seconds()*1000, span.Took.Seconds()*1000,
				span.Name)
		}
		if t.Spans.Trace != "" {
			fmt.Fprintf(&b, "These are sent to the collector, as the trace %s.\n", t.Spans.Trace)
		}
	}
	b.WriteByte('\n')
	if t.Result == nil {
		rows([]console.Row{{Name: "result", Value: "none so far"}})
	}
	rows(s.Result)
	return b.String()
}
