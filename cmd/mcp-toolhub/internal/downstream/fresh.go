package downstream

import (
	"strconv"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// cacheHints are what a list says on 2026-07-28 of keeping it.
type cacheHints struct {
	ttl    time.Duration
	public bool
}

func (h cacheHints) append(out []byte) []byte {
	out = strconv.AppendInt(append(out, `,"ttlMs":`...), h.ttl.Milliseconds(), 10)
	if h.public {
		return append(out, `,"cacheScope":"public"`...)
	}
	return append(out, `,"cacheScope":"private"`...)
}

// cacheHints are those of the list that method reads: no more than what each server said whose list was merged. What the
// hub itself adds changes with its config alone. A list that others would see differently, or not at all, is private.
func (s *Server) cacheHints(p peer, surface *tool.Surface, method string) (h cacheHints) {
	if s.deps.Fresh == nil || surface.Features == nil {
		return h
	}
	var all tool.Freshness
	merged := 0
	for _, server := range surface.Features.Servers {
		f, ok := s.deps.Fresh(server, method)
		switch {
		case !ok:
			continue
		case merged == 0:
			all = f
		default:
			all = all.And(f)
		}
		merged++
	}
	now, err := s.deps.Surfaces.Surface(p.profile, p.actor)
	if err != nil || now != surface || merged == 0 {
		return h // what servers say may be of a later list
	}
	h.ttl = max(0, time.Until(all.Until))
	h.public = all.Public && !surface.ForClient && len(s.cfg().Auth.Tokens) == 0
	return h
}
