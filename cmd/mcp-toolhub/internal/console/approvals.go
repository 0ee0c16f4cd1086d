package console

import (
	"net/http"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// waiting holds the data of the list of approvals.
type waiting struct {
	person
	List  []question
	Pager pager

	Settled []approval.View // the newest first
}

// approvals shows the calls that wait, the oldest first.
func (v *visit) approvals() (*page, error) {
	p, err := v.person()
	if err != nil {
		return nil, err
	}
	all, settled := v.Hub.Approvals(), v.Approvals.Settled()
	at, pager := v.part(len(all), approvalsPerPage)
	return &page{Name: "approvals", Title: "Approvals", Live: true,
		Data: waiting{p, v.session.questions(all[at:at+pager.here], p), pager,
			settled[:min(len(settled), approvalsPerPage)]}}, nil
}

// question is one approval as pages show it.
type question struct {
	approval.View
	person
	Open    bool
	Text    string // the arguments, to be edited
	Answers []answerButton
	CSRF    string
}

// questions are approvals with the buttons that answer them.
func (o *session) questions(all []approval.View, p person) (list []question) {
	for _, asked := range all {
		q := question{View: asked, person: p, Open: asked.State == approval.Pending, Text: edited(asked),
			CSRF: o.csrf}
		for _, c := range asked.Choices {
			text := label(c)
			if (c == policy.AllowOffered || c == policy.DenyOffered) && asked.Offer != "" {
				text = asked.Offer
			}
			q.Answers = append(q.Answers, answerButton{c, text, c.Allows()})
		}
		list = append(list, q)
	}
	return list
}

// person says what it takes to show that a person answers here.
type person struct {
	May  bool   // nothing any more
	Mode string // what it takes
	Host string // of passkeys; "" where there can be none
	Keys int    // passkeys of the host
	At   string // the place to go on at with the code
}

func (v *visit) person() (p person, err error) {
	p = person{May: v.sessions.mayAnswer(v.session, v.mode()), Mode: v.mode(), Host: v.host(),
		At: strings.TrimPrefix(v.r.URL.Path, Path)}
	if p.Mode == ApproveByPasskey {
		o, err := v.keys.of(p.Host)
		if err != nil {
			return p, err
		}
		p.Keys = len(o.WebAuthnCredentials())
	}
	return p, nil
}

// answerButton is a choice, and what it does.
type answerButton struct {
	Choice policy.Choice
	Label  string
	Allows bool
}

// label says what a choice does.
func label(c policy.Choice) string {
	return map[policy.Choice]string{
		policy.AllowOnce: "Allow once", policy.AllowSession: "Allow for this session", policy.AllowAlways: "Always allow",
		policy.DenyOnce: "Deny once", policy.DenyAlways: "Always deny",
		policy.AllowOffered: "Always allow what was offered", policy.DenyOffered: "Always deny what was offered"}[c]
}

// approval shows one approval, also one that was answered lately.
func (v *visit) approval() (*page, error) {
	asked, err := v.Hub.Approval(approval.ID(v.r.PathValue("id")))
	if err != nil {
		return nil, &fault{http.StatusNotFound, sentence(err.Error())}
	}
	p, err := v.person()
	if err != nil {
		return nil, err
	}
	return &page{Name: "approval", Title: "May this call run?", Live: true,
		Data: v.session.questions([]approval.View{asked}, p)[0]}, nil
}

// edited is the text of the arguments that the form offers, in which everything can be seen.
func edited(q approval.View) string {
	if q.Cut {
		return q.Arguments
	}
	return hidden.EscapeJSON(indented([]byte(q.Arguments)))
}

// answer settles an approval. The answers are those of the command line; the first one counts, wherever it comes from.
func (v *visit) answer() (*page, error) {
	id := v.r.PathValue("id")
	if err := v.mayDecide(); err != nil {
		return nil, err
	}
	asked, err := v.Hub.Approval(approval.ID(id))
	if err != nil {
		return nil, &fault{http.StatusNotFound, sentence(err.Error())}
	}
	a := approval.Answer{Choice: policy.Choice(v.r.PostFormValue("choice")),
		Sentence: strings.TrimSpace(v.r.PostFormValue("sentence")),
		By:       "page/" + v.Person, From: SessionKey(v.session.browser) + "/"}
	given := strings.ReplaceAll(v.r.PostFormValue("arguments"), "\r\n", "\n") // as forms write line breaks
	if a.Choice.Allows() && !asked.Cut && given != "" && given != edited(asked) {
		a.Arguments = []byte(given)
	}
	if err := v.Approvals.Answer(approval.ID(id), a); err != nil {
		return nil, wrong(err)
	}
	v.sessions.say(v.session, label(a.Choice)+": "+string(asked.Binding.Tool))
	return &page{Redirect: Path + "approvals"}, nil
}

// mayDecide refuses those who have not shown that a person sits there.
func (v *visit) mayDecide() error {
	switch {
	case v.mode() == ApproveOff:
		return &fault{http.StatusForbidden, "hub.ui.approvals of the config is off: answer in a terminal."}
	case !v.sessions.mayAnswer(v.session, v.mode()):
		return &fault{http.StatusForbidden,
			"This page may not answer yet: open the approval or the suggestions, and do what is asked for there first."}
	}
	return nil
}

// mayAnswerNow is said to whom it is true for from then on.
const mayAnswerNow = "This page may answer approvals until you sign out."

// unlock takes the code with which this browser may answer.
func (v *visit) unlock() (*page, error) {
	if v.mode() != ApproveByCode {
		return nil, &fault{http.StatusForbidden, "hub.ui.approvals of the config is not code."}
	}
	if err := v.sessions.unlock(v.session, v.r.PostFormValue("code")); err != nil {
		v.Logger.Warn("the page was given a code that is not good", "session", v.session.name)
		return nil, wrong(err)
	}
	v.sessions.say(v.session, mayAnswerNow)
	return &page{Redirect: Path + v.r.PostFormValue("place")}, nil
}
