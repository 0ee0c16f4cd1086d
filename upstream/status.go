package upstream

import (
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/redact"
)

// status is what a person can see of the server.
func (s *server) status() tool.ServerStatus {
	st := s.ownStatus()
	if s.use == useListing {
		s.isolation.report(&st)
	}
	return st
}

// comeAfter notes what has to end before the server starts.
func (s *server) comeAfter(ended <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = ended
}

// isBehind reports whether the server waits for those that it replaces. s.mu is held.
func (s *server) isBehind() bool {
	if s.before == nil || s.cfg.Disabled {
		return false
	}
	select {
	case <-s.before:
		return false
	default:
		return true
	}
}

// ownStatus is status without the connections of client sessions.
func (s *server) ownStatus() tool.ServerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := tool.ServerStatus{
		Server: s.cfg.ID, Transport: string(s.cfg.Transport), State: s.state, Since: s.since,
		LastError: s.redact.Beginning(s.lastErr, redact.MaxMessage), Hint: s.redact.Beginning(s.hint, redact.MaxMessage), PID: s.pid, Restarts: s.restarts,
		Calls: s.calls.Load(), Errors: s.errors.Load(), InFlight: s.inFlight,
		Dropped: s.losses.count(),
	}
	for _, f := range s.unlisted {
		if f != nil && s.state == tool.ServerReady && st.LastError == "" {
			st.LastError, st.Hint = s.redact.Beginning(f.What, redact.MaxMessage)+": that list stays as it was", f.Hint
		}
	}
	if s.isBehind() && st.Hint == "" {
		st.Hint = fmt.Sprintf("its entry has changed, and it starts when the calls that it was still working on have ended, within %s", retireWithin)
	}
	if s.asleep && st.Hint == "" {
		st.Hint = "starts when one of its tools is called"
		if s.use == useListing {
			st.Hint = "each session gets a connection of its own when it calls one of the tools"
		}
	}
	if !s.nextTry.IsZero() {
		next := s.nextTry
		st.NextTry = &next
	}
	if sess := s.previous; sess != nil {
		st.ProtocolVersion = sess.version
		if info := sess.info.ServerInfo; info != nil {
			st.ServerName, st.ServerVersion = s.redact.Text(info.Name), s.redact.Text(info.Version)
		}
	}
	if l := s.listing; l != nil {
		st.Tools, st.Repaired, st.Excluded = len(l.catalog.Tools), l.repaired, l.catalog.Excluded
		st.Prompts, st.Resources, st.Templates = len(l.catalog.Prompts), len(l.catalog.Resources), len(l.catalog.Templates)
		st.Cached, st.Known = l.catalog.Pending, !s.foreign
		st.Findings, st.Changed = l.findings, slices.Clone(s.seen.changed)
	}
	return st
}

// needs is what somebody has to do before the server works again; "" where nobody has to do anything. s.mu is held.
func (s *server) needs() string {
	switch {
	case s.up || s.lastErr == "":
		return ""
	case s.state == tool.ServerNeedsAuth:
		return "a sign-in: " + s.hint
	}
	return fmt.Sprintf("mending: %s; %s", s.lastErr, s.hint) // also while it is tried again
}

func (s *server) isAsleep() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asleep
}
