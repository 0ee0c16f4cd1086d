package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Sources of decisions besides those of rules.
const (
	sourceDefault   = "default"       // no rule speaks
	sourceMode      = "mode"          // the mode forbids writing
	sourceLifecycle = "lifecycle"     // the operator has taken the tool out of use
	sourceLimit     = "limit"         // a finding of package target
	sourceSession   = "session_grant" // an answer for this session
	sourceAlways    = "always_grant"  // an answer for good
	sourcePerson    = "person"
)

// decision is a decision before it becomes a record.
type decision struct {
	behavior tool.Behavior
	source   string
	kind     string   // type of the reason: rule, default, mode, lifecycle, limit, sandbox, grant, approval
	message  string   // one sentence
	note     string   // what the mode made of it
	refs     []string // rules and grants behind it, the deciding one first
	failed   string   // why the condition of the deciding rule could not be evaluated
	blocked  string   // path or host that it is about
	by       string   // who gave the answer that was remembered
	once     bool     // the question is asked every time
	mode     Mode
}

// judge decides about r. It looks at memory alone.
func (e *Engine) judge(r *Request) decision {
	sub := prepare(r)
	v := decision{mode: e.settings.Mode.Of(r.door())}
	if e.forbid(sub, &v) {
		return v
	}
	e.permit(sub, &v)
	if v.behavior == tool.Ask && e.granted(r, &v) {
		return v
	}
	switch { // the mode can change a decision of ask or passthrough
	case v.behavior == tool.Passthrough && r.Facts.Has(dangerous) && v.mode != ModeAcceptAll:
		v.behavior = tool.Ask
		v.note = "the tool is tagged dangerous: it is asked about and not passed through"
	case v.behavior != tool.Ask:
	case v.mode == ModeClient && r.Facts.Has(dangerous):
		v.note = "the tool is tagged dangerous: it is asked about in mode client too"
	case v.mode == ModeClient && v.kind == "limit" && r.Tool.Name.Source() != tool.SourceMCP:
		v.note = "a tool of the hub itself would go beyond its limits: that is asked about in mode client too"
	case v.mode == ModeClient:
		v.behavior = tool.Passthrough
		v.note = "mode client: the client asks its own user"
	case v.mode == ModeAcceptAll:
		v.behavior = tool.Allow
		v.note = "MODE ACCEPT_ALL: ALLOWED WITHOUT ASKING ANYBODY"
	}
	if v.behavior != tool.Ask && r.Tool.Server != tool.OwnServer && writes(r) && len(e.settings.Grants.Lost()) > 0 &&
		!e.granted(r, &v) {
		v.behavior, v.source, v.kind = tool.Ask, sourceAlways, "grant"
		v.message = "answers that people gave for good are lost, and one of them may have denied this call"
	}
	return v
}

// granted sets the decision of a grant that allows the call, where there is one.
func (e *Engine) granted(r *Request, v *decision) bool {
	g := e.settings.Grants.find(r, tool.Allow)
	if g == nil || v.once {
		return false
	}
	v.grant(g)
	return true
}

// prepare fills in what a request may leave out.
func prepare(r *Request) *Subject {
	if r.Tool == nil {
		r.Tool = &tool.Tool{Name: tool.UnknownTool}
	}
	if r.Facts == nil {
		r.Facts = unknownFacts(r.Tool)
	}
	if r.Now.IsZero() {
		r.Now = time.Now()
	}
	return &Subject{Request: r}
}

// unknownFacts returns the worst facts, for a tool without any.
func unknownFacts(t *tool.Tool) *facts.Facts {
	yes := facts.Fact[bool]{Value: true, Origin: facts.Inferred, Why: "nothing is known of the tool"}
	return &facts.Facts{Tool: t.Name, Server: t.Server, Destructive: yes, OpenWorld: yes, Network: yes,
		Risk: facts.Fact[string]{Value: facts.RiskHigh, Origin: facts.Inferred, Why: yes.Why},
		Tags: []string{"unknown", "write"}}
}

// forbid looks for anything that denies the call. Nothing that is looked at later can allow it again.
func (e *Engine) forbid(sub *Subject, v *decision) bool {
	for _, c := range e.strict[:e.asks] {
		matched, err := c.matches(sub)
		if matched || err != nil {
			v.rule(c, err)
			return true
		}
	}
	if sub.Facts.IsOutOfUse() {
		v.behavior, v.source, v.kind = tool.Deny, sourceLifecycle, "lifecycle"
		v.message = "the config says that this tool is " + sub.Facts.Lifecycle.Value + ": use another one"
		return true
	}
	for i := range sub.Findings {
		if f := &sub.Findings[i]; f.Behavior != tool.Ask { // a limit never allows
			v.limit(f, tool.Deny)
			return true
		}
	}
	if g := e.settings.Grants.find(sub.Request, tool.Deny); g != nil {
		v.grant(g)
		return true
	}
	if v.mode.forbidsWriting() && writes(sub.Request) {
		v.behavior, v.source, v.kind = tool.Deny, sourceMode, "mode"
		v.message = "the hub is in mode read_only: nothing may be changed; use a tool that only reads"
		if v.mode == ModePlan {
			v.message = "the hub is in mode plan: describe the change instead of making it; tools that only read " +
				"are free to use"
		}
		return true
	}
	return false
}

// writes reports whether the call is not known to read only.
func writes(r *Request) bool {
	return !r.Facts.ReadOnly.Value || slices.ContainsFunc(r.Targets, func(t target.Target) bool { return t.Write })
}

// permit comes to ask, passthrough or allow, by rules, limits and defaults.
func (e *Engine) permit(sub *Subject, v *decision) {
	for i := range sub.Findings {
		v.limit(&sub.Findings[i], tool.Ask) // all of them ask
	}
	for _, c := range e.strict[e.asks:] {
		matched, err := c.matches(sub)
		if !matched && err == nil {
			continue
		}
		if v.behavior == "" {
			v.rule(c, err)
		} else {
			v.refs = append(v.refs, c.ref)
		}
		v.once = v.once || c.EveryTime
		break // the first asks every time if any of them does
	}
	if v.behavior != "" {
		return
	}
	for _, c := range e.rest {
		matched, err := c.matches(sub)
		switch {
		case err != nil:
			v.rule(c, err)
			return
		case matched && c.Then == tool.Allow && sub.Facts.Has(dangerous) && !c.names(sub.Tool.Name):
			// Whoever allows many tools has not said that this one may do harm unseen.
		case matched && (v.behavior == "" || v.behavior == tool.Allow && c.Then == tool.Passthrough):
			v.rule(c, nil)
		}
	}
	if v.behavior != "" {
		return
	}
	f := sub.Facts
	v.behavior, v.source, v.kind = tool.Ask, sourceDefault, "default"
	switch {
	case f.Has(dangerous):
		v.message = "it is tagged dangerous, and no rule of yours allows it by its own name"
	case writes(sub.Request):
		v.message = "no rule speaks of this tool, and it is not known to read only"
	case f.Network.Value || f.Has("network"):
		v.message = "no rule speaks of this tool, and it reaches the network"
	case !f.Trusted && f.ReadOnly.Origin != facts.Configured && sub.Tool.Name.Source() == tool.SourceMCP:
		v.message = "no rule speaks of this tool, and its server is not trusted"
	default:
		v.behavior = tool.Allow
		v.message = "no rule speaks of this tool; it is known to only read"
	}
}

// rule sets the decision of rule c. err is the error of its condition.
func (v *decision) rule(c *compiledRule, err error) {
	v.behavior, v.source, v.kind, v.refs = c.Then, string(c.source), "rule", c.refs
	v.message = c.says
	if err == nil {
		return
	}
	v.failed = err.Error()
	if c.Then != tool.Deny {
		v.behavior = tool.Ask
	}
	v.message = fmt.Sprintf("the condition of rule %s cannot be evaluated, which counts against the call", c.ref)
}

func (v *decision) limit(f *target.Finding, then tool.Behavior) {
	if v.behavior != "" {
		return
	}
	v.behavior, v.source, v.kind, v.message = then, sourceLimit, "limit", f.Reason
	if v.blocked = f.Blocked; f.Code == target.Outside {
		v.kind = "sandbox"
	}
}

// grant sets the decision of grant g.
func (v *decision) grant(g *Grant) {
	v.behavior, v.kind, v.source = g.Then, "grant", sourceAlways
	if g.session != nil {
		v.source = sourceSession
	}
	v.message, v.by = "an earlier answer allows this", g.By
	if g.Then == tool.Deny {
		v.message = "a person denied this for good"
		if g.Says != "" {
			v.message = g.Says
		}
	}
	v.refs = append([]string{"grant/" + g.ID}, v.refs...)
	v.blocked = ""
}

// Hides reports whether every call of the tool would be denied, so that a surface need not show it, and by which rule,
// lifecycle or mode. A rule hides a tool if it denies its calls whatever the arguments, the targets and the time are.
func (e *Engine) Hides(t *tool.Tool, f *facts.Facts, profile string, actor tool.Actor) (rule string, hidden bool) {
	sub := prepare(&Request{Tool: t, Facts: f, Profile: profile, Actor: actor})
	for _, c := range e.strict[:e.asks] {
		if !c.isStatic() {
			continue
		}
		if matched, err := c.matches(sub); matched || err != nil {
			return c.ref, true
		}
	}
	if f := sub.Facts; f.IsOutOfUse() {
		return "lifecycle/" + f.Lifecycle.Value, true
	}
	if mode := e.settings.Mode.Of(actor.Door); mode.forbidsWriting() && writes(sub.Request) {
		return "mode/" + string(mode), true
	}
	return "", false
}

// Hidden returns the decision about a call of a tool that by keeps from the caller, as Hides has
// named it. It looks at no other rule, so that it takes no longer than a call of a tool that does
// not exist.
func (e *Engine) Hidden(by string, r Request) tool.PermissionDecision {
	v := decision{behavior: tool.Deny, source: sourceLifecycle, kind: "lifecycle", message: "the tool is out of use",
		refs: []string{by}, mode: e.settings.Mode.Of(r.door())}
	if by == "mode/"+string(v.mode) {
		v.source, v.kind, v.message = sourceMode, "mode", "the mode of the hub forbids writing"
	}
	for _, c := range e.strict[:e.asks] {
		if c.ref == by {
			v.rule(c, nil)
			break
		}
	}
	return e.record(&r, &v)
}

// MayHide reports whether Hides may hide a tool from callers at the door that is not out of use.
func (e *Engine) MayHide(door string) bool {
	return e.settings.Mode.Of(door).forbidsWriting() || slices.ContainsFunc(e.strict[:e.asks], (*compiledRule).isStatic)
}
