package console

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// NewServer is a server that a person adds on the page.
type NewServer struct {
	Name  string   // "" leaves it to the hub
	Words []string // an address, or a program and its arguments
	More  []string // headers of an address as "NAME: VALUE", variables of a program as "NAME=VALUE"
}

// IsAddress reports whether the server is one at an address.
func (n NewServer) IsAddress() bool {
	return len(n.Words) > 0 && (strings.HasPrefix(n.Words[0], "https://") || strings.HasPrefix(n.Words[0], "http://"))
}

// isHarmless reports whether to add the server starts no program, and sends nothing that the hub keeps.
func (n NewServer) isHarmless() bool {
	return n.IsAddress() && !strings.Contains(strings.Join(slices.Concat(n.Words, n.More), " "), "${")
}

// Plan says what adding a server would do.
type Plan struct {
	NewServer
	ID     string // of the server
	Starts string // what it would run or reach, without secrets
	Key    string // names the plan in the form that carries it out
}

// addition holds the data of the page on which a server is added.
type addition struct {
	person
	Plan                          *Plan // to be confirmed; nil where there is none
	Problem, Server, Called, More string
}

// adder is a visit to add a server.
type adder struct{ *visit }

// form shows the form for a new server, or the one that waits to be confirmed.
func (v adder) form() (*page, error) {
	a := addition{}
	if !v.r.URL.Query().Has("other") {
		a.Plan = v.sessions.plans(v.session, nil)
	}
	return v.formPage(a)
}

func (v adder) formPage(a addition) (p *page, err error) {
	a.person, err = v.person()
	if p = (&page{Name: "add", Title: "Add a server", Data: a}); a.Problem != "" {
		p.Status = http.StatusUnprocessableEntity
	}
	return p, err
}

// take adds a harmless server at once. Any other one is shown first, and added in a second step
// by a session that may answer approvals.
func (v adder) take() (*page, error) {
	if key := v.r.PostFormValue("plan"); key != "" {
		if err := v.mayDecide(); err != nil {
			return nil, err
		}
		plan := v.sessions.plans(v.session, nil)
		if plan == nil || plan.Key != key {
			return nil, &fault{http.StatusConflict, "Another server was entered since: look at that one first."}
		}
		return v.added(plan.NewServer)
	}
	given := addition{Server: strings.TrimSpace(v.r.PostFormValue("server")), Called: v.r.PostFormValue("name"),
		More: v.r.PostFormValue("more")}
	words, err := splitWords(given.Server)
	n := NewServer{Name: strings.TrimSpace(given.Called), Words: words}
	for line := range strings.Lines(given.More) {
		if line = strings.TrimSpace(line); line != "" {
			n.More = append(n.More, line)
		}
	}
	var plan Plan
	if err == nil {
		plan, err = v.Hub.AddServer(v.r.Context(), n, true)
	}
	if err != nil {
		given.Problem, given.More = sentence(err.Error()), "" // which may hold secrets
		return v.formPage(given)
	}
	if n.isHarmless() {
		return v.added(n)
	}
	plan.Key = rand.Text()
	v.sessions.plans(v.session, &plan)
	return &page{Redirect: Path + "add"}, nil
}

// added adds the server, and goes to its page.
func (v adder) added(n NewServer) (*page, error) {
	done, err := v.Hub.AddServer(v.r.Context(), n, false)
	if err != nil {
		return nil, wrong(err)
	}
	v.sessions.plans(v.session, &Plan{})
	v.sessions.say(v.session, done.ID+": added to the config, and tried now")
	return &page{Redirect: Path + "servers/" + url.PathEscape(done.ID)}, nil
}

var (
	// commandWord matches a word of a command line. Parts of it may be in quotes: quotedPart matches one.
	commandWord = regexp.MustCompile(`(?:[^\s'"]|'[^']*'|"[^"]*")+`)
	quotedPart  = regexp.MustCompile(`'([^']*)'|"([^"]*)"`)
)

// splitWords splits a command line as a shell does. A word that begins with ~/ is below the person's home directory.
func splitWords(line string) (words []string, err error) {
	for _, word := range commandWord.FindAllString(line, -1) {
		if below, ok := strings.CutPrefix(word, "~/"); ok {
			word = "${userHome}/" + below
		}
		words = append(words, quotedPart.ReplaceAllString(word, "$1$2"))
	}
	if strings.ContainsAny(commandWord.ReplaceAllString(line, ""), `'"`) {
		err = errors.New("a quote has no end: write the program and its arguments as in a terminal")
	}
	return words, err
}
