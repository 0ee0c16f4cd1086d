// Package policy decides whether a call may run: by rules, by the facts of the tool, by remembered
// answers of people, and by the mode of the hub.
//
// Rules come from several sources. The strictest rule that matches a call counts: deny beats ask
// beats passthrough beats allow, in whichever source it stands. Without a matching rule, a tool is
// allowed if it only reads, reaches no network, and the operator vouches for that, or it is the
// hub's own. All other tools are asked about. The mode then decides about the calls that would be
// asked about. A grant is the remembered answer of a person: it can replace a question, but no deny.
//
// Everything fails closed. A condition that cannot be evaluated counts against the call: a rule
// that denies then denies, and every other one asks. A condition on an argument that the call does
// not have is one of these: write has(arguments.x) where it may be missing. A rule set with a fault
// is refused as a whole.
//
// Decide looks at memory alone. Settle turns a person's answer into a decision, and Grants keeps
// answers in a file: these take time.
package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Request is a call to decide about. The engine changes nothing in it.
type Request struct {
	Invocation tool.InvocationID
	Tool       *tool.Tool
	Facts      *facts.Facts     // of Tool; nil: nothing is known of it, which is taken for the worst
	Targets    []target.Target  // what Input is aimed at, normalised
	Findings   []target.Finding // what the limits on paths and hosts hold against Targets
	Input      json.RawMessage  // the standard's permission_input
	Meta       json.RawMessage  // the call's _meta
	Actor      tool.Actor
	Profile    string
	Via        string    // the hub tool that the caller used to reach Tool; "" for none
	CWD        string    // where the call would run
	Env        []string  // names of the variables that its command would get
	Now        time.Time // zero: the time of the decision
}

// door is the door whose mode holds. A client whose user always allows the hub tool that reaches
// all others asks about none of them any more, so a call through it is as one over HTTP.
func (r *Request) door() string {
	if r.Via != "" {
		return "http"
	}
	return r.Actor.Door
}

// Settings are the policy of an Engine. The zero value has no rules: defaults and mode decide alone.
type Settings struct {
	Mode   Mode    // "": client over stdio, default elsewhere
	Sets   []Set   // in any order; several of one source are taken together
	Grants *Grants // nil: nobody's answers are remembered

	Home string // the user's directory: a grant for a path in it does not cover all of it
}

// Engine makes permission decisions by one version of the policy. Compile makes one; there is none without a policy. It
// is immutable.
type Engine struct {
	settings Settings
	strict   []*compiledRule // rules that deny, then rules that ask, those that ask every time first
	asks     int             // index in strict where those that ask begin
	rest     []*compiledRule // rules that allow or pass through
	all      []*compiledRule // in the order of sources, then of the file
	version  string
	refs     []string // version, as records name it
	text     []byte   // of which version is the digest
}

// Version is a digest of all rules and the mode. An approval holds for one version. Grants are not
// part of it, because an answer to one question must not withdraw the others.
func (e *Engine) Version() string { return e.version }

// Problems is every problem of Settings.
type Problems []error

// Error is one line for each problem.
func (p Problems) Error() string { return errors.Join(p...).Error() }

// Unwrap gives each problem to errors.As.
func (p Problems) Unwrap() []error { return p }

// Compile returns an engine that decides by s. The error is a Problems, which names every fault of s.
func Compile(s Settings) (*Engine, error) {
	var problems Problems
	merged := make(map[Source][]Rule)
	for _, set := range s.Sets {
		merged[set.Source] = append(merged[set.Source], set.Rules...)
	}
	var env Compiler
	next := &Engine{settings: s}
	for _, source := range Sources() {
		list, found := compileRules(source, merged[source], &env)
		for _, p := range found {
			place := merged[source][p.Rule].Place
			if place == "" {
				place = fmt.Sprintf("%s rule %d", source, p.Rule+1)
			}
			problems = append(problems, fmt.Errorf("%s: %w", place, p))
		}
		for i := range list {
			next.all = append(next.all, &list[i])
		}
	}
	if len(problems) > 0 {
		return nil, problems
	}
	next.arrange()
	next.text = textOf(&s, next.all)
	next.version = "sha256:" + tool.Digest(next.text)
	next.refs = []string{"policy:" + next.version}
	return next, nil
}

// arrange sorts the rules into the order in which they are asked: a rule that denies ends the search.
func (e *Engine) arrange() {
	pick := func(then tool.Behavior, everyTime bool) []*compiledRule {
		return slices.DeleteFunc(slices.Clone(e.all),
			func(c *compiledRule) bool { return c.Then != then || c.EveryTime != everyTime })
	}
	denies := pick(tool.Deny, false)
	e.asks = len(denies)
	e.strict = slices.Concat(denies, pick(tool.Ask, true), pick(tool.Ask, false))
	e.rest = slices.DeleteFunc(slices.Clone(e.all),
		func(c *compiledRule) bool { return c.Then == tool.Deny || c.Then == tool.Ask })
}

// textOf is what Engine.Version is the digest of.
func textOf(s *Settings, rules []*compiledRule) []byte {
	type ruleOf struct {
		Source Source `json:"source"`
		Rule   Rule   `json:"rule"`
	}
	all := struct {
		Mode  Mode     `json:"mode"`
		Rules []ruleOf `json:"rules"`
	}{Mode: s.Mode}
	for _, c := range rules {
		r := c.Rule
		r.Place = "" // a line added above a rule does not change it
		all.Rules = append(all.Rules, ruleOf{c.source, r})
	}
	text, err := json.Marshal(all)
	if err != nil {
		text = fmt.Append(nil, all) // cannot be: nothing in it but strings and numbers
	}
	return text
}

// StandingKey implements tool.Standing: policy_refs of decisions name the policy.
func (e *Engine) StandingKey() string { return e.refs[0] }

// StandingRecords implements tool.Standing.
func (e *Engine) StandingRecords() []tool.Record {
	return []tool.Record{tool.PolicyRecord{Head: tool.HeadOf(tool.ObjectPolicy), Ref: e.refs[0], Policy: e.text}}
}

// Decide returns the decision about r, ready to be recorded. It always comes to one, so there is no error that a caller
// could ignore. It waits for nothing.
func (e *Engine) Decide(r Request) tool.PermissionDecision {
	v := e.judge(&r)
	return e.record(&r, &v)
}
