package deferred

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Error codes of calls whose caller has not got the tool's present declaration. The class of all is schema_not_loaded.
const (
	codeNotLoaded  = "schema_not_loaded"
	codeChanged    = "schema_changed"
	codeExpired    = "selection_ref_expired"
	codeForeignRef = "selection_ref_invalid"
)

// Admit decides about a call of a deferred tool: it returns nil where the caller has the
// declaration as it is now, shown by a selection_ref, or kept by the session, or, without a
// session, listed to callers like it before so much came that the tool was deferred. Otherwise the
// error is a *tool.Failure that carries the declaration and a ref for it, so that the next call
// succeeds, and there are records of that.
func (l *Loader) Admit(c tool.DeferredCall) ([]tool.Record, error) {
	t, refs, code := c.Listed.Tool, l.signer(), codeNotLoaded
	if c.SelectionRef != "" {
		if code = refs.check(c.SelectionRef, t, c.Actor.Ref()); code == "" {
			return nil, nil
		}
	} else {
		var digest string
		var ok bool
		if c.Loaded != nil {
			digest, ok = c.Loaded.Digest(t.Name)
		} else {
			known, _ := l.splitOf(c.Surface)
			digest, ok = known.given[t.Name]
		}
		if ok && digest == t.SchemaDigest {
			return nil, nil
		}
		if ok {
			code = codeChanged
		}
	}
	name, ref := l.reserved.shownName(c.Listed), refs.mint(t, c.Actor.Ref())
	carried := notLoaded{Code: code, Name: name, ToolID: t.Name, Ref: ref,
		Declaration: brief(name, c.Listed.Declaration()),
		Next:        nextAction{Action: "call", Tool: string(callName)}}
	detail, err := rawjson.Encode(carried)
	if err != nil {
		return nil, fmt.Errorf("describe %q: %w", t.Name, err)
	}
	if c.Loaded != nil {
		c.Loaded.Load(c.Surface, t)
	}
	found := finding{invocation: c.Invocation, actor: c.Actor, surface: c.Surface}
	return l.records(found, c.Listed, ref, true), &tool.Failure{Class: tool.ClassSchemaNotLoaded, Code: code,
		Detail: string(detail),
		Message: whyNotLoaded(code, name) + fmt.Sprintf(": its declaration follows. Call %s with the name %q, the "+
			"selection_ref that follows and arguments that fit the inputSchema", callName, name)}
}

func whyNotLoaded(code, name string) string {
	switch code {
	case codeChanged:
		return fmt.Sprintf("nothing was called, because the schema of %q has changed since it was loaded", name)
	case codeExpired:
		return fmt.Sprintf("nothing was called, because the selection_ref for %q has expired", name)
	case codeForeignRef:
		return fmt.Sprintf("nothing was called, because the selection_ref is not one for %q and this caller", name)
	}
	return fmt.Sprintf("nothing was called, because %q is deferred and its schema was not loaded", name)
}

// notLoaded holds all that the next call needs.
type notLoaded struct {
	Code        string          `json:"error_code"`
	Name        string          `json:"name"`
	ToolID      tool.Name       `json:"tool_id"`
	Ref         string          `json:"selection_ref"`
	Declaration json.RawMessage `json:"declaration"`
	Next        nextAction      `json:"next_action"`
}

// brief returns a declaration without the members that a model does not need: pictures, output schema, and members for
// programs.
func brief(name string, declaration json.RawMessage) json.RawMessage {
	out, _, err := rawjson.DeleteFunc(declaration, func(m rawjson.Member) bool {
		return slices.Contains([]string{"icons", "outputSchema", "execution", "_meta"}, m.Name())
	})
	if err == nil {
		out, err = rawjson.Set(out, "name", rawjson.Quote(name))
	}
	if err != nil {
		return declaration
	}
	return out
}

// finding says by which call a tool was found or loaded.
type finding struct {
	invocation tool.InvocationID
	actor      tool.Actor
	surface    *tool.Surface
}

// records returns the records of a deferred tool that was found; loaded says that its declaration is sent.
func (l *Loader) records(f finding, listed *tool.Listed, ref string, loaded bool) []tool.Record {
	t, now := listed.Tool, l.opts.Now().UTC()
	r := tool.DeferredRef{Head: tool.HeadOf(tool.ObjectDeferredRef), ToolID: t.Name, Name: l.reserved.shownName(listed),
		Namespace: t.Server, SearchHint: annotations(t.Declaration).searchHint, Source: t.Name.Source(),
		SchemaVisibility: "deferred",
		LoadingState:     tool.LoadingDiscoverable, Reason: tool.ReasonDeferred, SelectionRef: ref,
		SchemaDigest: t.SchemaDigest,
		InvocationID: f.invocation, ActorRef: f.actor.Ref(), CreatedAt: now}
	kind := tool.EventDeferredDiscovered
	if loaded {
		r.SchemaVisibility, r.LoadingState, r.Reason = "loaded", tool.LoadingLoaded, ""
		kind = tool.EventDeferredLoaded
	}
	if isPending(l.known(), t.Server) {
		r.LoadingState, r.Pending = tool.LoadingPending, t.Server
	}
	event := tool.Event{Head: tool.HeadOf(tool.ObjectEvent), EventID: tool.NewEventID(), EventType: kind,
		Source:  tool.EventSource,
		Subject: string(t.Name), Time: now, InvocationID: f.invocation, ToolID: t.Name,
		Data: map[string]any{"surface_id": string(f.surface.ID), "schema_digest": t.SchemaDigest}}
	return []tool.Record{r, event}
}
