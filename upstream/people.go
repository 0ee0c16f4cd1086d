package upstream

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// people holds what belongs to one person, and to no connection, of a server that each caller signs
// in to: the source of the person's tokens, and the sign-in that the server has refused. It is safe
// for concurrent use.
type people struct {
	cfg   ServerConfig
	store *signin.Store // nil: nobody signs in

	mu      sync.Mutex
	sources map[string]*signin.Source
	refused map[string]refusedSignIn
}

// refusedSignIn is a sign-in that a server has refused, and why. It is not tried again: that could
// lock the person's account.
type refusedSignIn struct {
	mark  string
	fault *fault.Fault
}

func newPeople(cfg ServerConfig, store *signin.Store) *people {
	return &people{cfg: cfg, store: store, sources: make(map[string]*signin.Source),
		refused: make(map[string]refusedSignIn)}
}

// source returns the one source of a person's tokens: all connections of that person renew them together.
func (p *people) source(person string) *signin.Source {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sources[person] == nil {
		p.sources[person] = p.store.Source(p.cfg.For(person))
	}
	return p.sources[person]
}

// mark says which sign-in of a person is in force; "" for none.
func (p *people) mark(person string) string {
	if p.store == nil {
		return ""
	}
	return p.store.Mark(p.cfg.For(person))
}

// refusal says why a person cannot use the server, or nil.
func (p *people) refusal(person string) error {
	if person == "" {
		return &tool.Failure{Class: tool.ClassSetupRequired, Code: codeNeedsSignIn, Message: fmt.Sprintf(
			"each caller signs in to server %q, and this caller has no name: give it a token of its own in "+
				"hub.auth.tokens",
			p.cfg.ID)}
	}
	mark := p.mark(person)
	if mark == "" && p.store != nil {
		if _, _, err := p.store.Grant(p.cfg.For(person)); err != nil {
			f := fault.OfToken(p.cfg, err, p.cfg.Entry().Redactor())
			return &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "sign_in_unreadable", Message: f.What,
				Cause: err}
		}
	}
	if mark == "" {
		why := fmt.Sprintf("%q has not signed in to server %q", person, p.cfg.ID)
		if p.store != nil {
			why = cmp.Or(p.store.Ended(p.cfg.For(person)), why)
		}
		f := fault.NeedsSignIn(p.cfg.For(person), why, nil)
		return signInFailure(f.What, f.Hint, nil)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if before, ok := p.refused[person]; ok && before.mark == mark {
		return signInFailure(before.fault.What, before.fault.Hint, before.fault.Cause)
	}
	return nil
}

// Needs says what a caller has to do before it can use a server that each caller signs in to; "" for nothing.
func (g *Group) Needs(server string, caller tool.Session) string {
	s := g.roster.Load().byID[server]
	if s == nil || s.isolation == nil || s.isolation.people == nil {
		return ""
	}
	var f *tool.Failure
	if err := s.isolation.people.refusal(caller.Person); errors.As(err, &f) {
		return "a sign-in: " + s.redact.Beginning(f.Message, secret.MaxMessage)
	}
	return ""
}

// refuse notes that the server has refused the sign-in of a connection.
func (p *people) refuse(e *entry, f *fault.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused[e.client.Person] = refusedSignIn{e.cfg.SignIn, f}
}

// Personal returns the servers whose resources stand in no catalog, because each caller signs in
// there: it may be somebody's documents that they list. A caller is told of its own by Forward.
func (g *Group) Personal() (ids []string) {
	for _, s := range g.roster.Load().servers {
		if s.cfg.OAuth.PerCaller && !s.cfg.Disabled {
			ids = append(ids, s.cfg.ID)
		}
	}
	return ids
}

// secrets returns the tokens of all people, for whoever keeps them out of texts.
func (p *people) secrets() []string {
	all, err := p.store.People(p.cfg)
	if err != nil {
		return nil
	}
	var secrets []string
	for _, person := range all {
		secrets = append(secrets, p.source(person).Secrets()...)
	}
	return secrets
}

// signIns says who is signed in. Texts of others pass through show.
func (p *people) signIns(show func(string) string) (all []*tool.SignIn) {
	if p.store == nil {
		return nil
	}
	known, err := p.store.People(p.cfg)
	if err != nil {
		return nil
	}
	for _, person := range known {
		if st := p.source(person).Status(show); st != nil {
			st.Person, st.Login = person, fault.LoginCommand(p.cfg.For(person))
			all = append(all, st)
		}
	}
	return all
}
