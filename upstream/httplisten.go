package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

const (
	listenPauseMin = time.Second
	listenPauseMax = time.Minute

	// standingPatience bounds how long a new session waits for the stream on which its server tells of
	// changes and asks: some servers send nothing on it, not even the head of their answer, before
	// there is something to tell.
	standingPatience = time.Second
)

// listen keeps the stream open on which a server up to 2025-11-25 tells of changes and asks. It
// returns at once. Proxies and platforms cut such streams every few minutes, which means nothing,
// so a stream that ends is opened again for as long as the session lasts, with growing pauses.
func (l *httpLane) listen(ctx context.Context) {
	if l.listens.Swap(true) {
		return
	}
	l.server.Flights.Go(func() {
		defer close(l.noStream)
		var pause listenPause
		lastID, supported := "", false
		for opened := false; ; opened = true {
			began := time.Now()
			if lastID, supported = l.listenOnce(ctx, lastID, opened); !supported || !pause.wait(ctx, began) {
				return
			}
		}
	})
}

// listenPause says how long to wait before a stream that has ended is opened again: longer each
// time, and short again after one that lasted. The zero value is ready for use.
type listenPause struct{ next time.Duration }

// after is the pause after a stream that began at that time.
func (p *listenPause) after(began time.Time) time.Duration {
	if p.next == 0 || time.Since(began) > listenPauseMax {
		p.next = listenPauseMin
	}
	now := p.next
	p.next = min(now*2, listenPauseMax)
	return jitter(now)
}

// wait waits for that pause. It returns false if ctx ends first.
func (p *listenPause) wait(ctx context.Context, began time.Time) bool {
	select {
	case <-time.After(p.after(began)):
		return true
	case <-ctx.Done():
		return false
	}
}

// listenOnce reads one stream to its end. again says that there was one before: what happened in between was missed,
// unless the server can resume at lastID.
func (l *httpLane) listenOnce(ctx context.Context, lastID string, again bool) (id string, supported bool) {
	w := l.watch
	asking := ctx
	if again {
		asking = l.keepToken(ctx)
	}
	req, err := l.newRequest(asking, http.MethodGet, nil)
	if err != nil {
		return lastID, true
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := l.client.Do(req)
	w.answered(1, nil, nil)
	if err != nil {
		return lastID, true
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case again && (resp.StatusCode == http.StatusNotFound && l.id != "" || l.isLost(ctx, resp)):
		l.end(sessionLost())
		return "", false
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests,
		again && resp.StatusCode == http.StatusUnauthorized && l.server.Tokens != nil: // another could not be had so far
		return lastID, true
	case resp.StatusCode != http.StatusOK || !transport.IsEventStream(resp):
		return "", false // "or else return HTTP 405 Method Not Allowed"
	}
	w.standsAgain()
	if again && lastID == "" {
		l.missed()
		l.lapsed()
	}
	return l.readEvents(resp.Body, lastID), true
}

// readEvents handles the messages of a standing stream to its end. It returns the id of the last event.
func (l *httpLane) readEvents(body io.Reader, lastID string) (id string) {
	events := jsonrpc.NewEventReader(body, l.cfg.Limits.Message, l.server.Memory)
	events.LastID = lastID
	for {
		ev, err := events.Next()
		large := (*jsonrpc.TooLarge)(nil)
		switch {
		case errors.As(err, &large):
			l.dropOversize(large, l.open.find(large.ResponseID()))
		case err != nil:
			return events.LastID
		case ev.IsMessage():
			l.receive(jsonrpc.Read(ev.Data), ev.Room, nil)
		}
	}
}
