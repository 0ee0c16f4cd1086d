package history_test

import (
	"os"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// tally is how rules do on calls that people were asked about.
type tally struct{ allowed, spared, denied, through int }

// measure decides about calls with the rules.
func measure(t testing.TB, calls []history.Call, rules []policy.Rule) (m tally) {
	t.Helper()
	g, err := policyOf(rules)
	if err != nil {
		t.Fatal(err)
	}
	tools := declared()
	for _, c := range calls {
		r, err := g.Request(t.Context(), gate.Call{Tool: tools(c.Tool), Input: c.Input, Actor: c.Actor, Profile: c.Profile})
		if err != nil {
			t.Fatal(err)
		}
		runs := g.Engine().Decide(t.Context(), r).Behavior == tool.Allow
		switch {
		case c.Answer == history.Allowed && runs:
			m.spared++
			fallthrough
		case c.Answer == history.Allowed:
			m.allowed++
		case c.Answer == history.Denied && runs:
			m.through++
			fallthrough
		case c.Answer == history.Denied:
			m.denied++
		}
	}
	return m
}

// TestSuggestOnFourWeeks is the proof: on four weeks of each persona, the suggested rules give at least 95% of the answers, and let not
// one call through that the persona denied.
func TestSuggestOnFourWeeks(t *testing.T) {
	t.Parallel()
	for _, p := range personas() {
		for seed := range uint64(sampleOf(2, 20)) {
			calls := weeks(t, p, seed, 5)
			past, next := calls[:len(calls)*4/5], calls[len(calls)*4/5:]
			s, err := history.Suggest(t.Context(), history.Past{Calls: past, Tools: declared(), Home: homeOf, Gate: policyOf})
			if err != nil {
				t.Fatal(err)
			}
			var rules []policy.Rule
			for _, one := range s.Suggestions {
				rules = append(rules, one.Rule)
			}
			m, later := measure(t, past, rules), measure(t, next, rules)
			t.Logf("%s %d: %d rules; of %d calls allowed %d run, of %d denied %d; in the week after, of %d allowed %d, of %d denied %d", p.name, seed,
				len(rules), m.allowed, m.spared, m.denied, m.through, later.allowed, later.spared, later.denied, later.through)
			if 100*m.spared < 95*m.allowed {
				t.Errorf("%s %d: of %d calls that were allowed, the rules allow %d", p.name, seed, m.allowed, m.spared)
			}
			if m.through > 0 {
				t.Errorf("%s %d: the rules let %d calls through that were denied", p.name, seed, m.through)
			}
			if t.Failed() {
				for _, r := range rules {
					t.Logf("%s %v %v\n\t%s", r.ID, r.Match, r.Actor, r.When)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}

// sampleOf returns how much of a proof runs: a sample, or the whole where TOOLHUB_LONG is set.
func sampleOf(sample, whole int) int {
	if os.Getenv("TOOLHUB_LONG") != "" {
		return whole
	}
	return sample
}
