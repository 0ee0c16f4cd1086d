package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
)

// nameLimit is how many bytes the name or URI of an element may have.
func (l list) nameLimit() int {
	if l == toolList || l == promptList {
		return maxNameBytes
	}
	return maxURIBytes
}

// admitOffers checks what a server listed besides tools, one by one, as Admit does. An element is admitted as it stands or
// left out with the reason; where two are of one name or URI, the first is admitted.
func (a *admission) admitOffers(l list, raw []json.RawMessage) (offers []tool.Offer, excluded []tool.Exclusion) {
	surplus := 0
	if most := a.limits.Tools; len(raw) > most {
		raw, surplus = raw[:most], len(raw)-most
	}
	first := make(map[string]int, len(raw))
	for i, declaration := range raw {
		c := &candidate{position: i + 1, declaration: bytes.Clone(bytes.TrimSpace(declaration))}
		a.readAs(c, l)
		if at, twice := first[c.name]; c.refused == nil && twice {
			c.refused = &refusal{code: codeDuplicateName, twin: "same server", reason: fmt.Sprintf(
				"the server lists another one with this %s, at position %d of its list, which is used: give each its own on the server",
				l.key(), at)}
		}
		a.checkHidden(c)
		if c.refused == nil {
			first[c.name] = c.position
			offers = append(offers, tool.Offer{Server: a.cfg.ID, Native: c.name, Declaration: c.declaration})
			continue
		}
		e := tool.Exclusion{Origin: a.cfg.ID, Code: c.refused.code, Reason: c.refused.reason,
			Tool: fmt.Sprintf("%s %q", l.noun(), shorten(c.name))}
		if c.name == "" {
			e.Tool = fmt.Sprintf("%s #%d", l.noun(), c.position)
		}
		if c.refused.twin != "" {
			e.Twin = a.cfg.ID
		}
		excluded = append(excluded, e)
		if c.refused.code == codeTooLarge {
			a.limited = append(a.limited, e.Tool+" is left out: "+e.Reason)
		}
	}
	if surplus > 0 {
		excluded = append(excluded, tool.Exclusion{
			Tool: fmt.Sprintf("(%d more %ss)", surplus, l.noun()), Origin: a.cfg.ID, Code: codeTooLarge,
			Reason: fmt.Sprintf("the server lists %d %ss, of which the hub takes the first %d (%s): list fewer, or %s",
				len(raw)+surplus, l.noun(), a.limits.Tools, settings.LimitTools, settings.Raise(settings.LimitTools)),
		})
		a.limited = append(a.limited, excluded[len(excluded)-1].Reason)
	}
	return offers, excluded
}
