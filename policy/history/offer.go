package history

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// Offer returns the grant that the question about r offers, because Least calls of the tool with
// targets of the same class have had the same answer; nil where it offers none. calls are those of
// the tool by the same caller. The grant covers r, and what these answers were about: for paths the
// directory that holds them, and otherwise the very target. Nothing is offered where answers
// differ, about calls that go beyond a limit, with dangerous tools, and where only the very
// arguments could be remembered.
func Offer(ctx context.Context, calls []Call, r *policy.Request, g *gate.Gate, home string) *policy.SuggestedGrant {
	asked, ok := offerable(r, g)
	if !ok {
		return nil
	}
	given := make(map[Answer][]*example)
	for i := range calls {
		c := &calls[i]
		if c.Answer != Allowed && c.Answer != Denied || c.Remembered {
			continue
		}
		before, lost := c.request(ctx, g, func(tool.Name) *tool.Tool { return r.Tool })
		e := &example{call: c, r: before}
		if lost == "" {
			e.scopes, e.bounded = g.Engine.Scopes(before)
		}
		if lost == "" && e.bounded && sameClasses(asked, e.scopes) {
			given[c.Answer] = append(given[c.Answer], e)
		}
	}
	for answer, offer := range map[Answer]policy.SuggestedGrant{
		Allowed: {Type: "add_grant", Choice: policy.AllowOffered, Destination: "always", Behavior: tool.Allow},
		Denied:  {Type: "add_grant", Choice: policy.DenyOffered, Destination: "always", Behavior: tool.Deny},
	} {
		alike, other := given[answer], given[Denied]
		if answer == Denied {
			other = given[Allowed]
		}
		if offer.Targets, offer.Answers = widened(asked, alike, other, home); offer.Answers >= Least {
			offer.Tool = r.Tool.Name
			return &offer
		}
	}
	return nil
}

// MayOffer reports whether Offer can offer anything about r, whatever was answered before.
func MayOffer(r *policy.Request, g *gate.Gate) bool {
	_, ok := offerable(r, g)
	return ok
}

func offerable(r *policy.Request, g *gate.Gate) (asked []policy.Scope, ok bool) {
	asked, ok = g.Engine.Scopes(*r)
	return asked, ok && len(r.Findings) == 0 && r.Facts != nil && !r.Facts.Has("dangerous") &&
		(len(asked) > 0 || r.Facts.ReadOnly.Value)
}

// sameClasses reports whether targets are of the same kinds: paths that are read here, hosts, and so on.
func sameClasses(a, b []policy.Scope) bool {
	class := func(s policy.Scope) policy.Scope {
		return policy.Scope{Kind: s.Kind, Argument: s.Argument, Remote: s.Remote, Write: s.Write}
	}
	within := func(a, b []policy.Scope) bool {
		return !slices.ContainsFunc(a, func(s policy.Scope) bool {
			return !slices.ContainsFunc(b, func(t policy.Scope) bool { return class(s) == class(t) })
		})
	}
	return within(a, b) && within(b, a)
}

// widened returns the scopes that hold what is asked about and what was answered alike, and how
// many answers these were. Where somebody has answered otherwise within them, it is 0.
func widened(asked []policy.Scope, alike, other []*example, home string) (scopes []policy.Scope, answers int) {
	for _, s := range asked {
		if s.Kind == target.Path {
			c := cover{home: home, times: map[string]int{s.Under: 1}}
			for _, e := range alike {
				for _, t := range e.scopes {
					if t.Kind == s.Kind && t.Remote == s.Remote && t.Write == s.Write {
						c.times[t.Under]++
					}
				}
			}
			s.Under = c.above(s.Under)
		}
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	within := func(e *example) bool {
		return !slices.ContainsFunc(e.scopes, func(t policy.Scope) bool {
			return !slices.ContainsFunc(scopes, func(s policy.Scope) bool { return holdsScope(s, t) })
		})
	}
	if slices.ContainsFunc(other, within) {
		return nil, 0
	}
	for _, e := range alike {
		if within(e) {
			answers++
		}
	}
	return scopes, answers
}

// holdsScope reports whether s covers all that t does.
func holdsScope(s, t policy.Scope) bool {
	if s.Kind != target.Path {
		return s == t
	}
	return t.Kind == s.Kind && t.Remote == s.Remote && t.Write == s.Write && target.Under(t.Under, s.Under)
}

// cover is the places of calls that people answered alike. Paths are absolute and clean.
type cover struct {
	home  string
	times map[string]int // calls by directory
}

// above returns the directory that holds dir and at least Least other places or answers: dir itself
// where it has enough, and otherwise the nearest one above that may be named.
func (c *cover) above(dir string) string {
	for at := dir; ; {
		calls := 0
		for one, n := range c.times {
			if target.Under(one, at) {
				calls += n
			}
		}
		next := parentOf(at)
		if calls > Least || next == at || !policy.IsArea(c.home, next) {
			return at
		}
		at = next
	}
}

// parentOf is the directory of p; p itself for a path of another system.
func parentOf(p string) string {
	if !strings.HasPrefix(p, "/") {
		return p
	}
	return path.Dir(p)
}
