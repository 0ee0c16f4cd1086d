package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// levelWithin bounds the wait for a server to take the log level.
const levelWithin = time.Second

// quietLevel is set once nobody wants log messages any more: there is no level for none.
const quietLevel = "emergency"

// subscriptions tells the server of one connection which resources and which log level clients want to hear of.
type subscriptions struct {
	*entry

	// Only resubscribe uses these.
	latest *subscriptionState // of the latest session
	missed map[string]bool    // resources that an earlier session reported on, and none since
}

// subscribe tells the server of sess to report on resources, but for those that it reports on already or that nobody
// wants any more. Below 2026-07-28 it takes one at a time.
func (s *subscriptions) subscribe(ctx context.Context, sess *session, limits callLimits, uris ...string) response {
	done := response{result: json.RawMessage("{}")}
	if !sess.abilities().Subscribe {
		return response{err: &tool.RPCError{Code: tool.CodeMethodNotFound,
			Message: "the server offers no subscriptions to resources"}}
	}
	state := sess.subscribed
	if state.changing.Acquire(ctx, 1) != nil {
		return response{err: canceled(ctx, false)}
	}
	defer state.changing.Release(1)
	wanted := s.group.subscriptions.of(s.entry)
	added := slices.DeleteFunc(slices.Clone(uris), func(uri string) bool {
		return state.has(uri) || !slices.Contains(wanted, uri)
	})
	if len(added) == 0 {
		return done
	}
	state.set(true, added...) // first: updates may come before the answer
	a := done
	if sess.hop != nil {
		a.err = s.renew(ctx, sess, added, limits)
	} else {
		c := newLaneCall(s.ids.Add(1), &tool.Request{Method: tool.MethodSubscribe}, uriParams(added[0]))
		a = sess.wait(ctx, c, &limits)
	}
	if a.err == nil {
		return done
	}
	state.set(false, added...)
	if sess.hop != nil {
		sess.watch.ask() // without it the others are taken as before
	}
	return a
}

// unsubscribe tells the server of sess not to report on a resource any more, unless somebody wants it again.
func (s *subscriptions) unsubscribe(ctx context.Context, sess *session, uri string, limits callLimits) response {
	state := sess.subscribed
	if state.changing.Acquire(ctx, 1) != nil {
		return response{err: canceled(ctx, false)}
	}
	defer state.changing.Release(1)
	if !state.has(uri) || slices.Contains(s.group.subscriptions.of(s.entry), uri) {
		return response{}
	}
	state.set(false, uri)
	if sess.hop != nil {
		sess.watch.ask()
		return response{}
	}
	c := newLaneCall(s.ids.Add(1), &tool.Request{Method: tool.MethodUnsubscribe}, uriParams(uri))
	return sess.wait(ctx, c, &limits)
}

// renew asks for all resources of the state, and returns an error unless the server agrees to report on uris.
func (s *subscriptions) renew(ctx context.Context, sess *session, uris []string, limits callLimits) error {
	limited, cancel := context.WithTimeout(ctx, limits.idle)
	defer cancel()
	agreed, err := sess.watch.wait(limited, sess.watch.ask())
	switch {
	case ctx.Err() != nil:
		return canceled(ctx, true)
	case errors.Is(err, transport.ErrClosed):
		return endedFailure(&pendingRequest{}, err).err
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

// keep tells the server of a new session what clients want.
func (s *subscriptions) keep(ctx context.Context, sess *session) {
	s.setLevel(ctx, sess) // clients may have asked for another since it was started
	if sess.abilities().Subscribe {
		s.resubscribe(ctx, sess)
	}
}

// resubscribe tells a new session of all subscriptions that there are. What an earlier session
// reported on may have changed while there was none: that is told then as if the server had.
func (s *subscriptions) resubscribe(ctx context.Context, sess *session) {
	uris := s.group.subscriptions.of(s.entry)
	missed := make(map[string]bool)
	for _, uri := range uris {
		missed[uri] = s.missed[uri] || s.latest != nil && s.latest.has(uri)
	}
	s.missed, s.latest = missed, sess.subscribed
	if len(uris) == 0 {
		return
	}
	limits := s.limits(tool.MethodSubscribe)
	if sess.hop == nil || s.subscribe(ctx, sess, limits, uris...).err != nil {
		for _, uri := range uris {
			a := s.subscribe(ctx, sess, limits, uri)
			if a.err != nil && ctx.Err() == nil && !wait.IsClosed(sess.ended) {
				s.log.Warn("a subscription could not be renewed: changes of that resource are not told",
					"error", s.redact.Text(a.err.Error()))
			}
		}
	}
	for _, uri := range uris {
		if s.missed[uri] && sess.subscribed.has(uri) {
			delete(s.missed, uri)
			sess.mayHaveChanged(uri)
		}
	}
}

func uriParams(uri string) json.RawMessage {
	return append(append([]byte(`{"uri":`), rawjson.Quote(uri)...), '}')
}

// setLevel tells the server of sess of the log level that clients want, where it is another than before.
func (s *subscriptions) setLevel(ctx context.Context, sess *session) {
	if !sess.abilities().Logging || sess.hop != nil || s.use == useListing {
		return
	}
	state := sess.subscribed
	state.leveling.Lock()
	defer state.leveling.Unlock()
	level, _ := s.group.subscriptions.level.Load().(string) // "" before the first
	if level == "" && state.level != "" {
		level = quietLevel
	}
	if level == state.level {
		return
	}
	state.level = level
	limited, cancel := context.WithTimeout(ctx, levelWithin)
	defer cancel()
	params := append(append([]byte(`{"level":`), rawjson.Quote(level)...), '}')
	c := newLaneCall(s.ids.Add(1), &tool.Request{Method: tool.MethodSetLevel}, params)
	a := sess.await(limited, c)
	if a.err != nil && ctx.Err() == nil {
		s.log.Warn("the server's log level could not be set", "level", level, "error", s.redact.Text(a.err.Error()))
	}
}
