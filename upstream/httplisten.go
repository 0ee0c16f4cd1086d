package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

const (
	listenPauseMin = time.Second
	listenPauseMax = time.Minute
)

// listen implements lane: it keeps the stream open on which a server tells of changes, GET up to 2025-11-25 and
// subscriptions/listen after that. Proxies and platforms cut such streams every few minutes, which means nothing, so a
// stream that ends is opened again for as long as the session lasts.
func (l *httpLane) listen(ctx context.Context) {
	l.background.Go(func() {
		pause, lastID := listenPauseMin, ""
		for opened := false; ; {
			began := time.Now()
			id, supported := l.listenOnce(ctx, lastID, opened)
			if !supported || ctx.Err() != nil {
				return
			}
			opened, lastID = true, id
			if time.Since(began) > listenPauseMax {
				pause = listenPauseMin
			}
			timer := time.NewTimer(jitter(pause))
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return
			}
			pause = min(pause*2, listenPauseMax)
		}
	})
}

// listenOnce reads one stream to its end. again says that there was one before: what happened in between was missed,
// unless the server can resume at lastID.
func (l *httpLane) listenOnce(ctx context.Context, lastID string, again bool) (id string, supported bool) {
	resp, err := l.openListen(ctx, lastID)
	if err != nil {
		return lastID, true
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotFound && l.session != "" && again:
		l.onEnd(&fault{what: "the server has forgotten the session", lost: true})
		return "", false
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return lastID, true
	case resp.StatusCode != http.StatusOK || !isEventStream(resp):
		return "", false // "or else return HTTP 405 Method Not Allowed"
	}
	if again && lastID == "" {
		l.onListChanged()
	}
	events := newSSEReader(resp.Body, l.limit)
	events.lastID = lastID
	for {
		ev, err := events.next()
		if errors.Is(err, errEventTooLarge) {
			l.log.Warn("a message of the server was dropped: it is over a limit", "limit", limitMessage, "value", sizeText(l.limit))
			err = events.skip()
			if large := (*oversize)(nil); errors.As(err, &large) {
				continue
			}
		}
		if err != nil {
			return events.lastID, true
		}
		e, kind := open(ev.data)
		switch {
		case kind == kindNotification && e.is(noteToolsChanged):
			l.onListChanged()
		case kind == kindNotification && e.is(noteCancelled):
			l.desk.canceled(e)
		case kind == kindRequest && rawjson.Valid(ev.data):
			if !l.desk.receive(e, nil) {
				l.respond(ctx, replyBody(e))
			}
		case kind == kindResponse && l.hop != nil:
			_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBody)
			return "", rawjson.IsNull(e.err) // the server ended the subscription, or does not offer one
		}
	}
}

func (l *httpLane) openListen(ctx context.Context, lastID string) (*http.Response, error) {
	if l.hop != nil {
		call := newLaneCall(listenID, methodListen, listenParams(l.hop))
		req, err := l.newRequest(ctx, http.MethodPost, call.body())
		if err != nil {
			return nil, err
		}
		call.hopHeaders(req.Header)
		return l.control.Do(req)
	}
	req, err := l.newRequest(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	return l.control.Do(req)
}
