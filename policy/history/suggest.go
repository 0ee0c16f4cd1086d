package history

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Least is how many equal answers make a habit: fewer bring about no rule, and no offer.
const Least = 3

// Past is a history, and the policy that rules are to be added to.
type Past struct {
	Calls []Call // oldest first
	Tools Tools

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
	scopes  []policy.Scope
	bounded bool // by scopes; otherwise only its very arguments can be remembered
}

// habit is what one caller does with one tool.
type habit struct {
	tool, server, actor string

	calls    []*example
	allowed  []*example     // by people, and not by the policy
	refused  map[string]int // how often people denied, by arguments
	excluded bool           // no rule is about it
}

// Suggest finds rules that allow what people allowed: one for each caller and server, which names
// the tools that were allowed at least Least times, and never denied. Of a tool that was denied as
// well, a rule allows the very arguments that were only allowed. No rule is about a dangerous tool,
// or one whose calls are aimed at paths, hosts or commands: remembered answers bound those, and a
// rule would not. The gate is asked about each call.
func Suggest(ctx context.Context, p Past) (*Suggested, error) {
	out := &Suggested{}
	now, err := p.Gate(nil)
	if err != nil {
		return nil, err
	}
	all := make(map[[2]string]*habit)
	for i := range p.Calls {
		c := &p.Calls[i]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		key := [2]string{string(c.Tool), c.Actor.Name}
		if all[key] == nil {
			all[key] = &habit{tool: string(c.Tool), actor: c.Actor.Name, refused: make(map[string]int)}
		}
		r, lost := c.request(ctx, now, p.Tools)
		out.count(c, lost)
		if lost != "" {
			all[key].excluded = all[key].excluded || c.Answer == Denied // nobody knows what was denied
			continue
		}
		e := &example{call: c, r: r}
		d := now.Engine.Decide(r)
		if e.asks = d.Behavior == tool.Ask; c.Answer == Allowed && d.Behavior == tool.Allow {
			out.Spared++
		}
		all[key].take(e)
	}
	for _, group := range byServer(all) {
		if err := out.try(ctx, p, group); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out.Suggestions, func(a, b Suggestion) int { return len(b.Calls) - len(a.Calls) })
	return out, nil
}

func (s *Suggested) count(c *Call, lost string) {
	if lost != "" {
		s.Untold++
	}
	switch c.Answer {
	case Allowed:
		s.Allowed++
	case Denied:
		s.Denied++
	}
}

func (h *habit) take(e *example) {
	h.server = e.r.Tool.Server
	h.calls = append(h.calls, e)
	h.excluded = h.excluded || e.r.Facts.Has("dangerous") || slices.ContainsFunc(e.r.Targets,
		func(t target.Target) bool { return t.Kind != target.Resource || t.Fault != "" })
	switch {
	case e.call.Answer == Denied:
		h.refused[compact(e.r.Input)]++
	case e.call.Answer == Allowed && e.asks:
		h.allowed = append(h.allowed, e)
	}
}

// exactly is the condition that a call has arguments that people allowed Least times and never
// denied; "" where there are none.
func (h *habit) exactly() string {
	times := make(map[string]int)
	var often []string
	for _, e := range h.allowed {
		text := compact(e.r.Input)
		if times[text]++; times[text] == Least && h.refused[text] == 0 && text != "" {
			often = append(often, text)
		}
	}
	if len(often) == 0 || len(often) > maxListed {
		return ""
	}
	slices.Sort(often)
	return "arguments in [" + strings.Join(often, ", ") + "]"
}

// maxListed bounds the calls that a condition lists. With more, a person would not read it.
const maxListed = 8

// group is the habits that one rule is about.
type group struct {
	habits []*habit
	when   string
}

// byServer returns what rules can be about.
func byServer(all map[[2]string]*habit) (groups []group) {
	habits := slices.SortedFunc(maps.Values(all), func(a, b *habit) int {
		return cmp.Or(cmp.Compare(a.server, b.server), cmp.Compare(a.actor, b.actor), cmp.Compare(a.tool, b.tool))
	})
	var exact []group
	for _, h := range habits {
		switch n := len(groups); {
		case h.excluded || len(h.allowed) < Least:
		case len(h.refused) > 0:
			if when := h.exactly(); when != "" {
				exact = append(exact, group{[]*habit{h}, when})
			}
		case n > 0 && groups[n-1].habits[0].server == h.server && groups[n-1].habits[0].actor == h.actor:
			groups[n-1].habits = append(groups[n-1].habits, h)
		default:
			groups = append(groups, group{habits: []*habit{h}})
		}
	}
	return append(groups, exact...)
}

// try suggests the rule about a group, with the calls that the policy would then allow.
func (s *Suggested) try(ctx context.Context, p Past, g group) error {
	rule := policy.Rule{Actor: []string{g.habits[0].actor}, When: g.when, Then: tool.Allow,
		Reason: "as people allowed before"}
	for _, h := range g.habits {
		rule.Match = append(rule.Match, h.tool)
	}
	rule.ID = "learned-" + tool.Digest(fmt.Append(nil, rule.Match, rule.Actor, rule.When))[:8]
	with, err := p.Gate([]policy.Rule{rule})
	if err != nil {
		return fmt.Errorf("try a rule: %w", err)
	}
	one := Suggestion{Rule: rule, Calls: []tool.InvocationID{}, Else: []Through{}}
	for _, h := range g.habits {
		for _, e := range h.calls {
			switch {
			case !e.asks || with.Engine.Decide(e.r).Behavior != tool.Allow: // the rule changes nothing
			case e.call.Answer == Denied:
				return nil
			case e.call.Answer == Allowed:
				one.Calls = append(one.Calls, e.call.ID)
			default:
				one.Else = append(one.Else, Through{ID: e.call.ID, At: e.call.At, Tool: e.call.Tool,
					Was: e.call.Said.Behavior, Answer: e.call.Answer,
					Arguments: string(gate.Mask(e.r.Input, e.r.Facts))})
			}
		}
	}
	if len(one.Calls) >= Least {
		s.Spared += len(one.Calls)
		s.Suggestions = append(s.Suggestions, one)
	}
	return nil
}

// compact is JSON as CEL reads it: without escapes that only JSON has.
func compact(raw json.RawMessage) string {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
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
