package policy

import (
	"errors"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Choice is a person's answer to the question whether a call may run.
type Choice string

const (
	AllowOnce    Choice = "allow_once"
	AllowSession Choice = "allow_session"
	AllowAlways  Choice = "allow_always"
	DenyOnce     Choice = "deny_once"
	DenyAlways   Choice = "deny_always"

	// AllowOffered and DenyOffered take the wider grant that the question offers.
	AllowOffered Choice = "allow_offered"
	DenyOffered  Choice = "deny_offered"
)

// Choices are all choices.
func Choices() []Choice {
	return []Choice{AllowOnce, AllowSession, AllowAlways, AllowOffered, DenyOnce, DenyAlways, DenyOffered}
}

// IsValid reports whether c is one of Choices.
func (c Choice) IsValid() bool { return slices.Contains(Choices(), c) }

// Allows reports whether the call may run.
func (c Choice) Allows() bool {
	return c == AllowOnce || c == AllowSession || c == AllowAlways || c == AllowOffered
}

// Settlement is a person's answer to the question about one call.
type Settlement struct {
	Choice   Choice
	Sentence string // to the model; may be empty
	By       string // who answered, and where: "http/ann", "elicitation"
	Modified bool   // the person changed the arguments: Request.Input has the new ones

	Offered []Scope // of the grant that the question offered, for AllowOffered and DenyOffered

	Dismissed bool // the person closed the question without an answer, which is Choice DenyOnce
}

// Settle turns a person's answer into the final decision about a call. r is the call as it is now:
// with the arguments that the person may have changed, and their targets. A rule or limit that
// denies r denies it still, and so does an invalid answer.
//
// An answer to remember becomes a grant. Where that fails, the answer holds once, the decision's
// reason has not_remembered, and the error is returned.
func (e *Engine) Settle(r Request, a Settlement) (tool.PermissionDecision, error) {
	v := e.judge(&r)
	if v.behavior == tool.Deny {
		return e.record(&r, &v), nil
	}
	again := v // what the rules say now: a rule that asks every time keeps the answer from being remembered
	v = decision{behavior: tool.Deny, source: sourcePerson, kind: "approval", message: "a person denied this call",
		refs: again.refs, mode: again.mode, blocked: again.blocked, once: again.once}
	if a.Choice.Allows() {
		v.behavior, v.message = tool.Allow, "an answer allowed this call"
	} else if a.Dismissed {
		v.message = "the question about this call was dismissed without an answer"
	} else if !a.Choice.IsValid() {
		v.message = "the answer to the question is none that there is, so the call is denied"
	}
	g, err := e.remember(&r, &v, a)
	d := e.record(&r, &v)
	d.Reason["choice"] = string(a.Choice)
	if a.By != "" {
		d.Reason["by"] = a.By
	}
	if a.Dismissed {
		d.Reason["dismissed"] = true
	}
	if err != nil {
		d.Reason["not_remembered"] = err.Error()
	}
	if g != nil {
		d.RuleRefs = append([]string{"grant/" + g.ID}, d.RuleRefs...)
		d.ExpiresAt = expiry(g)
	}
	if a.Modified {
		d.UserModified, d.UpdatedInput = true, r.Input
	}
	if a.Sentence != "" {
		if v.behavior == tool.Allow {
			d.AcceptFeedback = a.Sentence
		} else {
			d.ContentBlocks = []map[string]any{{"type": "text", "text": a.Sentence}}
		}
	}
	return d, err
}

// errEveryTime keeps an answer from being remembered.
var errEveryTime = errors.New("a rule asks about this call every time: the answer held once")

// errNoGrants keeps a hub without grants from remembering.
var errNoGrants = errors.New("this hub remembers no answers: the answer held once")

// remember makes a grant of an answer to remember, and returns nil for other answers.
func (e *Engine) remember(r *Request, v *decision, a Settlement) (*Grant, error) {
	switch a.Choice {
	case AllowSession, AllowAlways, DenyAlways, AllowOffered, DenyOffered:
	default:
		return nil, nil
	}
	if e.settings.Grants == nil {
		return nil, errNoGrants
	}
	if v.once && v.behavior == tool.Allow {
		return nil, errEveryTime
	}
	if a.Choice == AllowOffered || a.Choice == DenyOffered {
		return e.takeOffer(r, v, a)
	}
	g := Grant{Then: v.behavior, Tool: r.Tool.Name, Schema: r.Tool.Version(), Actor: r.Actor.Ref(), Says: a.Sentence,
		By: a.By}
	scopes, ok := e.scopes(r)
	if ok {
		g.Scopes = scopes
	} else {
		g.Exact = digestCall(r)
	}
	if v.behavior == tool.Allow {
		g.Says = "" // was about this call
	}
	var err error
	if a.Choice == AllowSession || e.settings.Grants.file == nil {
		g, err = e.settings.Grants.AddSession(r.Actor.Session, g)
	} else {
		g, err = e.settings.Grants.AddAlways(g)
	}
	if err != nil {
		return nil, err
	}
	return &g, nil
}

// errNotOffered keeps a grant from being made that nobody has seen.
var errNotOffered = errors.New("the question offered no rule for the call as it is now: the answer held once")

// takeOffer makes the grant that the question offered. It has to be about r, whose arguments the
// person may have changed.
func (e *Engine) takeOffer(r *Request, v *decision, a Settlement) (*Grant, error) {
	g := Grant{Then: v.behavior, Tool: r.Tool.Name, Schema: r.Tool.Version(), Actor: r.Actor.Ref(), Scopes: a.Offered,
		By: a.By}
	if v.behavior == tool.Deny {
		g.Says = a.Sentence
	}
	if len(a.Offered) == 0 && len(r.Targets) > 0 || !g.covers(r) ||
		slices.ContainsFunc(r.Findings, func(f target.Finding) bool { return f.Code == target.Sensitive }) {
		return nil, errNotOffered
	}
	g, err := e.settings.Grants.AddAlways(g)
	if err != nil {
		return nil, err
	}
	return &g, nil
}

func expiry(g *Grant) *time.Time {
	if g.Expires.IsZero() {
		return nil
	}
	at := g.Expires.UTC()
	return &at
}
