package upstream

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// freshness is what a server said of its lists when it listed them.
type freshness struct {
	of    *session // that listed last; nil before the first
	lists [lists]tool.Freshness
	held  bool // what is listed has just changed, and nobody has been told
}

// maxTTL is the longest ttlMs that a duration holds. Servers that say more are taken to say that.
const maxTTL = math.MaxInt64 / int64(time.Millisecond)

// freshnessOf reads what a page of a list, which was asked for at that time, says of itself. Before 2026-07-28 the members
// mean nothing. "ttlMs" counts from when the result is received, which is no earlier.
func freshnessOf(sess *session, result json.RawMessage, asked time.Time) (f tool.Freshness) {
	if sess.hop == nil {
		return f
	}
	raw, _ := rawjson.Get(result, "ttlMs")
	if ms, err := strconv.ParseInt(string(raw), 10, 64); err == nil && ms > 0 {
		f.Until = asked.Add(time.Duration(min(ms, maxTTL)) * time.Millisecond)
	}
	f.Public = text(result, "cacheScope") == "public"
	return f
}

// freshen notes what sess said of what it has just listed. Of what it did not list nothing is known any more, unless it had
// listed that before.
func (s *server) freshen(sess *session, got listed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fresh.of != sess {
		s.fresh = freshness{of: sess}
	}
	s.fresh.held = false
	for l := range lists {
		if got.known[l] {
			s.fresh.lists[l] = got.fresh[l]
		}
	}
}

// spoil notes that what was said of some lists does not hold any more.
func (s *server) spoil(all ...list) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range all {
		s.fresh.lists[l] = tool.Freshness{}
	}
}

// freshness is what can be said of a list of the server; ok is false where it has no such list.
func (s *server) freshness(l list) (f tool.Freshness, ok bool) {
	if s.cfg.Disabled {
		return f, false
	}
	current := s.lifecycle.isCurrent()
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.fresh.of
	switch {
	case sess == nil || s.fresh.held || !current:
		return f, true // it lists anew when it is back
	case !sess.offers(l.kind()):
		return f, false
	case len(sess.changed[l.kind()]) > 0:
		return f, true // it has told of a change that has not been looked at
	}
	return s.fresh.lists[l], true
}

// Freshness returns what a server said, when it listed it last, of the list that method reads. It says nothing of a list
// that is not up to date, such as that of a server which is down. ok is false where the server has no such list. What
// Catalogs shows is as new as that once Changes has not changed since.
func (g *Group) Freshness(server, method string) (f tool.Freshness, ok bool) {
	s, l, known := g.roster.Load().byID[server], list(0), false
	if l, known = listOf(method); s == nil || !known {
		return f, true
	}
	return s.freshness(l)
}
