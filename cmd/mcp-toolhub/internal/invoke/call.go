package invoke

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// resolveTool finds the tool among those that the caller sees, by any of its names. A name that is hidden from the
// caller and one that never was get the same bytes. A call of a deferred tool whose declaration the caller has not got
// is refused.
func (p *Pipeline) resolveTool(_ context.Context, inv *invocation) error {
	faulty := inv.readAgent()
	if r := inv.call.Request; r != nil {
		if !inv.resumed {
			inv.listed = &tool.Listed{Tool: r.Method}
			p.found(inv, r.Method)
			inv.moveTo(tool.StatusSelected)
		}
		return faulty
	}
	l, ok := inv.call.Surface.Resolve(inv.call.Name)
	if refused := inv.call.Refused; refused != nil {
		inv.rpcErr = refused
		if ok {
			p.found(inv, l.Tool)
		} else if hidden := p.concealed(inv); hidden != nil {
			return hidden
		}
		return &tool.Failure{Class: tool.ClassInvalidArguments, Message: refused.Message}
	}
	if !ok {
		return p.unknown(inv)
	}
	if inv.resumed {
		if l.Tool.Name != inv.listed.Tool.Name {
			return fmt.Errorf("go on with %q: the call is one of %q", l.Tool.Name, inv.listed.Tool.Name)
		}
		inv.listed = l
		return nil
	}
	inv.listed = l
	p.found(inv, l.Tool)
	inv.moveTo(tool.StatusSelected)
	if m := inv.call.Member; m != nil && m.Aborted != nil {
		return m.Aborted
	}
	if faulty != nil {
		return faulty
	}
	if p.opts.Admit == nil || !inv.call.Surface.IsDeferred(l.Tool.Name) {
		return nil
	}
	c := inv.call
	records, err := p.opts.Admit.Admit(tool.DeferredCall{Invocation: inv.id, Surface: c.Surface, Listed: l,
		Actor: c.Actor, SelectionRef: c.SelectionRef, Loaded: c.Loaded})
	inv.record.Add(time.Now(), records...)
	return err
}

// unknown is the failure of a call whose name no tool has that the caller sees.
func (p *Pipeline) unknown(inv *invocation) error {
	what := "list the tools and use a name from there"
	if finder := inv.call.Surface.Finder(); finder != "" && len(inv.call.Surface.Deferred) > 0 {
		what = "find one with " + string(finder)
	}
	hidden := p.concealed(inv)
	inv.rpcErr = &tool.RPCError{Code: tool.CodeInvalidParams, Message: fmt.Sprintf("unknown tool %q: %s",
		inv.call.Name, what)}
	if hidden != nil {
		return hidden
	}
	if inv.resumed {
		return &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "tool_gone", OutcomeUnknown: true,
			Message: fmt.Sprintf("%q waited for input, and is offered no more: check whether the call has taken "+
				"effect; %s", inv.call.Name, what)}
	}
	return &tool.Failure{Class: tool.ClassUnknownTool, Code: "tool_not_available",
		Message: fmt.Sprintf("no tool %q is offered here: %s", inv.call.Name, what)}
}

// found notes which tool the call is of.
func (p *Pipeline) found(inv *invocation, t *tool.Tool) {
	inv.record.Tool, inv.facts = t.Name, p.opts.Settings.Gate().Facts(t)
	inv.record.Name(inv.facts)
}

// concealed records the refusal of a call of a tool that the policy hides from the caller; nil
// where there is no such tool. The caller gets what an unknown name gets.
func (p *Pipeline) concealed(inv *invocation) error {
	t, by, hidden := inv.call.Surface.Hidden(inv.call.Name)
	if !hidden {
		return nil
	}
	g := p.opts.Settings.Gate()
	inv.hidden = true
	p.found(inv, t)
	inv.record.Name(g.Engine)
	d := g.Engine.Hidden(by, policy.Request{Invocation: inv.id, Tool: t, Facts: inv.facts, Actor: inv.call.Actor,
		Profile: inv.call.Surface.Profile})
	inv.decided(&d)
	return denied(&d)
}

// readAgent notes what the caller says of itself.
func (inv *invocation) readAgent() (err error) {
	if inv.call.Meta == nil || inv.resumed {
		return nil
	}
	inv.record.Trace = tool.TraceOf(inv.call.Meta)
	a, err := tool.AgentOf(inv.call.Meta)
	if err != nil {
		return &tool.Failure{Class: tool.ClassInvalidArguments, Code: "invalid_meta", Message: err.Error()}
	}
	if a != nil {
		for _, text := range []*string{&a.Run, &a.Name, &a.Parent, &a.Role} {
			*text, _ = inv.record.Secrets.Text(*text)
		}
	}
	inv.record.Agent = a
	return nil
}

// parseSchema checks the arguments against the tool's input schema before anything has an effect. It
// derives the inputs of permission and of the call from the observable one.
func (p *Pipeline) parseSchema(_ context.Context, inv *invocation) error {
	args := inv.call.Arguments
	if rawjson.IsNull(args) {
		args = json.RawMessage(`{}`)
	}
	if !rawjson.IsObject(args) {
		inv.moveTo(tool.StatusSchemaParseFailed)
		inv.rpcErr = &tool.RPCError{Code: tool.CodeInvalidParams, Message: "arguments must be a JSON object"}
		return &tool.Failure{Class: tool.ClassInvalidArguments, Message: "arguments must be a JSON object"}
	}
	for {
		inv.inputs.observable = args
		for _, pointer := range inv.listed.Tool.Internal { // which only hooks and people may set
			if name := pointer[1:]; holdsAt(args, strings.Split(name, "/")) {
				inv.moveTo(tool.StatusSchemaParseFailed)
				return &tool.Failure{Class: tool.ClassInvalidArguments,
					Message: fmt.Sprintf("the argument %q is not for callers: leave it out", name)}
			}
		}
		to, err := p.validator.check(inv, args, true)
		if err != nil {
			return err
		}
		if to == nil { // the inputs share bytes until one of them changes
			inv.inputs.permission, inv.inputs.call = args, args
			inv.moveTo(tool.StatusArgumentsReady)
			return nil
		}
		inv.inputs.permission = args
		inv.mutate(&p.opts, &tool.InputMutation{SourceType: "runtime", SourceRef: "schema",
			Reason: "the tool takes the JSON that a text holds, and no text"}, to)
		args = to
	}
}

// holdsAt reports whether value has something at the end of a JSON pointer, where * stands for
// every element of an array. Some servers do not tell letter case.
func holdsAt(value []byte, steps []string) (found bool) {
	if len(steps) == 0 {
		return true
	}
	if rawjson.IsObject(value) {
		name := rawjson.PointerName(steps[0])
		_ = rawjson.Members(value, func(m rawjson.Member) bool {
			found = strings.EqualFold(m.Name(), name) && holdsAt(m.Value, steps[1:])
			return !found
		})
	} else if steps[0] == "*" && value[0] == '[' {
		_ = rawjson.Elements(value, func(e []byte) bool {
			found = holdsAt(e, steps[1:])
			return !found
		})
	}
	return found
}

// validator checks arguments against the input schemas of tools, and results against their output schemas.
type validator struct {
	schemas *schema.Cache
	logger  *slog.Logger
	warned  sync.Map // names of tools whose results do not fit: the log has one line of each
}

// onlyOnce refuses arguments in which an object has a member twice. Each reader takes another one
// of the two, so rules and people would judge a call that does not happen.
func onlyOnce(args json.RawMessage) *tool.Failure {
	name, twice := rawjson.Repeated(args, bytes.Compare)
	if !twice {
		return nil
	}
	return repeated(name, "one object of the arguments")
}

// repeated is the refusal of a member that stands twice somewhere.
func repeated(name, where string) *tool.Failure {
	return &tool.Failure{Class: tool.ClassInvalidArguments, Code: "argument_repeated",
		Message: fmt.Sprintf("the member %.100q stands twice in %s: write it once", name, where)}
}

// textAsJSON returns the arguments with JSON in place of each text that holds it, where they fit the schema of t
// only so: some models and clients write an object as text. It is nil where that does not help.
func (v *validator) textAsJSON(t *tool.Tool, args json.RawMessage, invalid *schema.Invalid) json.RawMessage {
	to := args
	for _, problem := range invalid.Problems {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(strings.TrimPrefix(problem.Path, "/"))
		value, _ := rawjson.Get(to, name)
		text, _ := rawjson.String(value)
		inner, err := rawjson.Line([]byte(text))
		if err != nil || len(inner) == 0 || inner[0] == '"' {
			return nil
		}
		if to, err = rawjson.Set(to, name, inner); err != nil {
			return nil
		}
	}
	if v.invalid(t, to) != nil {
		return nil
	}
	return to
}

// check checks arguments that come from outside, and that they fit the input schema of the invocation's tool. Where
// they fit once texts are read as JSON, and texts says that they may be, it returns what they are then.
func (v *validator) check(inv *invocation, args json.RawMessage, texts bool) (to json.RawMessage, err error) {
	if f := onlyOnce(args); f != nil {
		inv.moveTo(tool.StatusSchemaParseFailed)
		return nil, f
	}
	t := inv.listed.Tool
	invalid := v.invalid(t, args)
	if invalid == nil {
		return nil, nil
	}
	if texts {
		if to = v.textAsJSON(t, args, invalid); to != nil {
			return to, nil
		}
	}
	inv.invalid = true
	inv.record.Event(tool.EventInvocationValidationFailed, map[string]any{"problems": invalid.Problems,
		"mode": string(t.Validate)}, time.Now())
	if t.Validate == tool.ValidateWarn {
		return nil, nil
	}
	inv.moveTo(tool.StatusSchemaParseFailed)
	return nil, &tool.Failure{Class: tool.ClassSchemaValidationFailed, Message: invalid.Error()}
}

// invalid returns what the schema of t has against arguments; nil where it has nothing, or nobody checks.
func (v *validator) invalid(t *tool.Tool, args json.RawMessage) *schema.Invalid {
	if t.Validate == tool.ValidateOff {
		return nil
	}
	text, digest := t.RuntimeSchema()
	s, err := v.schemas.Get(digest, text)
	if err != nil {
		// Admission replaces schemas that do not compile, so this is a fault of the hub; the server checks for itself.
		v.logger.Warn("input schema does not compile: arguments are not checked", "tool", t.Name, "error", err)
		return nil
	}
	return s.Validate(args)
}

// execute calls the executor. The journal has a line of the call before that, so that whatever has
// run has a record, however the hub ends.
func (p *Pipeline) execute(ctx context.Context, inv *invocation) error {
	t := inv.listed.Tool
	ex, ok := p.opts.Executors[t.Name.Source()]
	if r := inv.call.Request; r != nil {
		ex = r
	} else if t.Hub != nil {
		ex = t.Hub
	} else if !ok {
		return fmt.Errorf("execute %q: no executor for source %q", t.Name, t.Name.Source())
	}
	if ctx.Err() != nil {
		return becauseOf(ctx, &tool.Failure{Class: tool.ClassCanceled,
			Message: "the call was canceled before it began"})
	}
	if inv.waited {
		if err := p.judgeAgain(ctx, inv); err != nil {
			return err
		}
	}
	inv.moveTo(tool.StatusRunning)
	inv.describe()
	if err := p.opts.Journal.Announce(ctx, &inv.record); err != nil {
		inv.record.NotStarted(time.Now())
		if ctx.Err() != nil {
			return &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled before it began",
				Cause: err}
		}
		return &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "journal_unavailable", Cause: err,
			Message: "the hub cannot write its journal, so it runs nothing: its log and its health say why; try " +
				"again when that is mended"}
	}
	if inv.started.IsZero() {
		inv.started = time.Now()
	}
	reply, err := p.callExecutor(ctx, ex, inv)
	if reply.Mapping != (tool.ExternalMapping{}) {
		inv.record.Answered(reply.Mapping, time.Now())
	}
	if err != nil {
		inv.reply.Artifacts, inv.reply.Mapping = reply.Artifacts, reply.Mapping
		return err
	}
	if reply.NeedsInput && !inv.call.suspends() {
		return fmt.Errorf("execute %q: the server needs input of a client that cannot give it with another request",
			t.Name)
	}
	inv.reply = reply
	return nil
}

// callExecutor calls the executor, for the call or for a retry. Where the tool's interrupt behaviour
// is to block, its context does not end with the client's request: the call is let finish, and what
// ended is the client's wait.
func (p *Pipeline) callExecutor(ctx context.Context, ex Executor, inv *invocation) (tool.Reply, error) {
	c, t := inv.call, inv.listed.Tool
	meta := c.Meta
	if inv.trace != nil {
		meta = inv.trace.Hop(ctx, t, meta)
	}
	x := &reporter{inv: inv, asker: c.Ask, server: t.Server,
		note: func(failure string) { p.opts.note(ctx, inv, failure) }}
	defer x.close()
	e := &tool.Execution{
		Invocation: inv.id, Tool: t, Params: c.Params, Arguments: inv.inputs.call,
		Command: inv.permitted.Command,
		Aims:    inv.permitted.Aims, Meta: meta, Hop: c.Hop, Session: c.Session, Actor: c.Actor, Surface: c.Surface,
		Loaded:       c.Loaded,
		InputByRetry: c.suspends(), Notify: c.Notify, Hears: c.Hears, Arrival: c.Arrival,
		Progress: x.report, Record: x.record,
	}
	if c.Ask != nil {
		e.Ask = x.ask
	}
	patient := ctx
	if inv.facts != nil && inv.facts.Interrupt.Value == facts.InterruptBlock {
		patient = context.WithoutCancel(ctx)
	}
	reply, err := ex.Execute(patient, e)
	if err == nil {
		return reply, nil
	}
	if need := tool.NeedsSignIn(err); need != nil && p.opts.SignIn != nil {
		if err = p.opts.SignIn.SignIn(ctx, x.signIn(e, need)); err == nil {
			reply, err = ex.Execute(patient, e)
		}
	}
	return reply, becauseOf(patient, err) // what is let finish has failed by itself
}

// becauseOf returns err, or why the call was canceled where its door has given a reason: a
// *tool.Failure as the cause of ctx.
func becauseOf(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	why, ok := errors.AsType[*tool.Failure](context.Cause(ctx))
	if !ok {
		return err
	}
	reason := *why
	if f, ok := errors.AsType[*tool.Failure](err); ok {
		reason.OutcomeUnknown, reason.Ended = reason.OutcomeUnknown || f.OutcomeUnknown, f.Ended
	} else {
		reason.OutcomeUnknown = true
	}
	reason.Cause = err
	return &reason
}
