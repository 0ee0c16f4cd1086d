package hub

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
)

// learnedFor is the time between two readings of a caller's records. So a search forgets a record
// soon after the record was erased.
const learnedFor = time.Minute

// learning implements deferred.Past by the record store.
type learning struct {
	hub *Hub

	mu    sync.Mutex
	known map[string]lesson // by caller
}

// lesson holds the searches of one caller with the tools that they led to.
type lesson struct {
	until    time.Time
	examples []search.Example
}

// Learned implements deferred.Past. A hub whose records cannot be read soon has learned nothing.
func (l *learning) Learned(ctx context.Context, actor string) []search.Example {
	now := time.Now()
	l.mu.Lock()
	known := l.known[actor]
	l.mu.Unlock()
	if now.Before(known.until) {
		return known.examples
	}
	ctx, cancel := context.WithTimeout(ctx, offerWithin)
	defer cancel()
	learned := lesson{until: now.Add(learnedFor)}
	records, err := l.hub.pageHub.openStore(ctx)
	if err == nil {
		learned.examples, err = lookup.Learned(ctx, records, actor)
	}
	if err != nil {
		l.hub.Logger.Debug("a search learns nothing, because earlier ones cannot be read", "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.known, func(_ string, old lesson) bool { return now.After(old.until) })
	l.known[actor] = learned
	return learned.examples
}
