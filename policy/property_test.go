package policy_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// dice makes random policies and calls: few names and many rules, so that rules meet.
type dice struct{ *rand.Rand }

func pick[T any](d dice, from ...T) T { return from[d.IntN(len(from))] }

func (d dice) rule(i int, then ...tool.Behavior) policy.Rule {
	r := policy.Rule{ID: fmt.Sprint("r", i), Then: pick(d, then...), EveryTime: false}
	r.Match = []string{pick(d, "*", "mcp.a.*", "mcp.*.x", "mcp.a.x", "mcp.b.?", "nothing")}
	if d.IntN(3) == 0 {
		r.Tags = []string{pick(d, "write", "readonly", "network")}
	}
	if d.IntN(3) == 0 {
		r.Server = []string{pick(d, "a", "b", "*")}
	}
	if d.IntN(4) == 0 {
		r.Actor = []string{pick(d, "ann", "b*")}
	}
	if d.IntN(4) == 0 {
		r.Profile = []string{"review"}
	}
	if d.IntN(2) == 0 {
		r.When = pick(d, "true", "false", "arguments.n > 5", `has(arguments.s) && arguments.s == "x"`, "arguments.none == 1",
			"tool.read_only", `actor.name == "ann"`, `actor.door == "stdio"`, `tool.tags[7] == "x"`, "targets.exists(t, t.write)", "time.getHours() < 12", "1 / arguments.n > 0",
			`"x" in _meta`, "targets[0].write")
	}
	if r.Then == tool.Ask {
		r.EveryTime = d.IntN(3) == 0
	}
	return r
}

func anything() []tool.Behavior {
	return []tool.Behavior{tool.Allow, tool.Ask, tool.Deny, tool.Passthrough}
}

func (d dice) sets(n int, then ...tool.Behavior) []policy.Set {
	sets := []policy.Set{}
	for i := range n {
		sets = append(sets, policy.Set{Source: pick(d, policy.Sources()...), Rules: []policy.Rule{d.rule(i, then...)}})
	}
	return sets
}

func (d dice) request() policy.Request {
	name := pick[tool.Name](d, "mcp.a.x", "mcp.a.y", "mcp.b.x", "mcp.b.z")
	t := &tool.Tool{Name: name, Server: string(name[4:5]), Declaration: json.RawMessage(pick(d, `{}`, `{"annotations":{"readOnlyHint":true}}`))}
	r := policy.Request{Tool: t, Facts: facts.Of(t, facts.Options{Trust: d.IntN(2) == 0}),
		Actor: tool.Actor{Name: pick(d, "ann", "bob"), Door: pick(d, "http", "stdio", "cli")}, Profile: pick(d, "", "review"),
		Input: json.RawMessage(pick(d, `{}`, `{"n":9}`, `{"n":0,"s":"x"}`, `{"n":1,"n":9}`, `[]`, `{"s":"y"}`)),
		Meta:  json.RawMessage(pick(d, ``, `{"x":1}`))}
	if d.IntN(2) == 0 {
		r.Targets = []target.Target{{Kind: target.Path, Resolved: "/p/a", Write: d.IntN(2) == 0}}
	}
	if d.IntN(5) == 0 {
		r.Findings = []target.Finding{{Behavior: pick(d, tool.Ask, tool.Deny), Blocked: "/p/a", Reason: "limit"}}
	}
	return r
}

// grants are remembered answers of both kinds for the callers and tools of request.
func (d dice) grants(t *testing.T) *policy.Grants {
	t.Helper()
	all, err := policy.OpenGrants(policy.GrantOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range d.IntN(6) {
		g := policy.Grant{Then: pick(d, tool.Allow, tool.Allow, tool.Deny), Tool: pick[tool.Name](d, "mcp.a.x", "mcp.a.y", "mcp.b.x", "mcp.b.z"),
			Actor: tool.Actor{Name: pick(d, "ann", "bob"), Door: pick(d, "http", "stdio", "cli")}.Ref()}
		if d.IntN(2) == 0 {
			g.Scopes = []policy.Scope{{Kind: target.Path, Under: "/p", Write: d.IntN(2) == 0}}
		}
		if _, err := all.AddSession("", g); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func strictness(b tool.Behavior) int {
	return slices.Index([]tool.Behavior{tool.Allow, tool.Passthrough, tool.Ask, tool.Deny}, b)
}

// TestAddingADenyLoosensNothing: a policy with one more rule that denies never answers less strictly, in any mode.
func TestAddingADenyLoosensNothing(t *testing.T) {
	t.Parallel()
	denied := 0
	for seed := range uint64(150) {
		d := dice{rand.New(rand.NewPCG(seed, 1))}
		s := policy.Settings{Mode: pick(d, append(policy.Modes(), "")...), Sets: d.sets(d.IntN(8), anything()...), Grants: d.grants(t)}
		before := compile(t, s)
		rule := d.rule(100, tool.Deny)
		s.Sets = append(slices.Clone(s.Sets), policy.Set{Source: pick(d, policy.Sources()...), Rules: []policy.Rule{rule}})
		after := compile(t, s)
		for range 40 {
			r := d.request()
			was, is := before.Decide(r), after.Decide(r)
			if strictness(is.Behavior) < strictness(was.Behavior) {
				t.Fatalf("seed %d: %s became %s by adding %+v\n%+v", seed, was.Behavior, is.Behavior, rule, r)
			}
			if is.Behavior != was.Behavior {
				denied++
			}
		}
	}
	if denied < 100 {
		t.Errorf("the rules that were added mattered %d times: the test looks at nothing", denied)
	}
}

// TestTheStrictestCounts: where a rule that denies counts, the call is denied, whatever other sources, remembered answers and
// the mode say; where one that asks does, it is not simply allowed.
func TestTheStrictestCounts(t *testing.T) {
	t.Parallel()
	denied, asked, granted := 0, 0, 0
	for seed := range uint64(300) {
		d := dice{rand.New(rand.NewPCG(seed, 5))}
		s := policy.Settings{Mode: pick(d, append(policy.Modes(), "")...), Sets: d.sets(1+d.IntN(8), anything()...), Grants: d.grants(t)}
		e := compile(t, s)
		for range 20 {
			r := d.request()
			x, decided := e.Explain(t.Context(), r), e.Decide(r)
			var deny, ask bool
			for _, l := range x.Rules {
				deny = deny || l.Matched && l.Then == tool.Deny
				ask = ask || l.Matched && (l.Then == tool.Ask || l.Error != "")
			}
			switch {
			case deny:
				denied++
				if decided.Behavior != tool.Deny {
					t.Fatalf("seed %d: a rule denies, yet the call is %s by %v", seed, decided.Behavior, decided.RuleRefs)
				}
			case ask && decided.Behavior == tool.Allow && decided.Reason["type"] == "grant":
				granted++
			case ask && x.Mode != policy.ModeAcceptAll:
				asked++
				if decided.Behavior == tool.Allow {
					t.Fatalf("seed %d: a rule asks, yet the call is allowed by %v in mode %s", seed, decided.RuleRefs, x.Mode)
				}
			}
		}
	}
	if denied < 100 || asked < 100 || granted < 10 {
		t.Errorf("%d denied, %d asked, %d granted: the test looks at nothing", denied, asked, granted)
	}
}

// TestOrderDoesNotMatter: neither within a source nor between them, for any behavior.
func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(120) {
		d := dice{rand.New(rand.NewPCG(seed, 2))}
		sets := d.sets(2+d.IntN(8), anything()...)
		one := compile(t, policy.Settings{Sets: sets})
		shuffled := slices.Clone(sets)
		d.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		other := compile(t, policy.Settings{Sets: shuffled})
		for range 40 {
			r := d.request()
			a, b := one.Decide(r), other.Decide(r)
			if a.Behavior != b.Behavior || len(a.SuggestedUpdates) != len(b.SuggestedUpdates) {
				t.Fatalf("seed %d: %s %v, and %s %v in another order", seed, a.Behavior, a.RuleRefs, b.Behavior, b.RuleRefs)
			}
		}
	}
}

// TestHiddenIsNeverAllowed: what a surface does not show for a rule is denied whatever is sent.
func TestHiddenIsNeverAllowed(t *testing.T) {
	t.Parallel()
	hidden := 0
	for seed := range uint64(120) {
		d := dice{rand.New(rand.NewPCG(seed, 3))}
		e := compile(t, policy.Settings{Mode: pick(d, append(policy.Modes(), "")...), Sets: d.sets(1+d.IntN(6), anything()...)})
		for range 40 {
			r := d.request()
			if _, is := e.Hides(r.Tool, r.Facts, r.Profile, r.Actor); !is {
				continue
			}
			hidden++
			if !r.Facts.IsOutOfUse() && !e.MayHide(r.Actor.Door) {
				t.Fatalf("seed %d: hidden, but the engine may not hide", seed)
			}
			if got := e.Decide(r); got.Behavior != tool.Deny {
				t.Fatalf("seed %d: hidden, but %s by %v", seed, got.Behavior, got.RuleRefs)
			}
		}
	}
	if hidden < 100 {
		t.Errorf("%d calls to hidden tools: the test looks at nothing", hidden)
	}
}

// TestExplainAgrees: an explanation's decision is the decision, and the rule that decides is among those that match.
func TestExplainAgrees(t *testing.T) {
	t.Parallel()
	for seed := range uint64(80) {
		d := dice{rand.New(rand.NewPCG(seed, 4))}
		e := compile(t, policy.Settings{Sets: d.sets(1+d.IntN(6), anything()...)})
		for range 10 {
			r := d.request()
			x, decided := e.Explain(t.Context(), r), e.Decide(r)
			if x.Decision.Behavior != decided.Behavior || x.Decision.Source != decided.Source {
				t.Fatalf("seed %d: %s, explained as %s", seed, decided.Behavior, x.Decision.Behavior)
			}
			decides := 0
			for _, l := range x.Rules {
				if l.Decides {
					decides++
				}
				if l.Then == tool.Deny && l.Matched && decided.Behavior != tool.Deny {
					t.Fatalf("seed %d: %s matches and denies, yet the call is %s", seed, l.Rule, decided.Behavior)
				}
			}
			if want := len(decided.RuleRefs) > 0; (decides == 1) != want {
				t.Fatalf("seed %d: %d rules decide, refs %v", seed, decides, decided.RuleRefs)
			}
		}
	}
}

// TestTheNextCallKnows: a grant, its end, and other settings count from the very next call, and so do other facts.
func TestTheNextCallKnows(t *testing.T) {
	t.Parallel()
	grants, err := policy.OpenGrants(policy.GrantOptions{File: filepath.Join(t.TempDir(), "grants.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	rule := func(then tool.Behavior, when string) policy.Settings {
		return policy.Settings{Mode: policy.ModeDefault, Grants: grants,
			Sets: user(policy.Rule{ID: "one", Match: []string{"mcp.files.*"}, Then: then, When: when})}
	}
	e := compile(t, rule(tool.Ask, ""))
	other := func(s policy.Settings) (err error) { e, err = policy.Compile(s); return err }
	r := writer("mcp.files.write_file")
	r.Actor = tool.Actor{Name: "ann", Door: "http"}
	var id string
	for i, step := range []struct {
		change func() error
		want   tool.Behavior
	}{
		{func() error { return nil }, tool.Ask},
		{func() error {
			g, err := grants.AddSession("", policy.Grant{Then: tool.Allow, Tool: r.Tool.Name, Actor: r.Actor.Ref()})
			id = g.ID
			return err
		}, tool.Allow},
		{func() error { return grants.Revoke(id) }, tool.Ask},
		{func() error {
			g, err := grants.AddAlways(policy.Grant{Then: tool.Deny, Tool: r.Tool.Name, Actor: r.Actor.Ref()})
			id = g.ID
			return err
		}, tool.Deny},
		{func() error { return grants.Revoke(id) }, tool.Ask},
		{func() error { return other(rule(tool.Allow, "")) }, tool.Allow},
		{func() error { return other(rule(tool.Deny, "")) }, tool.Deny},
		{func() error { return other(rule(tool.Allow, "tool.read_only")) }, tool.Ask},
		{func() error {
			f := *r.Facts
			f.ReadOnly.Value = true
			r.Facts = &f
			return nil
		}, tool.Allow},
		{func() error { return other(rule(tool.Allow, `actor.name == "bob"`)) }, tool.Ask},
		{func() error { r.Actor.Name = "bob"; return nil }, tool.Allow},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if d := e.Decide(r); d.Behavior != step.want {
				t.Errorf("step %d: %s by %v, want %s", i, d.Behavior, d.RuleRefs, step.want)
			}
		}
	}
}
