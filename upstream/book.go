package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// book is what the server of a session has been told that it should report on.
type book struct {
	level logLevel
	turn  chan struct{} // has room for one: whoever put something in may change the rest

	mu   sync.Mutex
	told map[string]bool // resources; changed by who has the turn
}

func newBook() *book { return &book{turn: make(chan struct{}, 1), told: make(map[string]bool)} }

func (b *book) has(uri string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.told[uri]
}

func (b *book) isEmpty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.told) == 0
}

func (b *book) set(uri string, told bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if told {
		b.told[uri] = true
	} else {
		delete(b.told, uri)
	}
}

func (b *book) all() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.told))
}

// take waits for the turn. The caller gives it back with <-b.turn.
func (b *book) take(ctx context.Context, sess *session) error {
	select {
	case b.turn <- struct{}{}:
		return nil
	case <-sess.ended:
		return endedFailure(&laneCall{}, errClosed).err
	case <-ctx.Done():
		return canceled(ctx, false)
	}
}

// subscribe tells the server of sess to report on a resource, unless it does so already or nobody wants that any more.
func (s *server) subscribe(ctx context.Context, sess *session, uri string, limits callLimits) answer {
	done := answer{result: json.RawMessage("{}")}
	if !sess.abilities().Subscribe {
		return answer{err: &tool.RPCError{Code: tool.CodeMethodNotFound, Message: "the server offers no subscriptions to resources"}}
	}
	b := sess.book
	if err := b.take(ctx, sess); err != nil {
		return answer{err: err}
	}
	defer func() { <-b.turn }()
	if b.has(uri) || !s.wishes.wants(s, uri) {
		return done
	}
	b.set(uri, true) // first: updates may come before the answer
	a := done
	if sess.hop != nil {
		a.err = s.renew(ctx, sess, []string{uri}, limits)
	} else {
		a = s.wait(ctx, sess, newLaneCall(s.nextID(), methodSubscribe, uriParams(uri)), ignoreProgress, limits)
	}
	if a.err == nil {
		return done
	}
	b.set(uri, false)
	if sess.hop != nil {
		sess.watch.ask(b.all()) // without it the others are taken as before
	}
	return a
}

// unsubscribe tells the server of sess not to report on a resource any more, unless somebody wants it again.
func (s *server) unsubscribe(ctx context.Context, sess *session, uri string, limits callLimits) answer {
	b := sess.book
	if err := b.take(ctx, sess); err != nil {
		return answer{err: err}
	}
	defer func() { <-b.turn }()
	if !b.has(uri) || s.wishes.wants(s, uri) {
		return answer{}
	}
	b.set(uri, false)
	if sess.hop != nil {
		sess.watch.ask(b.all())
		return answer{}
	}
	return s.wait(ctx, sess, newLaneCall(s.nextID(), methodUnsubscribe, uriParams(uri)), ignoreProgress, limits)
}

// renew asks for all that stands in the book, and returns an error unless the server agrees to report on uris.
func (s *server) renew(ctx context.Context, sess *session, uris []string, limits callLimits) error {
	limited, cancel := context.WithTimeout(ctx, limits.idle)
	defer cancel()
	agreed, err := sess.watch.wait(limited, sess.ended, sess.watch.ask(sess.book.all()))
	switch {
	case ctx.Err() != nil:
		return canceled(ctx, true)
	case errors.Is(err, errClosed):
		return endedFailure(&laneCall{}, err).err
	case err != nil:
		return refusalOf(err, uris[0])
	}
	for _, uri := range uris {
		if !agreed[uri] {
			return refusalOf(nil, uri)
		}
	}
	return nil
}

// keepWishes tells the server of sess what clients wish for, and that again when it changes, until ctx ends.
func (s *server) keepWishes(ctx context.Context, sess *session) {
	setLevel := func() {
		if sess.abilities().Logging && sess.hop == nil {
			s.setLevel(ctx, sess)
		}
	}
	setLevel() // first: calls may wait for it
	if sess.abilities().Subscribe {
		s.resubscribe(ctx, sess)
	}
	for {
		setLevel()
		select {
		case <-s.leveled:
		case <-ctx.Done():
			return
		}
	}
}

// resubscribe tells a new session of all subscriptions that there are. What an earlier session reported on may have changed
// while there was none: that is told then as if the server had.
func (s *server) resubscribe(ctx context.Context, sess *session) {
	uris := s.wishes.of(s)
	owed := make(map[string]bool)
	for _, uri := range uris {
		owed[uri] = s.owed[uri] || s.reported != nil && s.reported.has(uri)
	}
	s.owed, s.reported = owed, sess.book
	if len(uris) == 0 {
		return
	}
	defer func() {
		for _, uri := range uris {
			if s.owed[uri] && sess.book.has(uri) {
				delete(s.owed, uri)
				s.makeUp(uri)
			}
		}
	}()
	limits := s.requestLimits()
	if sess.hop != nil && s.subscribeAll(ctx, sess, uris, limits) {
		return
	}
	for _, uri := range uris {
		if a := s.subscribe(ctx, sess, uri, limits); a.err != nil && ctx.Err() == nil && !sess.isOver() {
			s.log.Warn("a subscription could not be renewed: changes of that resource are not told", "error", s.redact.Text(a.err.Error()))
		}
	}
}

// makeUp tells that a resource may have changed while the server could not say so.
func (s *server) makeUp(uri string) {
	s.notices.put(tool.Notification{Server: s.cfg.ID, Session: s.client.Key, Method: noteUpdated, Params: uriParams(uri)}, uri)
}

// subscribeAll is subscribe for many, in one request of 2026-07-28.
func (s *server) subscribeAll(ctx context.Context, sess *session, uris []string, limits callLimits) bool {
	b := sess.book
	if b.take(ctx, sess) != nil {
		return false
	}
	defer func() { <-b.turn }()
	added := slices.DeleteFunc(slices.Clone(uris), b.has) // the others stand there because clients have asked meanwhile
	if len(added) == 0 {
		return true
	}
	for _, uri := range added {
		b.set(uri, true)
	}
	if s.renew(ctx, sess, uris, limits) == nil {
		return true
	}
	for _, uri := range added {
		b.set(uri, false)
	}
	return false
}

func uriParams(uri string) json.RawMessage {
	return append(append([]byte(`{"uri":`), rawjson.Quote(uri)...), '}')
}

func ignoreProgress(tool.Progress) {}
