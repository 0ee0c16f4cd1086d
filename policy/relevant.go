package policy

import (
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

// relevance remembers which rules have a say in the calls of one caller to one tool. Of a hundred rules that is often one, and
// only its condition may depend on the call. It belongs to one version of the policy. Findings and grants are no part of it.
type relevance struct {
	mu    sync.RWMutex
	known map[callKind]*rulesAbout
}

// callKind is all that the keys of rules and static conditions look at. The tool and its facts are told apart by where they are,
// because neither ever changes.
type callKind struct {
	tool        *tool.Tool
	facts       *facts.Facts
	profile     string
	actor, door string
}

// maxCallKinds bounds what is remembered. A hub with more tools and callers forgets all and begins again.
const maxCallKinds = 4096

// rulesAbout are the rules whose keys match, in the order in which they are asked.
type rulesAbout struct {
	denies, asks, rest []relevantRule

	tool *celTool // for their conditions; nil where they have none that depends on the call
}

// relevantRule is a rule whose keys match.
type relevantRule struct {
	*compiledRule
	settled bool  // its condition, if it has one, says the same of every call: it holds, or err
	err     error // why that cannot be evaluated
}

// matches reports whether the rule matches; an error where its condition cannot be evaluated.
func (c *relevantRule) matches(s *subject) (bool, error) {
	if c.settled {
		return c.err == nil, c.err
	}
	return c.when.holds(s)
}

// rulesAbout returns the rules that have a say. They are remembered if the facts are known ones, which are of the tool for good.
func (s *compiledPolicy) rulesAbout(sub *subject, known bool) *rulesAbout {
	if !known {
		return s.findRules(sub)
	}
	kind := callKind{sub.Tool, sub.Facts, sub.Profile, sub.Actor.Name, sub.Actor.Door}
	s.relevant.mu.RLock()
	about, ok := s.relevant.known[kind]
	s.relevant.mu.RUnlock()
	if ok {
		return about
	}
	about = s.findRules(sub)
	s.relevant.mu.Lock()
	defer s.relevant.mu.Unlock()
	if s.relevant.known == nil || len(s.relevant.known) >= maxCallKinds {
		s.relevant.known = make(map[callKind]*rulesAbout)
	}
	s.relevant.known[kind] = about
	return about
}

func (s *compiledPolicy) findRules(sub *subject) *rulesAbout {
	var about rulesAbout
	find := func(rules []*compiledRule) (found []relevantRule) {
		for _, c := range rules {
			r := relevantRule{compiledRule: c, settled: c.isStatic()}
			holds := c.mismatch(sub.Request) == ""
			if holds && r.settled && c.when != nil {
				holds, r.err = c.when.holds(sub)
			}
			if holds || r.err != nil {
				found = append(found, r)
				if !r.settled && about.tool == nil {
					about.tool = toolOf(sub.Request)
				}
			}
		}
		return found
	}
	about.denies, about.asks, about.rest = find(s.strict[:s.asks]), find(s.strict[s.asks:]), find(s.rest)
	return &about
}

// Forget gives up what the engine remembers of tools, some of which may be gone. Its decisions stay the same.
func (e *Engine) Forget() {
	r := e.current.Load().relevant
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = nil
}
