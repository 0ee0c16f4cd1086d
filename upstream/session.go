package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// session is one established connection to a server: initialised, and not restarted. A new one takes its place.
type session struct {
	lane        lane
	version     string // negotiated
	hop         *hop   // nil below 2026-07-28
	id          string // Mcp-Session-Id, or ""
	info        mcp.InitializeResult
	offersTools bool
	pid         int

	changed chan struct{} // has room for one: the server's tools have changed
	suspect chan struct{} // has room for one: the server could not be reached

	ended   chan struct{} // closed when the session cannot be used any more
	endOnce sync.Once
	reason  *fault // set before ended is closed

	// shut ends the session and everything that it started, and waits for that. Closing kill makes it brisk.
	shut func(kill <-chan struct{})
}

func newSession() *session {
	return &session{
		changed: make(chan struct{}, 1),
		suspect: make(chan struct{}, 1),
		ended:   make(chan struct{}),
	}
}

// end marks the session as over. Only the first reason counts.
func (s *session) end(why *fault) {
	s.endOnce.Do(func() {
		s.reason = why
		close(s.ended)
	})
}

// isOver reports whether the session has ended.
func (s *session) isOver() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

func (s *session) listChanged() { poke(s.changed) }

func (s *session) suspected() { poke(s.suspect) }

// poke signals a channel that has room for one.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// established takes over what initialize or discover has said.
func (s *session) established(sdk *mcp.ClientSession, hubVersion string) {
	s.id = sdk.ID()
	if res := sdk.InitializeResult(); res != nil {
		s.info = *res
	}
	s.version = s.info.ProtocolVersion
	if s.version >= modernVersion {
		s.hop = &hop{version: s.version, client: hubVersion}
	}
	s.offersTools = s.info.Capabilities != nil && s.info.Capabilities.Tools != nil
}

// announcesChanges reports whether the server says that it tells of changes to its tools.
func (s *session) announcesChanges() bool {
	return s.offersTools && s.info.Capabilities.Tools.ListChanged
}

// waitFor waits for c to be closed, for at most d.
func waitFor(ctx context.Context, c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
