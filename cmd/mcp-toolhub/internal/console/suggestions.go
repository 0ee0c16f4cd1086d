package console

import "errors"

// suggested holds the data of the page of suggestions.
type suggested struct {
	person
	List []Suggestion
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
