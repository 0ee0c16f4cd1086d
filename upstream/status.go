package upstream

import (
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// status is what a person can see of the server.
func (s *server) status() tool.ServerStatus {
	st := tool.ServerStatus{Server: s.cfg.ID, Transport: string(s.cfg.Transport),
		Traffic: tool.Traffic{Calls: s.calls.Load(), Errors: s.errors.Load(), Dropped: s.losses.count()}}
	s.lifecycle.report(&st)
	s.catalog.report(&st)
	if s.use == useListing {
		s.isolation.report(&st)
	}
	return st
}
