package upstream

import (
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"
)

// subscriptionState records which resources and which log level the server of one session was told to report.
type subscriptionState struct {
	changing *semaphore.Weighted // its holder may change uris

	leveling sync.Mutex // held while the server is told
	level    string     // of log messages; "" before the server was told of one

	mu   sync.Mutex
	uris map[string]bool
}

func newSubscriptionState() *subscriptionState {
	return &subscriptionState{changing: semaphore.NewWeighted(1), uris: make(map[string]bool)}
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

func (s *subscriptionState) set(on bool, uris ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, uri := range uris {
		if on {
			s.uris[uri] = true
		} else {
			delete(s.uris, uri)
		}
	}
}

func (s *subscriptionState) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.uris))
}
