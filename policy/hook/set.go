package hook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// compiled is one hook, ready to run.
type compiled struct {
	Config
	matcher *policy.Matcher
	names   *regexp.Regexp // nil: all
	hook    Hook
	kind    string
	says    map[string]any // see Report.Matcher
}

// Set is all hooks of one version of the settings. It is safe for concurrent use.
type Set struct {
	hooks []*compiled
	turns []*turns // of commands and requests, by the number of hooks that have made the call
}

// New compiles hooks. Nil and no problem are returned where there are none. The set counts only
// where there is no problem.
func New(configs []Config, o Options) (*Set, []Problem) {
	if len(configs) == 0 {
		return nil, nil
	}
	s := &Set{}
	for range configs { // no hook stands in the origin of a call twice
		s.turns = append(s.turns, newTurns())
	}
	var compiler policy.Compiler
	var problems []Problem
	names := make(map[string]bool)
	for i, h := range configs {
		c := checker{compiler: &compiler, options: &o, index: i, problems: &problems}
		next := c.compile(h)
		if names[next.Name] {
			c.fault("name", fmt.Sprintf("another hook has the name %q", next.Name), "give each hook its own, or none")
		}
		names[next.Name] = true
		s.hooks = append(s.hooks, next)
	}
	return s, problems
}

// Plan is the hooks that can match a call, whatever its arguments are. It is safe for concurrent
// use.
type Plan struct {
	set   *Set
	hooks []*compiled
}

// Plan returns the hooks that can match calls like r, nil where none can.
func (s *Set) Plan(r *policy.Request) *Plan {
	sub := policy.NewSubject(*r)
	p := &Plan{set: s}
	for _, h := range s.hooks {
		if h.isFor(r.Tool) && h.matcher.CanMatch(sub) {
			p.hooks = append(p.hooks, h)
		}
	}
	if len(p.hooks) == 0 {
		return nil
	}
	return p
}

// isFor reports whether the matcher of Claude Code, where there is one, takes the tool.
func (h *compiled) isFor(t *tool.Tool) bool {
	return h.names == nil || h.names.MatchString(ToolName(t))
}

// Has reports whether a hook of the plan may run at e.
func (p *Plan) Has(e Event) bool {
	return p != nil && slices.ContainsFunc(p.hooks, func(h *compiled) bool { return slices.Contains(h.Events, e) })
}

// Again returns the first hook that matches the call and has made it itself; "" where there is
// none. It looks at hooks of all events, so that such a call is refused before anything has run.
func (p *Plan) Again(ctx context.Context, m Moment, meta json.RawMessage) (string, error) {
	if _, marked := rawjson.Get(meta, MetaKey); !marked {
		return "", nil
	}
	in, err := m.Input(ctx)
	if err != nil {
		return "", err
	}
	sub := policy.NewSubject(*in.Request)
	for _, h := range p.hooks {
		if h.hasMade(&in) && (!h.matcher.Varies() || h.matcher.Matches(sub)) {
			return h.Name, nil
		}
	}
	return "", nil
}

// hasMade reports whether the call comes from h itself. Built-in hooks make no calls.
func (h *compiled) hasMade(in *Input) bool {
	return h.isOutside() && slices.Contains(strings.Fields(in.origin()), h.Name)
}

// isOutside reports whether h is more than a function of the hub.
func (h *compiled) isOutside() bool {
	_, outside := h.hook.(interface{ leavesTheHub() })
	return outside
}

// Moment is a call at one event.
type Moment interface {
	Input(context.Context) (Input, error) // the call as it is now: asked before each hook
	Waits(context.Context)                // a hook has to wait for its turn
	Started(ctx context.Context, hook string)
	// Ended is told of the end of a run. An error ends the call, and no further hook runs.
	Ended(context.Context, *Report) error
}

// Run runs the hooks of e that match, in the order of the config. The error is that of the moment,
// or a *tool.Failure where ctx has ended before a hook could begin. Such a hook has no run, and no
// further one begins.
func (p *Plan) Run(ctx context.Context, e Event, m Moment) error {
	var in *Input // nil: nobody has looked since the last hook
	for _, h := range p.hooks {
		if !slices.Contains(h.Events, e) {
			continue
		}
		if in == nil {
			now, err := m.Input(ctx)
			if err != nil {
				return err
			}
			now.Event = e
			in = &now
		}
		if h.matcher.Varies() && !h.matcher.Matches(policy.NewSubject(*in.Request)) {
			continue
		}
		r, err := p.set.runInTurn(ctx, h, in, m)
		if err != nil {
			return err
		}
		in = nil // it may be another one now
		if err := m.Ended(ctx, &r); err != nil {
			return err
		}
	}
	return nil
}

// runInTurn runs h once it may run. Functions of the hub need no place.
func (s *Set) runInTurn(ctx context.Context, h *compiled, in *Input, m Moment) (Report, error) {
	if h.isOutside() && !h.hasMade(in) {
		t, by := s.turnsFor(in), caller{in.Request.Actor.Door, in.Request.Actor.Name}
		if err := t.enter(ctx, by, m); err != nil {
			return Report{}, &tool.Failure{Class: tool.ClassCanceled,
				Message: "the call was canceled while a hook waited for its turn", Cause: err}
		}
		defer t.leave(by)
	}
	m.Started(ctx, h.Name)
	return h.run(ctx, *in), nil
}

// turnsFor returns the turns of the hooks of the call. A hook that calls the hub keeps its place
// until the hooks of that call have run, so those have places of their own.
func (s *Set) turnsFor(in *Input) *turns {
	return s.turns[min(len(strings.Fields(in.origin())), len(s.turns)-1)]
}

// run runs one hook within its time. A panic of a hook is a failure of it.
func (h *compiled) run(ctx context.Context, in Input) (r Report) {
	in.hook = h.Name
	r = Report{Hook: h.Name, Event: in.Event, Kind: h.kind, Matcher: h.says, Closed: h.closed(in.Event)}
	defer func() {
		if p := recover(); p != nil {
			r.Err = fmt.Errorf("the hook panicked: %v", p)
		}
	}()
	if h.hasMade(&in) {
		r.Err, r.Closed = errAgain, true // whatever fail says: who marks a call passes no hook by that
		return r
	}
	began := time.Now()
	ctx, stop := context.WithTimeoutCause(ctx, h.Timeout, errTimeout)
	defer stop()
	r.Output, r.Err = h.hook.Run(ctx, &in)
	r.Took = time.Since(began)
	if r.Err != nil && errors.Is(context.Cause(ctx), errTimeout) {
		r.Err = fmt.Errorf("the hook has not answered within %v", h.Timeout)
	}
	if r.Err == nil {
		r.Err = r.settle()
	}
	if r.Err != nil {
		r.Output = Output{}
	}
	return r
}

var (
	errTimeout = errors.New("the time of the hook is over")
	errAgain   = errors.New("the call comes from this hook itself: leave such calls out with match or when")
)

// IgnoreResult takes out what a hook has said of the result, where there is none.
func (r *Report) IgnoreResult() {
	o := &r.Output
	r.ignore(o.Result != nil, "updated_output", func() { o.Result = nil })
	r.ignore(len(o.Context) > 0, "additional_context", func() { o.Context = nil })
}

func (r *Report) ignore(given bool, name string, drop func()) {
	if given {
		r.Ignored = append(r.Ignored, name)
		drop()
	}
}

// settle takes out what means nothing at the event, and refuses what cannot be used.
func (r *Report) settle() error {
	o := &r.Output
	input, result, behaviors := usable(r.Event)
	r.ignore(o.Input != nil && !input, "updated_input", func() { o.Input = nil })
	r.ignore(o.Result != nil && !result, "updated_output", func() { o.Result = nil })
	r.ignore(o.Permission != nil && !slices.Contains(behaviors, o.Permission.Behavior), "permission_result",
		func() { o.Permission = nil })
	r.ignore(len(o.Context) > 0 && r.Event == ResultPersistence, "additional_context", func() { o.Context = nil })
	return checkOutput(o)
}

// Info describes a hook for people.
type Info struct {
	Name    string   `json:"name"`
	Events  []Event  `json:"events"`
	Kind    string   `json:"kind"`
	Does    string   `json:"does"`
	Match   []string `json:"match,omitempty"`
	Matcher string   `json:"matcher,omitempty"`
	Tags    []string `json:"tags,omitempty"`
	Server  []string `json:"server,omitempty"`
	Profile []string `json:"profile,omitempty"`
	Actor   []string `json:"actor,omitempty"`
	When    string   `json:"when,omitempty"`
	Timeout string   `json:"timeout"`
	Fail    []string `json:"fail"` // closed, open, or both where it runs before and after calls
	Place   string   `json:"place,omitempty"`
}

// List describes all hooks, in the order in which they run.
func (s *Set) List() []Info {
	if s == nil {
		return nil
	}
	all := make([]Info, len(s.hooks))
	for i, h := range s.hooks {
		r := &h.Rule
		all[i] = Info{h.Name, h.Events, h.kind, h.does(), r.Match, h.Matcher, r.Tags, r.Server, r.Profile, r.Actor,
			r.When, h.Timeout.String(),
			h.failing(), h.Place}
	}
	return all
}

// Test runs the hook of that name on in, and says whether it matches such a call. ok is false where there is none.
func (s *Set) Test(ctx context.Context, name string, in Input) (r Report, matches, ok bool) {
	h := s.named(name)
	if h == nil {
		return r, false, false
	}
	return h.run(ctx, in), slices.Contains(h.Events, in.Event) && h.isFor(in.Request.Tool) &&
		h.matcher.Matches(policy.NewSubject(*in.Request)), true
}

// EventOf returns the first event of the hook of that name.
func (s *Set) EventOf(name string) (Event, bool) {
	if h := s.named(name); h != nil && len(h.Events) > 0 {
		return h.Events[0], true
	}
	return "", false
}

// named returns the hook of that name; nil where there is none.
func (s *Set) named(name string) *compiled {
	if s != nil {
		for _, h := range s.hooks {
			if h.Name == name {
				return h
			}
		}
	}
	return nil
}
