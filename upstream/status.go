package upstream

import (
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
)

// status returns the server's state for people.
func (s *server) status() tool.ServerStatus {
	st := tool.ServerStatus{Server: s.cfg.ID, Transport: string(s.cfg.Transport),
		Traffic: tool.Traffic{Dropped: s.losses.Load()}}
	s.lifecycle.report(&st)
	s.catalog.report(&st)
	if s.tokens != nil {
		if st.SignIn = s.tokens.Status(s.redact.Text); st.SignIn != nil {
			st.SignIn.Login = fault.LoginCommand(s.cfg)
		}
	}
	if _, apart := s.isApart(tool.Session{}); apart {
		s.isolation.report(&st)
	}
	return st
}

// missing returns why a server is not started: references of its entry have no value. It returns
// nil where all have one.
func missing(cfg ServerConfig) *fault.Fault {
	if cfg.Missing.What == "" {
		return nil
	}
	return &fault.Fault{What: cfg.Missing.What, Hint: cfg.Missing.Hint}
}

// unavailable is the answer of a call to a server that is not ready: what is wrong, and what will help.
func (s *server) unavailable() *tool.Failure {
	st := s.status()
	if s.use != useListing && s.lifecycle.isAsleep() {
		st.State, st.Hint = tool.ServerStarting, "" // it was woken
	}
	f := &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "server_" + string(st.State)}
	f.Message = fmt.Sprintf("server %q is not ready (%s)", st.Server, st.State)
	if st.LastError != "" {
		f.Message += ": " + st.LastError
	}
	switch st.State {
	case tool.ServerBackoff:
		if st.NextTry != nil {
			f.RetryAfter = max((time.Until(*st.NextTry) + time.Second - 1).Truncate(time.Second), time.Second)
			f.Message += fmt.Sprintf("; the hub tries again in %s", f.RetryAfter)
		}
	case tool.ServerNeedsAuth:
		f.Class = tool.ClassCredentialMissing
		if s.cfg.SignsIn() {
			f.Class = tool.ClassSetupRequired
		}
	case tool.ServerNeedsSetup:
		f.Class = tool.ClassSetupRequired
	case tool.ServerStopped:
		f.Message += "; it is disabled or the hub is stopping"
	default:
		f.RetryAfter = time.Second
		f.Message += "; call again in a moment"
		if st.State == tool.ServerStarting && st.Hint != "" {
			f.Message += ": " + st.Hint
			st.Hint = ""
		}
	}
	if st.Hint != "" {
		f.Message += "; to mend it: " + st.Hint
	}
	return f
}
