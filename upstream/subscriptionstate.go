package upstream

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

// subscriptionState records which resources and which log level the server of one session was told to report.
type subscriptionState struct {
	level    logLevel
	changing chan struct{} // has room for one: whoever put something in may change uris

	mu   sync.Mutex
	uris map[string]bool
}

func newSubscriptionState() *subscriptionState {
	return &subscriptionState{changing: make(chan struct{}, 1), uris: make(map[string]bool)}
}

func (s *subscriptionState) has(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uris[uri]
}

func (s *subscriptionState) isEmpty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uris) == 0
}

func (s *subscriptionState) set(uri string, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if on {
		s.uris[uri] = true
	} else {
		delete(s.uris, uri)
	}
}

func (s *subscriptionState) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.uris))
}

// lock waits until the caller may change uris. unlock must follow, unless there is an error.
func (s *subscriptionState) lock(ctx context.Context, sess *session) error {
	select {
	case s.changing <- struct{}{}:
		return nil
	case <-sess.ended:
		return endedFailure(&pendingRequest{}, transport.ErrClosed).err
	case <-ctx.Done():
		return canceled(ctx, false)
	}
}

func (s *subscriptionState) unlock() { <-s.changing }

// logLevel is the level of log messages that the server of a session has been told.
type logLevel struct {
	mu      sync.Mutex
	told    string        // "": none
	waived  string        // the level that calls no longer wait for; "": none
	changed chan struct{} // closed at the next change; nil where nobody waits
}

// after returns what to tell the server now that clients want level, and whether that is new to it.
func (l *logLevel) after(level string) (next string, isNew bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next(level), l.next(level) != l.told
}

// next is after where l.mu is held.
func (l *logLevel) next(level string) string {
	if level == "" && l.told != "" {
		return quietLevel
	}
	return level
}

// set notes what the server was told.
func (l *logLevel) set(level string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = level
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// pending returns a channel that is closed at the next change, or nil where the server knows that clients want level.
func (l *logLevel) pending(level string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next := l.next(level); next == l.told || next == l.waived {
		return nil
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return l.changed
}

// waive lets no further call wait for level.
func (l *logLevel) waive(level string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waived = l.next(level)
}
