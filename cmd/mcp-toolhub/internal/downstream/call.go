package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream/internal/suspended"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// toolCalls serves tools/call through the pipeline.
type toolCalls struct {
	*parts
}

// isCall reports whether m is a tools/call. A malformed one goes on, with its Fault: it is an invocation, too.
func isCall(m *jsonrpc.Message) bool { return m.Method == tool.MethodToolsCall && m.IsRequest() }

// serve reads what the pipeline needs out of the raw request, and writes the outcome back.
func (c *toolCalls) serve(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError {
	switch {
	case m.Fault != nil:
		name, _ := textParam(m, "name")
		return c.refuse(ctx, p, m, name, m.Fault)
	case !rawjson.IsObject(m.Params):
		return c.refuse(ctx, p, m, "", invalidParams("params are missing"))
	}
	name, refusal := textParam(m, "name")
	if refusal != nil {
		return c.refuse(ctx, p, m, "", refusal)
	}
	if p.meta.malformed {
		return c.refuse(ctx, p, m, name, invalidParams(`"_meta" must be an object`))
	}
	surface, refusal := c.surfaces.forCall(ctx, p, name)
	if refusal != nil {
		return refusal
	}
	to := targetOf(surface, name, m.Object, p.meta.ref)
	if p.headers != nil {
		if refusal := checkParams(surface, name, to.given, p.headers); refusal != nil {
			return c.refuse(ctx, p, m, name, refusal)
		}
		p.headers = nil
	}
	if to.via != "" {
		if surface, refusal = c.surfaces.forCall(ctx, p, to.name); refusal != nil {
			return refusal
		}
	}
	name = to.name
	server := "" // where there is no such tool
	if l, ok := surface.Resolve(name); ok {
		server = l.Tool.Server
		if h := l.Tool.Hub; h != nil && h.Batches {
			if surface, refusal = c.surfaces.forBatch(ctx, p, surface, to.arguments); refusal != nil {
				return refusal
			}
		}
	}
	state, _ := m.Object.Get("requestState")
	if t, _, hidden := surface.Hidden(name); hidden && state != nil { // by a rule that has come while the call waits
		server = t.Server
	}
	op := &toolCall{toolCalls: c, call: invoke.Call{
		Surface: surface, Name: name, Params: to.params, Arguments: to.arguments, Meta: p.meta.onward, Hop: p.hop,
		NativeCallID: m.ID, Method: m.Method, Actor: p.actor, Session: p.session,
		Via: to.via, SelectionRef: to.ref, Arrival: p.arrival,
	}}
	a := &attempt{peer: p, op: op, params: to.params, requestState: state, server: server, reply: r,
		token: p.meta.token, retries: p.modern}
	op.call.Cut = a
	if p.meta.batch != nil {
		if op.call.Member, refusal = groupOf(p.meta.batch); refusal != nil {
			return c.refuse(ctx, p, m, name, refusal)
		}
	}
	if !p.modern {
		op.call.Loaded = p.caller // on 2026-07-28 no session knows anything: there a selection_ref says it
	}
	if task, ok := m.Object.Get("task"); ok && rawjson.IsObject(task) && !p.modern {
		defer c.ownerships.expect(server)()
	}
	c.suspensions.serve(ctx, a)
	return nil
}

// refuse records a malformed tools/call, and returns what the client gets. name is "" where there is none.
func (c *toolCalls) refuse(ctx context.Context, p *peer, m *jsonrpc.Message, name string,
	why *tool.RPCError) *tool.RPCError {
	surface, refusal := c.surfaces.of(p)
	if refusal != nil {
		return refusal
	}
	arguments, _ := m.Object.Get("arguments")
	return c.deps.Pipeline.Invoke(ctx, &invoke.Call{Surface: surface, Name: name, Arguments: arguments,
		NativeCallID: m.ID, Method: m.Method,
		Actor: p.actor, Session: p.session, Refused: why}).Err
}

// toolCall is the operation of a tools/call.
type toolCall struct {
	*toolCalls
	call invoke.Call // apart from what depends on the attempt
}

func (c *toolCall) identify(s *suspended.State) {
	s.Method, s.Arguments = c.call.Method, suspended.ArgumentsDigest(c.call.Arguments)
	if l, ok := c.call.Surface.Resolve(c.call.Name); ok {
		s.Name = string(l.Tool.Name)
	} else if t, _, hidden := c.call.Surface.Hidden(c.call.Name); hidden {
		s.Name = string(t.Name)
	}
}

func (c *toolCall) run(ctx context.Context, a *attempt) invoke.Outcome {
	call := &c.call
	call.Invocation, call.Params, call.InputByRetry = a.invocation, a.params, a.retries
	call.Ask, call.Notify = a.ask, a.notes.notify
	if a.retries || a.token != nil {
		call.Progress = a.notes.report
	}
	if a.retries { // the next attempt may take progress where this one takes none
		call.Hears = a.notes.hears
	}
	if a.before == nil {
		return c.deps.Pipeline.Invoke(ctx, call)
	}
	return a.before.Resume(ctx, call)
}

// Whole notes what a result names that the client gets a part of: it can read the rest.
func (a *attempt) Whole(result rawjson.Object) {
	a.peer.caller.remember(a.server, result.Text())
}

func (c *toolCall) answer(_ context.Context, a *attempt, outcome invoke.Outcome) {
	r := a.reply
	if outcome.Err != nil {
		c.ownerships.elicitsFirst(a.peer, a.server, outcome.Err)
		r.refuse(labelledError(a.server, outcome.Err))
		return
	}
	if outcome.Status == tool.StatusSucceeded {
		a.peer.caller.remember(a.server, outcome.Result)
	}
	if outcome.Task != nil && outcome.Status == tool.StatusYielded {
		kept := c.ownerships.keepTask(a.peer, a.server, outcome.Task, a.token)
		defer c.ownerships.release(kept...)
		var err error
		if outcome, err = kept[0].show(a.peer, outcome); err != nil {
			r.refuse(&tool.RPCError{Code: tool.CodeInternalError, Message: "the server's task cannot be shown"})
			return
		}
	}
	called := (*tool.Tool)(nil)
	if l, ok := c.call.Surface.Resolve(c.call.Name); ok {
		called = l.Tool
	}
	text, err := c.resultFor(a.peer, outcome, called)
	if err != nil {
		c.deps.Logger.Error("result cannot be sent", "invocation", outcome.InvocationID, "error", err)
		r.refuse(&tool.RPCError{Code: tool.CodeInternalError, Message: "the tool's result is no JSON object"})
		return
	}
	text.disk, text.free = c.deps.Spool, outcome.Free
	outcome = invoke.Outcome{} // nothing holds the result but text
	if r.answer(text) && text.free != nil {
		text.free()
	}
}

// callTarget is the tool that a tools/call asks for.
type callTarget struct {
	name string
	via  string // the hub tool that the caller has put the call into; "" otherwise
	ref  string // the selection_ref that came with it

	params, arguments json.RawMessage
	given             json.RawMessage // the arguments as the client sent them
}

// targetOf reads a call of name. A call of a hub tool that forwards becomes the call that it stands
// for; the rest of the request stays. Without a valid name in it, or with a member twice, the call
// is one of the hub tool itself, and fails by its arguments. metaRef is the selection_ref of the
// request's _meta; nil where that has none.
func targetOf(surface *tool.Surface, name string, params rawjson.Object, metaRef json.RawMessage) callTarget {
	args, _ := params.Get("arguments")
	c := callTarget{name: name, params: params.Text(), arguments: args, given: args}
	c.ref, _ = rawjson.String(metaRef)
	l, ok := surface.Resolve(name)
	if !ok || l.Tool.Hub == nil || !l.Tool.Hub.Forwards || !rawjson.IsObject(args) {
		return c
	}
	raw, _ := rawjson.Get(args, "name")
	inner, isText := rawjson.String(raw)
	ref, hasRef := rawjson.Get(args, "selection_ref")
	refText, refIsText := rawjson.String(ref)
	arguments, fits := innerArguments(args)
	_, twice := rawjson.Repeated(args, bytes.Compare)
	if !isText || inner == "" || !fits || hasRef && !refIsText || twice {
		return c
	}
	next, err := rawjson.Set(c.params, "name", raw)
	if err == nil {
		next, err = rawjson.Set(next, "arguments", arguments)
	}
	if err != nil {
		return c
	}
	c.name, c.via, c.params, c.arguments = inner, name, next, arguments
	if hasRef {
		c.ref = refText
	}
	return c
}

// groupOf reads the group of calls that a client puts a call into.
func groupOf(batch json.RawMessage) (*invoke.Member, *tool.RPCError) {
	g := invoke.Group{Policy: invoke.IgnoreSiblings}
	var isText bool
	if g.ID, isText = rawjson.String(batch); !isText && rawjson.IsObject(batch) {
		g.ID, _ = rawjson.GetString(batch, "id")
		if policy, ok := rawjson.Get(batch, "sibling_failure_policy"); ok {
			text, _ := rawjson.String(policy)
			g.Policy = invoke.SiblingFailure(text)
		}
	}
	if g.ID == "" || len(g.ID) > maxGroupID || !slices.Contains(invoke.SiblingFailures(), g.Policy) {
		return nil, invalidParams(fmt.Sprintf("_meta[%q] groups calls: write an id of 1 to %d bytes, or an object "+
			"with that id and "+
			"sibling_failure_policy (ignore, cancel_siblings or cancel_dependent)", tool.MetaBatch, maxGroupID))
	}
	return &invoke.Member{Group: g}, nil
}

const maxGroupID = 200 // bytes: it stands in each record

// innerArguments returns the arguments for the tool that is called through another. Some models
// write the object as a string.
func innerArguments(args json.RawMessage) (json.RawMessage, bool) {
	inner, ok := rawjson.Get(args, "arguments")
	if !ok || rawjson.IsNull(inner) {
		return json.RawMessage("{}"), true
	}
	if text, isText := rawjson.String(inner); isText {
		inner = bytes.TrimSpace([]byte(text))
		if !rawjson.Valid(inner) {
			return nil, false
		}
	}
	return inner, rawjson.IsObject(inner)
}

// metaInvocation is the one member that the hub adds to a result's _meta.
const metaInvocation = "toolhub/invocation"

// resultFor returns the result as this client gets it: the executor's bytes, the toolhub/ member in
// _meta, and the members that the client's protocol revision demands of every hop. Keys of the
// upstream's hop are taken out of _meta. A client whose model would see the hub's own keys gets
// none, unless it has shown in its request that it knows such keys. One whose model sees texts and
// structuredContent gets a result of the hub's own tools as texts alone. t is nil where there is no
// tool.
func (c *toolCalls) resultFor(p *peer, o invoke.Outcome, t *tool.Tool) (pieces, error) {
	result := o.Object
	if result.Text() == nil {
		return pieces{}, errors.New("no JSON object")
	}
	info, habits := c.serverInfo, p.actor.Client.Habits()
	isError, _ := result.Get("isError")
	quiet := (habits.ShowsMeta || habits.ShowsErrorMeta && string(isError) == "true") && !p.meta.knowsHub
	if quiet {
		if less := tool.WithoutOwn(result.Text()); len(less) < len(result.Text()) {
			if result, _ = rawjson.ReadObject(less); result.Text() == nil {
				return pieces{}, errors.New("no JSON object without the hub's keys")
			}
		}
		o.Object, o.InvocationID = result, ""
	}
	if !p.modern || quiet {
		info = nil
	}
	meta, err := metaFor(info, &o)
	if err != nil {
		return pieces{}, err
	}
	changes := append(make([]rawjson.Change, 0, 4), rawjson.Change{Name: "_meta", Value: meta})
	if habits.ShowsBoth && textTells(t, result) {
		changes = append(changes, rawjson.Change{Name: "structuredContent"})
	}
	switch {
	case p.modern:
		// "resultType" is mandatory on 2026-07-28; an upstream of that revision has set it itself.
		kind, ok := result.Get("resultType")
		if !ok || o.Status != tool.StatusNeedsInput && asksForInput(kind) {
			changes = append(changes, rawjson.Change{Name: "resultType", Value: []byte(`"complete"`)})
		}
	case o.Revision >= modernVersion:
		// Older clients know no result type, and refuse a result whose structuredContent is no object. The content
		// says the same: "servers SHOULD also return the serialized JSON in a TextContent block".
		changes = append(changes, rawjson.Change{Name: "resultType"})
		if structured, ok := result.Get("structuredContent"); ok && !rawjson.IsObject(structured) {
			changes = append(changes, rawjson.Change{Name: "structuredContent"})
		}
	}
	return pieces{parts: result.With(changes...)}, nil
}

// textTells reports whether the texts of a result of t tell all that its structuredContent tells.
// The texts of a batch lack the structuredContent of its calls.
func textTells(t *tool.Tool, result rawjson.Object) bool {
	if t == nil || t.Hub == nil {
		return t != nil && t.TextTells
	}
	structured, _ := result.Get("structuredContent")
	return t.Hub.Finds || t.Hub.Batches && !bytes.Contains(structured, []byte(`"structuredContent"`))
}

// metaFor returns the _meta of a result as its client gets it; nil where it has none. serverInfo is
// nil where it does not belong there, and o.InvocationID "" where the hub says nothing. A _meta that
// is no object stays as it came.
func metaFor(serverInfo json.RawMessage, o *invoke.Outcome) (json.RawMessage, error) {
	given := json.RawMessage("{}")
	if meta, ok := o.Object.Get("_meta"); ok && !rawjson.IsObject(meta) {
		return meta, nil // null: it stays as it came
	} else if ok {
		given = meta
	}
	kept := false
	rest, _, err := rawjson.DeleteFunc(given, func(m rawjson.Member) bool {
		name := m.Name()
		drop := name == metaInvocation || tool.OfHop(name)
		kept = kept || !drop
		return drop
	})
	if err != nil {
		return nil, fmt.Errorf("clean _meta of result: %w", err)
	}
	if o.InvocationID == "" {
		if !kept {
			return nil, nil
		}
		return rest, nil
	}
	out := append(make([]byte, 0, len(rest)+len(o.InvocationID)+128+len(serverInfo)),
		rest[:bytes.LastIndexByte(rest, '}')]...)
	if kept {
		out = append(out, ',')
	}
	// The hub's own words and ids need no escapes.
	out = append(append(out, `"`+metaInvocation+`":{"invocation_id":"`...), o.InvocationID...)
	out = append(append(out, `","status":"`...), o.Status...)
	if o.Class != "" {
		out = append(append(out, `","error_class":"`...), o.Class...)
	}
	if o.Output != "" {
		out = append(append(out, `","output":"`...), o.Output...)
	}
	out = append(out, '"')
	if o.Artifacts != nil {
		refs, err := rawjson.Encode(o.Artifacts)
		if err != nil {
			return nil, err
		}
		out = append(append(out, `,"artifact_refs":`...), refs...)
	}
	if o.Error != nil {
		out = appendError(out, o.Error)
	}
	if o.JournalFailed {
		out = append(out, `,"journal_failed":true`...)
	}
	out = append(out, '}')
	if serverInfo != nil {
		out = rawjson.AppendMember(out, mcp.MetaKeyServerInfo, serverInfo)
	}
	return append(out, '}'), nil
}

// appendError appends what a program or a model can do about a failed call, besides its class.
func appendError(out []byte, e *tool.Error) []byte {
	out = append(append(append(out, `,"error_code":`...), rawjson.Quote(e.ErrorCode)...), `,"recoverability":"`...)
	out = append(append(out, e.Recoverability...), '"')
	if e.RetryAfterMS > 0 {
		out = strconv.AppendInt(append(out, `,"retry_after_ms":`...), e.RetryAfterMS, 10)
	}
	if e.OutcomeUnknown {
		out = append(out, `,"outcome_unknown":true`...)
	}
	return append(append(out, `,"next":`...), rawjson.Quote(invoke.Next(e))...)
}

// asksForInput reports whether a result type is input_required. A server up to 2025-11-25 has no
// result types: the hub has checked nothing of what it asks for in that way.
func asksForInput(resultType []byte) bool {
	kind, _ := rawjson.String(resultType)
	return kind == "input_required"
}
