package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// watch records what the standing subscriptions/listen of a session asks for, on 2026-07-28, and
// what the server agreed to.
type watch struct {
	session *session      // told what may have been missed
	renew   chan struct{} // has room for one: asks for something else than before

	mu      sync.Mutex
	version int             // of the resources that are asked for, from 1
	settled int             // the last version that the server has answered
	agreed  map[string]bool // what it agreed to then
	err     error           // why it did not
	moved   chan struct{}   // closed and replaced when settled moves
	stream  int64           // id of the latest listen request
	asked   int             // the version that it asks for
	broken  bool            // a stream has ended by itself, and none was taken since
	renewed bool            // one was ended for another, or was not there in time, and none was taken since
}

func newWatch(s *session) *watch {
	return &watch{session: s, renew: make(chan struct{}, 1), moved: make(chan struct{}), version: 1}
}

// stands waits until the server has answered the first request to listen, but not for long. What
// changes before an answer that comes later counts as missed.
func (w *watch) stands(stop <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if moved := w.moved; w.settled == 0 {
		w.mu.Unlock()
		wait.For(stop, moved, standingPatience)
		w.mu.Lock()
	}
	w.renewed = w.settled == 0
}

// standsAgain tells of what may have been missed between two streams, once the server has taken the second: what was
// listed before that could change once more with nobody listening.
func (w *watch) standsAgain() {
	w.mu.Lock()
	renewed, broken := w.renewed, w.broken
	w.renewed, w.broken = false, false
	w.mu.Unlock()
	if renewed || broken {
		w.session.missed()
	}
	if broken {
		w.session.lapsed()
	}
}

// ended notes how a subscription that asked for version has ended by itself. It reports whether that is worth another
// try: not where the server has refused it.
func (w *watch) ended(version int, a response) (again bool) {
	w.mu.Lock()
	w.broken = true
	stood := w.settled >= version && w.err == nil
	w.mu.Unlock()
	var rpc *tool.RPCError
	var f *tool.Failure
	switch {
	case a.err == nil:
		again, a.err = stood, errNotStanding
	case errors.As(a.err, &rpc):
	case a.status == http.StatusUnauthorized:
		again = stood // another token could not be had so far
	case a.status != 0:
		again = a.status >= http.StatusInternalServerError || a.status == http.StatusTooManyRequests
	default:
		again = errors.As(a.err, &f) && f.Code != codeInvalidResponse
	}
	if !again {
		w.answered(version, nil, a.err)
	}
	return again
}

// ask asks for updates of the resources that the session now subscribes to. It returns the version to wait for.
func (w *watch) ask() (version int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	wait.Signal(w.renew)
	return w.version
}

// begin returns the params of the request that asks for what is wanted now, and the version; nil params for nothing. id
// is that of the request.
func (w *watch) begin(h *hop.Hop, id int64) (params []byte, version int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stream, w.asked = id, w.version
	w.renewed = w.renewed || w.version > 1 // what came over the stream before, and was not read when it ended, is lost
	const start = `{"notifications":{`
	out := []byte(start)
	for k := range lists.Kinds {
		if w.session.announces(k) {
			out = rawjson.AppendMember(out, k.Filter(), []byte("true"))
		}
	}
	if uris := w.session.subscribed.all(); len(uris) > 0 {
		list, _ := rawjson.Encode(uris) // texts always encode
		out = rawjson.AppendMember(out, "resourceSubscriptions", list)
	}
	if len(out) == len(start) {
		return nil, w.version
	}
	out = append(out, `},"_meta":{`...)
	return append(append(out, h.Members(tool.Hop{})...), `}}`...), w.version
}

// acknowledge takes notifications/subscriptions/acknowledged: what the server says that it agreed to.
func (w *watch) acknowledge(e jsonrpc.Message) {
	meta, _ := rawjson.Get(e.Params, "_meta")
	about, _ := rawjson.Get(meta, hop.SubscriptionKey)
	id, ours := idOf(about)
	w.mu.Lock()
	ours, version := ours && id == w.stream, w.asked
	w.mu.Unlock()
	if !ours {
		return
	}
	filter, _ := rawjson.Get(e.Params, "notifications")
	list, _ := rawjson.Get(filter, "resourceSubscriptions")
	agreed := make(map[string]bool)
	_ = rawjson.Elements(list, func(one []byte) bool { // none where it is absent
		if uri, ok := rawjson.String(one); ok {
			agreed[uri] = true
		}
		return true
	})
	w.answered(version, agreed, nil)
	w.standsAgain()
}

// answered settles a version.
func (w *watch) answered(version int, agreed map[string]bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if version <= w.settled {
		return
	}
	w.settled, w.agreed, w.err = version, agreed, err
	close(w.moved)
	w.moved = make(chan struct{})
}

// wait returns once the server has answered version. The error is its refusal, or ctx's.
func (w *watch) wait(ctx context.Context, version int) (agreed map[string]bool, err error) {
	for {
		w.mu.Lock()
		settled, agreed, err, moved := w.settled, w.agreed, w.err, w.moved
		w.mu.Unlock()
		if settled >= version {
			return agreed, err
		}
		select {
		case <-moved:
		case <-w.session.ended:
			return nil, transport.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// errNotStanding: a server answered subscriptions/listen and ended it at once.
var errNotStanding = errors.New("the server ended the subscription")

// refusalOf is the error for a client whose subscription the server did not take.
func refusalOf(err error, uri string) error {
	var rpc *tool.RPCError
	var f *tool.Failure
	if errors.As(err, &rpc) || errors.As(err, &f) {
		return err
	}
	return &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "not_subscribed", Cause: err,
		Message: fmt.Sprintf("the server did not take the subscription to %q: read the resource when it is needed",
			hidden.Cut(uri, 80))}
}

// listenPatience bounds how long a renewed subscription may go without an answer before the one before it ends.
const listenPatience = 5 * time.Second

// subscribe sends the subscriptions/listen that asks for what is wanted now; nil for nothing.
func (s *session) subscribe(ctx context.Context) (call *pendingRequest, version int) {
	id := s.ids.Add(1)
	params, version := s.watch.begin(s.hop, id)
	if params == nil {
		s.watch.answered(version, nil, nil)
		return nil, version
	}
	call = newLaneCall(id, &tool.Request{Method: tool.MethodListen}, params)
	s.lane.send(ctx, call)
	return call, version
}

// stand keeps a subscriptions/listen until ctx or the session ends. call is the first one, and asks
// for version. It is renewed when something else is wanted. Where each has a stream
// of its own, it is opened again when it ends, and the one before ends only once the server has
// taken the next, so that little is missed in between. On one stream the next follows the one
// before: servers keep them by connection, and the end of the earlier could take the later with it.
func (s *session) stand(ctx context.Context, call *pendingRequest, version int) {
	var pause listenPause
	var retry <-chan time.Time
	began := time.Now()
	for {
		var ready <-chan struct{}
		if call != nil {
			ready = call.ready
		}
		select {
		case <-ready:
			done := call.take().done
			if done == nil {
				continue
			}
			call = nil
			if s.watch.ended(version, *done) && !s.oneStream {
				retry = time.After(pause.after(began))
			}
			continue
		case <-retry:
			began = time.Now()
			call, version = s.subscribe(ctx)
		case <-s.watch.renew:
			began = time.Now()
			before := call
			if s.oneStream && before != nil {
				s.withdrawAndSettle(ctx, before, "renewed")
				before = nil
			}
			call, version = s.subscribe(ctx)
			if before != nil {
				limited, cancel := context.WithTimeout(ctx, listenPatience)
				_, _ = s.watch.wait(limited, version) // one after the other, however often it is renewed
				cancel()
				s.forget(before)
			}
		case <-ctx.Done():
			if call != nil {
				s.forget(call)
			}
			return
		case <-s.ended:
			return
		}
		retry = nil
	}
}
