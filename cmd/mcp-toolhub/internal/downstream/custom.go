package downstream

import (
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// What the hub does not know, of extensions that are none of its business, passes between a server and the clients of its
// direct view. Elsewhere nobody could say which server is meant.

// serves reports whether the hub itself serves requests of method to clients of profile. The SDK serves the others, or none.
func (s *Server) serves(profile, method string) bool {
	return onLane(method) || isCustom(profile, method)
}

// isCustom reports whether requests of method are passed on because the hub does not know them.
func isCustom(profile, method string) bool {
	// A notification with an id is none that the hub does not know: there are servers that heed a cancellation all the same.
	return direct(profile) && !isKnownRequest(method) && !strings.HasPrefix(method, notePrefix)
}

// notePrefix begins the methods of the protocol's notifications.
const notePrefix = "notifications/"

// isKnownRequest reports whether the hub knows what is meant by requests of method, of clients or of servers.
func isKnownRequest(method string) bool {
	switch method {
	case tool.MethodElicit, tool.MethodSample, tool.MethodRoots: // which servers ask of clients
		return true
	}
	return onLane(method) || servedBySDK(method)
}

// isCustomNote reports whether notifications of clients of profile are passed on for that reason. A known request without
// an id is none of them: there are servers that carry it out all the same, past the pipeline.
func isCustomNote(profile string, m message) bool {
	return direct(profile) && isUnknownNote(m)
}

// isUnknownNote reports whether a message is a notification that the hub does not know. Where it is not passed on it is taken
// and means nothing, as everywhere in JSON-RPC: a client that was refused one over HTTP would give up its connection.
func isUnknownNote(m message) bool {
	if m.id != nil || m.method == "" || isKnownRequest(m.method) {
		return false
	}
	switch m.method {
	case noteInitialized, noteCancelled, noteProgress, noteRootsChanged:
		return false
	}
	return true
}

// sequel keeps what one client sends after its notifications behind them, as far as the hub passes these on.
type sequel struct {
	mu      sync.Mutex
	last    chan struct{} // closed when the last notification has been passed on; nil where there was none
	waiting int           // notifications that have not been
}

// passOnWithin is how long what follows a notification waits for it.
const passOnWithin = 10 * time.Second

// maxSequel bounds the notifications that have not been passed on.
const maxSequel = 1000

// after runs run behind all that was passed on before, and what comes later behind it. It returns at once: false where too
// much waits already, so that run never runs.
func (q *sequel) after(run func()) (taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting >= maxSequel {
		return false
	}
	q.waiting++
	before, mine := q.last, make(chan struct{})
	q.last = mine
	go func() {
		defer close(mine)
		defer q.passed()
		wait(before)
		run()
	}()
	return true
}

func (q *sequel) passed() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting--
}

// before returns a function that waits until all notifications so far have been passed on.
func (q *sequel) before() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := q.last
	if last == nil {
		return func() {}
	}
	select {
	case <-last:
		q.last = nil
		return func() {}
	default:
		return func() { wait(last) }
	}
}

func wait(c <-chan struct{}) {
	if c == nil {
		return
	}
	timer := time.NewTimer(passOnWithin)
	defer timer.Stop()
	select {
	case <-c:
	case <-timer.C:
	}
}
