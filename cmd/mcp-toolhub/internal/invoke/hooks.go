package invoke

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// hooked is what hooks have to do with an invocation. An invocation that no hook can match has none.
type hooked struct {
	plan *hook.Plan

	permission *hook.Permission // the strictest that hooks have said so far
	by         string           // the hook that said it
	context    []hookContext    // for the model
	reports    int              // of progress, so far

	asked   bool // hooks of permission_request have run
	decided bool // hooks of permission_decision have run

	changed bool            // the result is not what the tool has answered, or is withheld
	kept    json.RawMessage // the result as the journal is to keep it; nil for the result itself
}

// hookContext is a text of a hook for the model.
type hookContext struct{ hook, text string }

// preHooks runs the hooks of pre_tool_use. What they change is checked as the caller's arguments
// were, and permission looks at it afterwards.
func (p *Pipeline) preHooks(ctx context.Context, inv *invocation) error {
	set := p.opts.Settings.Hooks()
	if set == nil {
		return nil
	}
	c := inv.call
	plan := set.Plan(&policy.Request{Tool: inv.listed.Tool, Facts: inv.facts, Profile: c.Surface.Profile,
		Actor: c.Actor})
	if plan == nil {
		return nil
	}
	again, err := plan.Again(ctx, &hookMoment{pipeline: p, inv: inv, event: hook.PreToolUse}, c.Meta)
	if err != nil {
		return err
	}
	if again != "" {
		return &tool.Failure{Class: tool.ClassHookBlocked, Code: "hook_recursion",
			Message: fmt.Sprintf("the hook %q has made this call, which "+
				"would run it again, and so nothing ran. The person who runs the hub can leave such calls out with "+
				"match or when", again)}
	}
	inv.hooks = &hooked{plan: plan}
	return p.runHooks(ctx, inv, hook.PreToolUse)
}

// runHooks runs the hooks of e. The error ends the call.
func (p *Pipeline) runHooks(ctx context.Context, inv *invocation, e hook.Event) error {
	if !inv.hooks.plan.Has(e) {
		return nil
	}
	inv.call.Arrival.Leave()
	return becauseOf(ctx, inv.hooks.plan.Run(ctx, e, &hookMoment{pipeline: p, inv: inv, event: e}))
}

// hookMoment implements hook.Moment for an invocation.
type hookMoment struct {
	pipeline *Pipeline
	inv      *invocation
	event    hook.Event
	started  int // the step of the run that has not ended
}

func (m *hookMoment) Waits(ctx context.Context) {
	m.inv.describe()
	m.pipeline.opts.note(ctx, m.inv, "a call whose hook waits for its turn is not in the journal")
}

func (m *hookMoment) Started(ctx context.Context, name string) {
	m.inv.describe()
	switch m.event {
	case hook.PreToolUse:
		m.inv.moveOnce(tool.StatusPreHooksRunning)
	case hook.PostToolUse, hook.PostToolUseFailure:
		m.inv.moveOnce(tool.StatusPostHooksRunning)
	}
	m.started = m.inv.record.HookStarted(name, string(m.event), m.event.Before(), time.Now())
	// what it does has a record, too, however the hub ends
	m.pipeline.opts.note(ctx, m.inv, "the run of a hook is not in the journal")
}

func (m *hookMoment) Ended(ctx context.Context, r *hook.Report) error {
	// a JSON-RPC error of the server has no room for them
	if m.event == hook.PostToolUseFailure && m.inv.outcome.Result == nil {
		r.IgnoreResult()
	}
	modified := r.Output.Result != nil || len(r.Output.Context) > 0
	m.inv.record.HookEnded(&persist.HookStep{Hook: r.Hook, Event: string(m.event), Before: m.event.Before(),
		Started: m.started, Modified: modified, HookRun: m.inv.hookRun(r)}, time.Now())
	return m.pipeline.applyHook(ctx, m.inv, r)
}

func (inv *invocation) moveOnce(s tool.Status) {
	if inv.status != s {
		inv.moveTo(s)
	}
}

func (m *hookMoment) Input(ctx context.Context) (in hook.Input, err error) {
	inv, e := m.inv, m.event
	r, err := requestOf(ctx, m.pipeline.opts.Settings.Gate(), inv, inv.inputs.permission)
	if err != nil {
		return in, err
	}
	in = hook.Input{Request: &r, CallID: string(inv.call.NativeCallID), Via: inv.call.Via}
	if e == hook.PermissionRequest || e == hook.PermissionDecision {
		d := inv.decision
		in.Decision = &d
	}
	if !e.Before() {
		in.Result, in.Class = inv.outcome.Result, inv.outcome.Class
		if inv.end.Error != nil {
			in.Error = cmp.Or(inv.end.Summary, inv.end.Error.Message)
		}
	}
	if e == hook.ResultPersistence && inv.hooks.kept != nil {
		in.Result = inv.hooks.kept
	}
	return in, nil
}

// applyHook does what a hook has said. The error ends the call.
func (p *Pipeline) applyHook(ctx context.Context, inv *invocation, r *hook.Report) error {
	h, o := inv.hooks, &r.Output
	if r.Err != nil {
		return p.hookFailed(ctx, inv, r)
	}
	for _, m := range o.Messages {
		p.opts.Logger.Info("a hook says", "hook", r.Hook, "message", m, "invocation", inv.id, "tool", inv.toolID())
	}
	for _, progress := range o.Progress {
		h.reports++
		inv.record.Progress(progress.Message, progress.Percent, time.Now())
		if inv.call.Progress != nil && r.Event.Before() { // smaller than all that comes later: progress must increase
			inv.call.Progress(tool.Progress{
				Params: fmt.Appendf(nil, `{"progress":%.7f,"message":%s}`, float64(h.reports)/1e7,
					rawjson.Quote(progress.Message))})
		}
	}
	for _, text := range o.Context {
		h.context = append(h.context, hookContext{r.Hook, text})
	}
	if o.Stop != nil {
		f := &tool.Failure{Class: tool.ClassHookBlocked,
			Message: fmt.Sprintf("the hook %q stopped this call, and nothing ran: %s", r.Hook, o.Stop.Reason)}
		if !r.Event.Before() {
			h.changed = true
			f.Message = fmt.Sprintf("the tool has run, and the hook %q withholds its result: %s", r.Hook, o.Stop.Reason)
		}
		return f
	}
	if q := o.Permission; q != nil && (h.permission == nil ||
		strictness(q.Behavior) > strictness(h.permission.Behavior)) {
		h.permission, h.by = q, r.Hook
	}
	if o.Input != nil {
		return p.changeInput(inv, r.Hook, o.Input)
	}
	if o.Result != nil {
		inv.changeResult(r.Event, o.Result)
	}
	return nil
}

func strictness(b tool.Behavior) int {
	switch b {
	case tool.Deny:
		return 2
	case tool.Ask:
		return 1
	}
	return 0
}

// hookFailed logs that a hook has failed. The error ends the call, where the hook is closed.
func (p *Pipeline) hookFailed(ctx context.Context, inv *invocation, r *hook.Report) error {
	level := slog.LevelWarn
	if ctx.Err() != nil {
		level = slog.LevelDebug
	}
	p.opts.Logger.Log(ctx, level, "a hook failed", "hook", r.Hook, "event", r.Event, "error", r.Err, "closed", r.Closed,
		"invocation", inv.id,
		"tool", inv.toolID())
	if ctx.Err() != nil {
		return &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled while a hook ran", Cause: r.Err}
	}
	if !r.Closed {
		return nil
	}
	f := &tool.Failure{Class: tool.ClassHookBlocked, Code: codeHookFailed, Cause: r.Err,
		Message: fmt.Sprintf("the hook %q failed, and nothing ran. The person who runs the hub has to mend it: its "+
			"log says what is wrong", r.Hook)}
	if !r.Event.Before() {
		f.Code, f.Message = codePostHookFailed,
			fmt.Sprintf("the tool has run, but the hook %q failed, and so its result is withheld. The person "+
				"who runs the hub has to mend it: its log says what is wrong", r.Hook)
	}
	return f
}

// The codes of faults of a hook's own.
const (
	codeHookFailed     = "hook_failed"
	codePostHookFailed = "post_hook_failed"
	codeMutationFailed = "input_mutation_failed" // it has changed the arguments so that they do not fit the tool
)

// changeInput puts arguments of a hook in the place of the present ones: validated again, and recorded.
func (p *Pipeline) changeInput(inv *invocation, name string, input json.RawMessage) error {
	input, err := rawjson.Line(input)
	if err != nil {
		return fmt.Errorf("read the arguments of the hook %q: %w", name, err)
	}
	if _, err := p.validator.check(inv, input, false); err != nil {
		var f *tool.Failure
		if errors.As(err, &f) {
			// which may name a field that models are not to know
			f.Code, f.Cause = codeMutationFailed, errors.New(f.Message)
			f.Message = fmt.Sprintf("the hook %q changed the arguments so that they do not fit the tool, and "+
				"nothing ran. The person who runs "+
				"the hub has to mend it: its log says what is wrong", name)
		}
		return err
	}
	inv.mutate(&p.opts, &tool.InputMutation{SourceType: "hook", SourceRef: "hook/" + name,
		Reason: "a hook changed the arguments"}, input)
	return nil
}

// changeResult puts a result of a hook in the place of the present one. An error stays one, unless
// the hook says otherwise.
func (inv *invocation) changeResult(e hook.Event, result json.RawMessage) {
	if e == hook.ResultPersistence {
		inv.hooks.kept = result
		return
	}
	if inv.outcome.Result == nil { // it is a JSON-RPC error of the server
		return
	}
	if _, says := rawjson.Get(result, "isError"); !says {
		if was, _ := inv.outcome.Object.Get("isError"); string(was) == "true" {
			if marked, err := rawjson.Set(result, "isError", []byte("true")); err == nil {
				result = marked
			}
		}
	}
	if line, err := rawjson.Line(result); err == nil {
		result = line
	}
	inv.setResult(tool.Reply{Result: result})
	inv.hooks.changed = true
	if isError, _ := inv.outcome.Object.Get("isError"); inv.failure == nil &&
		(string(isError) == "true") != (inv.outcome.Class != "") {
		judge(inv, "a hook says that the result is an error")
	}
}

// decide is d with what hooks say of permission. They can tighten every decision. They can spare a
// question only where no rule or limit asks it.
func (h *hooked) decide(d tool.PermissionDecision) tool.PermissionDecision {
	q := h.permission
	if q == nil {
		return d
	}
	asksByDefault := d.Behavior == tool.Ask && d.Reason["type"] == "default"
	switch q.Behavior {
	case tool.Deny:
		if d.Behavior == tool.Deny {
			return d
		}
	case tool.Ask:
		if d.Behavior != tool.Allow && d.Behavior != tool.Passthrough {
			return d
		}
	case tool.Allow:
		if !asksByDefault {
			return d
		}
	}
	message := q.Reason
	if message == "" {
		message = fmt.Sprintf("the hook %q says %s", h.by, q.Behavior)
	}
	if d.Behavior, d.Source = q.Behavior, "hook"; d.Behavior != tool.Ask {
		d.SuggestedUpdates = nil
	}
	d.Reason = map[string]any{"type": "hook", "message": message}
	d.RuleRefs = append([]string{"hook/" + h.by}, d.RuleRefs...)
	return d
}

// beforeAsking runs the hooks of permission_request, once. It reports whether they have changed what is to be decided.
func (p *Pipeline) beforeAsking(ctx context.Context, inv *invocation, d *tool.PermissionDecision) (changed bool,
	err error) {
	h := inv.hooks
	if h == nil || h.asked {
		return false, nil
	}
	h.asked, inv.decision = true, *d
	input, said := string(inv.inputs.permission), h.permission
	if err := p.runHooks(ctx, inv, hook.PermissionRequest); err != nil {
		return false, err
	}
	return said != h.permission || input != string(inv.inputs.permission), nil
}

// afterDeciding runs the hooks of permission_decision, once. They can deny what was allowed.
func (p *Pipeline) afterDeciding(ctx context.Context, inv *invocation, decided error) error {
	h := inv.hooks
	if h.decided || ctx.Err() != nil || (decided == nil) == (inv.decision.Behavior == tool.Deny) ||
		inv.decision.Behavior == tool.Ask {
		return decided // or there is no decision yet
	}
	h.decided, h.permission = true, nil
	if err := p.runHooks(ctx, inv, hook.PermissionDecision); err != nil && decided == nil {
		return err
	}
	if h.permission == nil || decided != nil {
		return decided
	}
	d := h.decide(inv.decision)
	inv.decided(&d)
	return denied(&d)
}

// postHooks runs the hooks of post_tool_use, or of post_tool_use_failure, where the tool has run,
// before results.redact has its say. A call that was canceled meanwhile does not keep them from
// running: they may keep a secret from being recorded.
func (p *Pipeline) postHooks(ctx context.Context, inv *invocation) error {
	defer inv.redact(p.opts.Logger)
	defer inv.release()
	if inv.hooks == nil {
		return nil
	}
	if !inv.started.IsZero() {
		e := hook.PostToolUse
		if inv.outcome.Class != "" {
			e = hook.PostToolUseFailure
		}
		if err := p.runHooks(context.WithoutCancel(ctx), inv, e); err != nil {
			inv.failure = nil
			inv.fail(err)
			inv.rpcErr, inv.outcome.Err = nil, nil
			inv.mapFailure()
		}
	}
	inv.addContext()
	return nil
}

// metaHook marks the content block in which a hook speaks to the model. Where a result has no
// content, it is the member of _meta that holds the text.
const metaHook = "toolhub/hook"

// addContext adds the texts of hooks for the model to the result.
func (inv *invocation) addContext() {
	if inv.outcome.Result == nil { // an error has no room for them
		inv.end.Unmodified = len(inv.hooks.context) > 0
		return
	}
	for _, c := range inv.hooks.context {
		inv.addText(metaHook, rawjson.Quote(c.hook), "", c.text)
	}
}

// keptResult runs the hooks of result_persistence, and returns what the journal is to keep of the
// result; nil for nothing. The invocation comes to its last status after them.
func (p *Pipeline) keptResult(ctx context.Context, inv *invocation) (json.RawMessage, rawjson.Object) {
	h := inv.hooks
	defer func() { inv.moveTo(inv.final) }()
	if inv.outcome.Result == nil {
		p.keptError(ctx, inv)
		limitError(inv)
	}
	if h == nil || inv.outcome.Result == nil {
		return inv.outcome.Result, inv.outcome.Object
	}
	if err := p.runHooks(context.WithoutCancel(ctx), inv, hook.ResultPersistence); err != nil {
		return nil, rawjson.Object{}
	}
	if h.kept == nil {
		return inv.outcome.Result, inv.outcome.Object
	}
	o, _ := rawjson.ReadObject(h.kept)
	return h.kept, o
}

// keptError runs the hooks of result_persistence for a JSON-RPC error of the server. They see it as
// a result: its text, and as structuredContent the error itself. What they make of that is what the
// journal keeps.
func (p *Pipeline) keptError(ctx context.Context, inv *invocation) {
	h := inv.hooks
	if h == nil || inv.rpcErr == nil || inv.started.IsZero() || !h.plan.Has(hook.ResultPersistence) {
		return
	}
	native := cmp.Or(string(inv.end.Error.NativeErrorRef), "{}")
	h.kept = fmt.Appendf(nil, `{"content":%s,"structuredContent":%s,"isError":true}`, inv.end.Content, native)
	was := h.kept
	err := p.runHooks(context.WithoutCancel(ctx), inv, hook.ResultPersistence)
	if err == nil && bytes.Equal(h.kept, was) {
		return
	}
	inv.outcome.Unkept = true
	e := *inv.end.Error // the caller's stays
	inv.end.Error, inv.end.Content = &e, nil
	e.Message, e.NativeErrorRef = "a hook keeps this error out of the journal", nil
	kept, _ := rawjson.ReadObject(h.kept)
	if err != nil {
		return
	}
	if content, ok := kept.Get("content"); ok {
		inv.end.Content, e.Message = objects(content), cmp.Or(summaryOf(kept), e.Message)
	}
	if native, ok := kept.Get("structuredContent"); ok && rawjson.IsObject(native) && rawjson.Valid(native) {
		e.NativeErrorRef = native
	}
}

// hookRun is what the record says of a run.
func (inv *invocation) hookRun(r *hook.Report) tool.HookRun {
	o := &r.Output
	run := tool.HookRun{Matcher: r.Matcher, DurationMS: r.Took.Milliseconds()}
	for _, m := range o.Messages {
		run.Outputs = append(run.Outputs, map[string]any{"type": "message", "text": m})
	}
	for _, progress := range o.Progress {
		said := map[string]any{"type": "progress", "message": progress.Message}
		if progress.Percent != nil {
			said["percent"] = *progress.Percent
		}
		run.Outputs = append(run.Outputs, said)
	}
	if len(r.Ignored) > 0 {
		run.Outputs = append(run.Outputs, map[string]any{"type": "ignored", "outputs": r.Ignored})
	}
	if r.Err != nil {
		fail := hook.FailOpen
		if r.Closed {
			fail = hook.FailClosed
		}
		run.Outputs = append(run.Outputs, map[string]any{"type": "failure", "message": r.Err.Error(), "fail": fail})
	}
	if o.Permission != nil {
		run.Permission = map[string]any{"behavior": o.Permission.Behavior, "reason": o.Permission.Reason}
	}
	if o.Input != nil {
		whole, ref := inv.inline(persist.OneLine(o.Input))
		if run.Input = whole; whole == nil {
			run.Input = rawjson.Quote(ref)
		}
	}
	for _, text := range o.Context {
		run.Context = append(run.Context, map[string]any{"type": "text", "text": text})
	}
	if o.Stop != nil {
		run.Stop = map[string]any{"reason": o.Stop.Reason}
	}
	if o.Result != nil {
		run.Output = rawjson.Quote(persist.Ref(o.Result))
	}
	return run
}
