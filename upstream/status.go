package upstream

import (
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/redact"
)

// status is what a person can see of the server.
func (s *server) status() tool.ServerStatus {
	st := tool.ServerStatus{Server: s.cfg.ID, Transport: string(s.cfg.Transport),
		Calls: s.calls.Load(), Errors: s.errors.Load(), Dropped: s.losses.count()}
	s.lifecycle.report(&st)
	s.reportCatalog(&st)
	if s.use == useListing {
		s.isolation.report(&st)
	}
	return st
}

// reportCatalog fills in what a person can see of the catalog.
func (s *server) reportCatalog(st *tool.ServerStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.unlisted {
		if f != nil && st.State == tool.ServerReady && st.LastError == "" {
			st.LastError, st.Hint = s.redact.Beginning(f.What, redact.MaxMessage)+": that list stays as it was", f.Hint
		}
	}
	if l := s.listing; l != nil {
		st.Tools, st.Repaired, st.Excluded = len(l.catalog.Tools), l.repaired, l.catalog.Excluded
		st.Prompts, st.Resources, st.Templates = len(l.catalog.Prompts), len(l.catalog.Resources), len(l.catalog.Templates)
		st.Cached, st.Known = l.catalog.Pending, !s.foreign
		st.Findings, st.Changed = l.findings, slices.Clone(s.seen.changed)
	}
}
