package upstream

import (
	"context"
	"time"
)

// AwaitFirstLists waits until each of the servers with these ids has listed for the first time, or has failed. It waits for
// a server until Config.FirstListWithin after that was started. It does not wait for a server that is lazy or disabled, or
// whose tools are known from an earlier start.
//
// recent reports whether one of the servers was started within that time: then its list may have come since OnChange was
// last told.
func (g *Group) AwaitFirstLists(ctx context.Context, ids []string) (recent bool) {
	all := g.roster.Load().byID
	for _, id := range ids {
		if s := all[id]; s != nil && s.awaitFirstList(ctx) {
			recent = true
		}
	}
	return recent
}

// awaitFirstList is AwaitFirstLists for one server.
func (s *server) awaitFirstList(ctx context.Context) (recent bool) {
	s.mu.Lock()
	listed := s.listing != nil
	s.mu.Unlock()
	left := time.Until(s.lifecycle.beginning().Add(s.firstWithin))
	if left <= 0 || s.cfg.Lazy || s.cfg.Disabled {
		return false
	}
	if listed {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-s.lifecycle.settled:
	case <-s.lifecycle.retired: // another server takes its place
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}
