package policy

import (
	"errors"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// errEveryTime is why an answer to some questions is not remembered.
var errEveryTime = errors.New("a rule asks about this call every time: the answer held once")

// errNoGrants is why nothing is remembered in a hub without grants.
var errNoGrants = errors.New("this hub remembers no answers: the answer held once")

// remember makes a grant of an answer that is to last, nil where it is not to.
func (s *state) remember(r *Request, v *verdict, a Settlement) (*Grant, error) {
	switch a.Choice {
	case AllowSession, AllowAlways, DenyAlways:
	default:
		return nil, nil
	}
	if s.settings.Grants == nil {
		return nil, errNoGrants
	}
	if v.once && v.behavior == tool.Allow {
		return nil, errEveryTime
	}
	g := Grant{Then: v.behavior, Tool: r.Tool.Name, Schema: r.Tool.SchemaDigest, Actor: r.Actor.Ref(), Says: a.Sentence, By: a.By}
	scopes, ok := scopesOf(r, v.exact, s.settings.Directory)
	if ok {
		g.Scopes = scopes
	} else {
		g.Exact = digestCall(r)
	}
	if v.behavior == tool.Allow {
		g.Says = "" // was about this call
	}
	var err error
	if a.Choice == AllowSession || s.settings.Grants.file == nil {
		g, err = s.settings.Grants.AddSession(r.Actor.Session, g)
	} else {
		g, err = s.settings.Grants.AddAlways(g)
	}
	if err != nil {
		return nil, err
	}
	return &g, nil
}

func expiry(g *Grant) *time.Time {
	if g.Expires.IsZero() {
		return nil
	}
	at := g.Expires.UTC()
	return &at
}
