package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// Least is how many equal answers make a habit: fewer bring about no rule, and no offer.
const Least = 3

// Past is a history, and the policy that rules are to be added to.
type Past struct {
	Calls []Call // oldest first
	Tools Tools
	Home  string // the user's directory, which no rule covers as a whole; "" where it is not known

	// Gate returns the gate in force with some rules more, and without remembered answers.
	Gate func(more []policy.Rule) (*gate.Gate, error)
}

// Suggestion is a rule that would have spared people answers.
type Suggestion struct {
	Rule  policy.Rule
	Calls []tool.InvocationID // that people allowed, and that the rule would allow
	Else  []Through           // what else it would have let through
}

// Through is a call that nobody allowed, and that a rule would.
type Through struct {
	ID        tool.InvocationID `json:"invocation_id"`
	At        time.Time         `json:"created_at"`
	Tool      tool.Name         `json:"tool_id"`
	Arguments string            `json:"arguments"` // JSON with secrets masked
	Was       tool.Behavior     `json:"was"`
	Answer    Answer            `json:"answer,omitempty"`
}

// Suggested is what Suggest finds.
type Suggested struct {
	Suggestions []Suggestion
	Allowed     int // calls that people allowed
	Denied      int // calls that people denied
	Spared      int // of those allowed: the rules would allow them
	Untold      int // calls that no policy can decide about again: they count for no rule
}

// example is a call that can be decided about again.
type example struct {
	call    *Call
	r       policy.Request
	asks    bool // the policy in force asks about it
	open    bool // a rule can allow it
	scopes  []policy.Scope
	bounded bool // by scopes; otherwise it can be allowed by its very arguments alone
}

// learner finds rules.
type learner struct {
	past Past
	all  []*example
	out  *Suggested
}

// habit is what one caller does with one tool, or with several that only read.
type habit struct {
	tools    []string
	actor    string
	allowed  []*example // by people, and not by the policy
	denied   []*example // by people
	obscured bool       // something was denied that nobody can look at any more
}

// Suggest finds the fewest rules that allow what people allowed. A rule has Least calls behind it
// for each place that it names. It is about the tools, callers and kinds of targets that people
// allowed. No rule lets through a call of the history that a person denied: the gate is asked about
// each.
func Suggest(ctx context.Context, p Past) (*Suggested, error) {
	l := &learner{past: p, out: &Suggested{}}
	habits, err := l.read(ctx)
	if err != nil {
		return nil, err
	}
	var rules []policy.Rule
	for _, h := range habits {
		found, err := l.learn(ctx, h)
		if err != nil {
			return nil, err
		}
		rules = append(rules, found...)
	}
	if err := l.prove(ctx, merged(rules)); err != nil {
		return nil, err
	}
	return l.out, nil
}

// read looks at each call as the gate in force sees it, and sorts the answers of people by what they are about.
func (l *learner) read(ctx context.Context) ([]*habit, error) {
	now, err := l.past.Gate(nil)
	if err != nil {
		return nil, err
	}
	wide, err := l.past.Gate([]policy.Rule{{ID: "all", Match: []string{"*"}, Then: tool.Allow}})
	if err != nil {
		return nil, err
	}
	habits := make(map[string]*habit)
	for i := range l.past.Calls {
		c := &l.past.Calls[i]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e := &example{call: c}
		r, lost := c.request(ctx, now, l.past.Tools)
		l.count(c, lost)
		h := habits[string(c.Tool)+"\n"+c.Actor.Name]
		if h == nil {
			h = &habit{tools: []string{string(c.Tool)}, actor: c.Actor.Name}
			habits[string(c.Tool)+"\n"+c.Actor.Name] = h
		}
		if lost != "" {
			h.obscured = h.obscured || c.Answer == Denied
			continue
		}
		e.r = r
		d := now.Engine().Decide(ctx, r)
		e.asks = d.Behavior == tool.Ask
		e.open = wide.Engine().Decide(ctx, r).Behavior == tool.Allow
		e.scopes, e.bounded = now.Engine().Scopes(r)
		l.all = append(l.all, e)
		switch {
		case c.Answer == Denied:
			h.denied = append(h.denied, e)
		case c.Answer == Allowed && e.asks && e.open:
			h.allowed = append(h.allowed, e)
		}
	}
	return pooled(habits), nil
}

func (l *learner) count(c *Call, lost string) {
	if lost != "" {
		l.out.Untold++
	}
	switch c.Answer {
	case Allowed:
		l.out.Allowed++
	case Denied:
		l.out.Denied++
	}
}

// pooled puts habits together that one rule can be about: those of one caller with the tools of one
// server that only read, and that are aimed at paths.
func pooled(habits map[string]*habit) (all []*habit) {
	pools := make(map[string]*habit)
	for _, h := range sorted(habits) {
		if len(h.allowed) == 0 || h.obscured {
			continue
		}
		if !slices.ContainsFunc(h.allowed, func(e *example) bool { return !e.readsPaths() }) {
			server := h.allowed[0].r.Tool.Server + "\n" + h.actor
			if p := pools[server]; p != nil {
				p.tools, p.allowed, p.denied = append(p.tools, h.tools...), append(p.allowed, h.allowed...),
					append(p.denied, h.denied...)
				continue
			}
			pools[server] = h
		}
		all = append(all, h)
	}
	return all
}

func sorted(habits map[string]*habit) (all []*habit) {
	for _, h := range habits {
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b *habit) int {
		return cmp.Or(cmp.Compare(a.tools[0], b.tools[0]), cmp.Compare(a.actor, b.actor))
	})
	return all
}

// readsPaths reports whether the call only reads files.
func (e *example) readsPaths() bool {
	return e.bounded && len(e.scopes) > 0 && e.r.Facts.ReadOnly.Value &&
		!slices.ContainsFunc(e.scopes, func(s policy.Scope) bool { return s.Under == "" || s.Write })
}

// learn finds rules for one habit: for what is bounded by its targets, and for what is allowed by its very arguments.
func (l *learner) learn(ctx context.Context, h *habit) (rules []policy.Rule, err error) {
	var bounded []*example
	var exact []*example
	for _, e := range h.allowed {
		switch {
		case e.bounded:
			bounded = append(bounded, e)
		case e.repeatable():
			exact = append(exact, e)
		}
	}
	for len(bounded) >= Least {
		r, wrong, err := l.narrow(ctx, h, bounded)
		if err != nil {
			return nil, err
		}
		if r != nil && len(wrong) == 0 {
			rules = append(rules, *r)
			break
		}
		left, out := without(bounded, wrong)
		bounded, exact = left, append(exact, out...)
	}
	if text := same(exact); text != "" {
		r := h.rule(text, "the same call")
		wrong, err := l.through(ctx, r, h.denied)
		if err != nil {
			return nil, err
		}
		if len(wrong) == 0 {
			rules = append(rules, r)
		}
	}
	return rules, nil
}

// maxTries bounds how often a condition is narrowed.
const maxTries = 4

// narrow writes a rule for calls that people allowed, and narrows it until it lets nothing through
// that they denied. Where that does not succeed, wrong is what it lets through. The rule is nil
// where the calls have nothing in common.
func (l *learner) narrow(ctx context.Context, h *habit, allowed []*example) (r *policy.Rule, wrong []*example,
	err error) {
	w := l.draft(h, allowed)
	if w == nil {
		return nil, nil, nil
	}
	for range maxTries {
		rule := h.rule(w.text(), w.says())
		if wrong, err = l.through(ctx, rule, h.denied); err != nil || len(wrong) == 0 || !w.separate(wrong) {
			return &rule, wrong, err
		}
	}
	return nil, wrong, nil
}

// slips reports whether so few calls were denied beside those that were allowed that people may have slipped.
func slips(denied, allowed int) bool { return 10*denied <= allowed }

// without leaves out calls that are aimed at what people denied more than now and then. Where there
// are none such, it leaves out all.
func without(allowed, wrong []*example) (left, out []*example) {
	times := func(calls []*example) map[policy.Scope]int {
		all := make(map[policy.Scope]int)
		for _, e := range calls {
			for _, s := range e.scopes {
				all[s]++
			}
		}
		return all
	}
	yes, no := times(allowed), times(wrong)
	for _, e := range allowed {
		if !slices.ContainsFunc(e.scopes, func(s policy.Scope) bool { return !slips(no[s], yes[s]) }) {
			left = append(left, e)
		} else {
			out = append(out, e)
		}
	}
	if len(left) == len(allowed) {
		return nil, allowed // another try would end as this one
	}
	return left, out
}

// rule is the rule about the habit with that condition. Its id tells equal rules.
func (h *habit) rule(when, says string) policy.Rule {
	return named(policy.Rule{Match: h.tools, Actor: []string{h.actor}, When: when, Then: tool.Allow,
		Reason: "as people allowed before: " + says})
}

func named(r policy.Rule) policy.Rule {
	r.ID = ""
	text, err := json.Marshal(r)
	if err != nil {
		text = fmt.Append(nil, r) // cannot be: nothing in it but strings
	}
	r.ID = "learned-" + tool.Digest(text)[:8]
	return r
}

// through are those of calls that the policy with the rule allows.
func (l *learner) through(ctx context.Context, r policy.Rule, calls []*example) (found []*example, err error) {
	if len(calls) == 0 {
		return nil, nil
	}
	g, err := l.past.Gate([]policy.Rule{r})
	if err != nil {
		return nil, fmt.Errorf("try a rule: %w", err)
	}
	for _, e := range calls {
		if g.Engine().Decide(ctx, e.r).Behavior == tool.Allow {
			found = append(found, e)
		}
	}
	return found, nil
}

// merged makes one rule of those that differ in the tool alone, and then of those that differ in the caller alone.
func merged(rules []policy.Rule) []policy.Rule {
	for _, key := range []func(policy.Rule) (same string, list *[]string){
		func(r policy.Rule) (string, *[]string) { return strings.Join(r.Actor, "\n") + "\x00" + r.When, nil },
		func(r policy.Rule) (string, *[]string) { return strings.Join(r.Match, "\n") + "\x00" + r.When, nil },
	} {
		at := make(map[string]int)
		var out []policy.Rule
		for _, r := range rules {
			same, _ := key(r)
			i, known := at[same]
			if !known {
				at[same] = len(out)
				out = append(out, r)
				continue
			}
			m := out[i]
			m.Match, m.Actor = union(m.Match, r.Match), union(m.Actor, r.Actor)
			out[i] = named(m)
		}
		rules = out
	}
	return rules
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// prove takes those rules that let nothing through that a person denied, the ones with most calls
// first, and leaves out those that add nothing.
func (l *learner) prove(ctx context.Context, rules []policy.Rule) error {
	spared := make(map[*example]bool)
	var found []Suggestion
	byRule := make(map[string][]*example)
	for _, r := range rules {
		let, err := l.through(ctx, r, l.all)
		if err != nil {
			return err
		}
		s := Suggestion{Rule: r, Calls: []tool.InvocationID{}, Else: []Through{}}
		denied := false
		for _, e := range let {
			switch {
			case !e.asks && e.call.Answer != Denied: // runs already, or is denied by what stays
			case e.call.Answer == Denied:
				denied = true
			case e.call.Answer == Allowed:
				s.Calls = append(s.Calls, e.call.ID)
				byRule[r.ID] = append(byRule[r.ID], e)
			default:
				s.Else = append(s.Else, Through{ID: e.call.ID, At: e.call.At, Tool: e.call.Tool,
					Was: e.call.Said.Behavior, Answer: e.call.Answer,
					Arguments: string(gate.Mask(e.r.Input, e.r.Facts))})
			}
		}
		if !denied && len(s.Calls) >= Least {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b Suggestion) int { return len(b.Calls) - len(a.Calls) })
	for _, s := range found {
		fresh := 0
		for _, e := range byRule[s.Rule.ID] {
			if !spared[e] {
				fresh++
			}
			spared[e] = true
		}
		if fresh > 0 {
			l.out.Suggestions = append(l.out.Suggestions, s)
		}
	}
	for _, e := range l.all { // what the policy allows by now needs no rule
		if e.call.Answer == Allowed && (spared[e] || !e.asks && e.open) {
			l.out.Spared++
		}
	}
	return nil
}

// compact is JSON as CEL reads it: without escapes that only JSON has.
func compact(raw json.RawMessage) string {
	var v any
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return ""
	}
	text, err := rawjson.Encode(v)
	if err != nil {
		return ""
	}
	return string(text)
}
