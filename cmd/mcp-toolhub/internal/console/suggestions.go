package console

import (
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// ShownEvidence is the number of calls that are shown of those behind a rule.
const ShownEvidence = 5

// newest returns the last few of some calls, the newest first.
func newest[T any](calls []T) []T {
	few := slices.Clone(calls[max(0, len(calls)-ShownEvidence):])
	slices.Reverse(few)
	return few
}

// ThroughText is a call that nobody allowed and a rule would.
func ThroughText(t *history.Through) string {
	was := "was " + string(t.Was)
	if t.Answer != "" {
		was = string(t.Answer)
	}
	return fmt.Sprintf("%s %s %s (%s)", t.ID, t.Tool, hidden.Summary(t.Arguments, 200), was)
}

// suggested holds the data of the page of suggestions.
type suggested struct {
	person
	List []history.Suggestion
	Says string
}

// suggestions shows rules that would have spared people answers, each with its evidence.
func (v *visit) suggestions() (*page, error) {
	s := suggested{}
	var err error
	if s.person, err = v.person(); err != nil {
		return nil, err
	}
	if s.List, s.Says, err = v.Hub.Suggestions(v.r.Context()); err != nil {
		return nil, wrong(err)
	}
	return &page{Name: "suggestions", Title: "Suggested rules", Data: s}, nil
}

// takeRule adds a rule to the config. More runs unasked after it, so it takes what an answer to an approval takes.
func (v *visit) takeRule() (*page, error) {
	if err := v.mayDecide(); err != nil {
		return nil, err
	}
	id := v.r.PathValue("rule")
	err := v.Hub.TakeRule(v.r.Context(), id)
	if errors.Is(err, ErrUnknown) {
		err = errors.New("the rule is not suggested any more: look at the list again")
	}
	if err != nil {
		return nil, wrong(err)
	}
	v.Logger.Info("a person adds a rule on the page", "rule", id, "person", v.Person)
	v.sessions.say(v.session, "Added to the config: "+id+". It is in force in a moment.")
	return &page{Redirect: Path + "policy"}, nil
}
