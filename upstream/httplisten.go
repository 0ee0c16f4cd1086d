package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

const (
	listenPauseMin = time.Second
	listenPauseMax = time.Minute

	// listenPatience bounds how long a renewed subscription may go without an answer before the next one is sent.
	listenPatience = 5 * time.Second

	// standingPatience bounds how long a new session waits for the stream on which its server tells of
	// changes and asks: some servers send nothing on it, not even the head of their answer, before
	// there is something to tell.
	standingPatience = time.Second
)

// listen implements lane: it keeps the stream open on which a server tells of changes, GET up to 2025-11-25 and
// subscriptions/listen after that. Proxies and platforms cut such streams every few minutes, which means nothing, so a
// stream that ends is opened again for as long as the session lasts.
func (l *httpLane) listen(ctx context.Context, w *watch) {
	if l.listens.Swap(true) {
		return
	}
	l.background.Go(func() {
		if l.says().hop != nil {
			l.stand(ctx, w)
			return
		}
		defer close(l.noStream)
		lastID := ""
		l.again(ctx, func(opened bool) (supported bool) {
			lastID, supported = l.listenOnce(ctx, w, lastID, opened)
			return supported
		})
	})
}

// listenPause says how long to wait before a stream that has ended is opened again: longer each
// time, and short again after one that lasted. The zero value is ready for use.
type listenPause struct{ next time.Duration }

// wait waits after a stream that began at that time. It returns false if ctx ends first.
func (p *listenPause) wait(ctx context.Context, began time.Time) bool {
	if p.next == 0 || time.Since(began) > listenPauseMax {
		p.next = listenPauseMin
	}
	timer := time.NewTimer(jitter(p.next))
	defer timer.Stop()
	p.next = min(p.next*2, listenPauseMax)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// again opens a stream that has ended once more, with growing pauses, until ctx ends or the server offers none. once
// reads it to its end; opened says that there was one before.
func (l *httpLane) again(ctx context.Context, once func(opened bool) (supported bool)) {
	var pause listenPause
	for opened := false; ; opened = true {
		began := time.Now()
		if !once(opened) || ctx.Err() != nil {
			return
		}
		if !pause.wait(ctx, began) {
			return
		}
	}
}

// stand keeps a subscriptions/listen that asks for what w wants at each time. When that changes, the stream before ends
// only once the server has taken the next one, so that little is missed in between.
func (l *httpLane) stand(ctx context.Context, w *watch) {
	var streams sync.WaitGroup
	defer streams.Wait()
	end := func() {}
	defer func() { end() }()
	for {
		id := l.nextID()
		params, version := w.begin(l.says().hop, id)
		if params == nil {
			end()
			end = func() {}
			w.answered(version, nil, nil)
		} else {
			own, stop := context.WithCancel(ctx)
			before := end
			end = func() { stop(); before() }
			if version > 1 {
				w.renewing() // what came over the stream before, and was not read when that ended, is lost
			}
			taken := make(chan struct{})
			s := &standing{lane: l, watch: w, call: newLaneCall(id, methodListen, params), version: version}
			var once sync.Once
			s.taken = func(ok bool) {
				once.Do(func() {
					if ok {
						before()
					}
					close(taken)
				})
			}
			streams.Go(func() {
				l.again(own, func(opened bool) bool { return s.once(own, opened) })
				s.taken(false)
			})
			patience := time.NewTimer(listenPatience)
			select { // one after the other, however often it is renewed
			case <-taken:
			case <-patience.C:
			case <-ctx.Done():
			}
			patience.Stop()
		}
		select {
		case <-w.renew:
		case <-ctx.Done():
			return
		}
	}
}

// standing is one subscriptions/listen over HTTP, as often as it is opened again.
type standing struct {
	lane    *httpLane
	watch   *watch
	call    *pendingRequest
	version int
	taken   func(ok bool) // called once the server has taken it, or will not
}

// once reads one stream to its end.
func (s *standing) once(ctx context.Context, again bool) (supported bool) {
	l := s.lane
	req, err := l.newRequest(ctx, http.MethodPost, s.call.body())
	if err != nil {
		return false
	}
	s.call.hopHeaders(req.Header)
	resp, err := l.client.Do(req)
	if err != nil {
		return true
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || again && l.wantsSignIn(resp):
		return true
	case resp.StatusCode != http.StatusOK || !transport.IsEventStream(resp):
		body := transport.ErrorBody(resp.Body)
		s.refused(body, fault.StatusFailure(resp.StatusCode, 0))
		return false
	}
	if again {
		s.watch.missed()
	}
	ended := false
	l.readEvents(ctx, resp.Body, "", func(e jsonrpc.Message) bool {
		switch {
		case e.Kind == jsonrpc.Notification && e.Method == noteListenAcked:
			broken := s.watch.mended()
			s.watch.acknowledged(s.version, e)
			s.taken(true)
			s.watch.standsAgain()
			if again || broken {
				s.watch.missed() // once more: what was listed before this could change with nobody listening
				s.watch.lapsed()
			}
		case e.Kind == jsonrpc.Response:
			_ = transport.ErrorBody(resp.Body)
			s.refused(e.Text, errNotStanding)
			ended = !rawjson.IsNull(e.Error) // otherwise the server ended it, and may take it again
			return false
		}
		return true
	})
	if ctx.Err() == nil {
		s.watch.broke() // the next stream makes up for it, whether it is this one again or one that asks for more
	}
	return !ended
}

// refused settles a subscription that the server does not take. body may be its response.
func (s *standing) refused(body []byte, err error) {
	if e := jsonrpc.Read(body); e.Kind == jsonrpc.Response && !rawjson.IsNull(e.Error) && e.Valid {
		err = errorAnswer(e.Error).err
	}
	s.watch.answered(s.version, nil, err)
	s.taken(false)
}

// listenOnce reads one stream to its end. again says that there was one before: what happened in between was missed,
// unless the server can resume at lastID.
func (l *httpLane) listenOnce(ctx context.Context, w *watch, lastID string, again bool) (id string, supported bool) {
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
	case again && (resp.StatusCode == http.StatusNotFound && l.session != "" || l.isLost(ctx, resp)):
		l.onEnd(sessionLost())
		return "", false
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || again && l.wantsSignIn(resp):
		return lastID, true
	case resp.StatusCode != http.StatusOK || !transport.IsEventStream(resp):
		return "", false // "or else return HTTP 405 Method Not Allowed"
	}
	w.standsAgain()
	if again && lastID == "" {
		w.missed()
		w.lapsed()
	}
	return l.readEvents(ctx, resp.Body, lastID, func(jsonrpc.Message) bool { return true }), true
}

// wantsSignIn reports whether a stream that stood before was refused for its token, and another one
// could not be had so far.
func (l *httpLane) wantsSignIn(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized && l.server.Tokens != nil
}

// readEvents handles the messages of a standing stream to its end. each sees those first that are
// well-formed so far, and returns false to end the reading. It returns the id of the last event.
func (l *httpLane) readEvents(
	ctx context.Context, body io.Reader, lastID string, each func(jsonrpc.Message) bool,
) (id string) {
	events := jsonrpc.NewEventReader(body, l.cfg.Limits.Message, l.server.Memory)
	events.LastID = lastID
	for {
		ev, err := events.Next()
		if errors.Is(err, jsonrpc.ErrEventTooLarge) {
			l.notifications.losses.add()
			(&transport.Oversize{Limit: l.cfg.Limits.Message, NoRoom: events.NoRoom()}).Warn(l.log)
			err = transport.OversizeOf(events.Skip())
			if large := (*transport.Oversize)(nil); errors.As(err, &large) {
				continue
			}
		}
		if err != nil {
			return events.LastID
		}
		e := jsonrpc.Read(ev.Data)
		if !each(e) {
			return events.LastID
		}
		switch {
		case e.Kind == jsonrpc.Notification && e.Method == noteCancelled:
			l.asked.canceled(e)
		case e.Kind == jsonrpc.Notification:
			l.notifications.handle(e, nil)
		case e.Kind == jsonrpc.Response:
			l.receiveResponse(e, ev)
		case e.Kind == jsonrpc.None && len(ev.Data) > 0:
			l.notifications.losses.add()
		case e.Kind == jsonrpc.Request:
			l.receiveRequest(ctx, e, nil)
		}
	}
}
