package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

// streamConn is the connection to a server over one stream of messages both ways: a child's pipes, or HTTP with SSE. It
// is the lane of the session.
type streamConn struct {
	*entry
	wire          transport.Wire
	notifications notificationHandler
	hop           *hop.Hop     // nil below 2026-07-28, and while the version is not agreed upon
	needs         *signInNeeds // of the server; nil for one on stdio

	noCancels bool         // the server dies of notifications/cancelled
	canceled  atomic.Int64 // when it was sent one, in Unix seconds, unless it has said something since

	closing chan struct{}
	ended   chan struct{} // closed when the reader is done
	endOnce sync.Once
	noise   atomic.Int64
	noisy   *rate.Limiter
	asked   *serverRequests

	background sync.WaitGroup // the listener

	mu      sync.Mutex
	pending map[int64]*pendingRequest
	endErr  error
	pieces  []byte      // of a message that is spread over several lines
	depth   int         // of pieces: how many objects and arrays are open at its end
	breaks  *time.Timer // runs breakPieces
}

// A message that is spread over several lines may have so many bytes, and so long a pause before its next line.
const (
	maxPieces    = 8 << 20
	piecesWithin = time.Second
)

// newStreamConn starts reading from w.
func newStreamConn(e *entry, w transport.Wire, to notificationHandler) *streamConn {
	c := &streamConn{
		entry:         e,
		wire:          w,
		notifications: to,
		closing:       make(chan struct{}),
		ended:         make(chan struct{}),
		noisy:         rate.NewLimiter(rate.Every(10*time.Second), 3),
		pending:       make(map[int64]*pendingRequest),
	}
	c.asked = newServerRequests(c.respond)
	c.breaks = time.AfterFunc(time.Hour, c.breakPieces)
	go c.readAll()
	return c
}

// speak implements lane.
func (c *streamConn) speak(_ string, h *hop.Hop) { c.hop = h }

// shut ends the sending, and fails every request under way.
func (c *streamConn) shut(err error) {
	c.endOnce.Do(func() {
		c.mu.Lock()
		c.endErr = err
		calls := c.pending
		c.pending = nil
		c.mu.Unlock()
		close(c.closing)
		c.wire.Close()
		for _, call := range calls {
			call.drop()
			call.finish(endedFailure(call, err))
		}
	})
}

// release ends the reader and waits for it.
func (c *streamConn) release() {
	c.shut(transport.ErrClosed)
	c.wire.Release()
	<-c.ended
	c.background.Wait()
}

// err is why the connection ended. It is only meaningful once ended is closed.
func (c *streamConn) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.endErr
}

// readAll is the one reader of the stream.
func (c *streamConn) readAll() {
	defer close(c.ended)
	defer c.breakPieces()
	defer c.breaks.Stop()
	for {
		got, err := c.wire.Read()
		if err == nil {
			c.canceled.Store(0)
			c.receive(got)
			continue
		}
		var large *transport.Oversize
		if !errors.As(err, &large) {
			c.shut(err)
			return
		}
		c.receiveOversize(large)
	}
}

// receive hands one message, or each message of a batch, to whom it is for.
func (c *streamConn) receive(got jsonrpc.Received) {
	if len(got.Text) > 0 && got.Text[0] == '[' {
		err := rawjson.Elements(got.Text, func(one []byte) bool {
			c.receiveOne(jsonrpc.Received{Text: one}) // several share the room: none of them can free it
			return true
		})
		if err != nil {
			c.drop("a line that is no JSON", got.Text)
		}
		return
	}
	c.receiveOne(got)
}

func (c *streamConn) receiveOne(got jsonrpc.Received) {
	defer func() { got.Room.Free() }() // nil where a call has it
	raw := got.Text
	e := jsonrpc.Read(raw)
	if e.Kind != jsonrpc.None {
		c.breakPieces()
	}
	switch {
	case e.Kind == jsonrpc.None, !e.Valid && rawjson.SkipValue(raw, 0) < len(raw) && rawjson.SkipValue(raw, 0) > 0:
		c.odd(raw)
	case e.Kind == jsonrpc.Notification:
		c.notified(e)
	case e.Kind == jsonrpc.Request && e.NotUTF8 > 0:
		c.drop("a request that is not UTF-8", raw)
		c.respond(notUTF8Error(e))
	case e.Kind == jsonrpc.Request && !e.Valid, !jsonrpc.IsID(e.ID) && !rawjson.IsNull(e.ID):
		c.drop("a malformed message", raw)
	case e.Kind == jsonrpc.Request:
		if !c.asked.receive(e, nil) {
			c.respond(replyBody(e))
		}
	default:
		call := c.remove(e.ID)
		if call == nil && rawjson.IsNull(e.ID) {
			call = c.removeSole()
		}
		if call != nil {
			call.finish(call.answerOf(e).in(got.Room))
			got.Room = nil
		} else if rawjson.IsNull(e.ID) {
			c.drop("an error that names no request", raw)
		}
	}
}

// odd handles a line that is no message: it can hold one, or be a piece of one. Of the messages in it responses and
// notifications count: a line of a log may quote a request.
func (c *streamConn) odd(line []byte) {
	within := jsonrpc.Within(line)
	for _, e := range within {
		if e.Kind == jsonrpc.Notification || e.Kind == jsonrpc.Response {
			c.receiveOne(jsonrpc.Received{Text: e.Text})
		}
	}
	if len(within) > 0 {
		return
	}
	c.mu.Lock()
	begins := c.pieces == nil && line[0] == '{'
	if begins || c.pieces != nil {
		c.pieces = append(append(c.pieces, line...), '\n')
		c.depth += nesting(line)
	}
	waits := c.depth > 0 && len(c.pieces) < maxPieces
	if waits {
		c.breaks.Reset(piecesWithin)
	}
	whole := c.pieces
	if !waits {
		c.pieces, c.depth = nil, 0
	}
	c.mu.Unlock()
	switch e := jsonrpc.Read(whole); {
	case waits:
	case e.Kind != jsonrpc.None:
		c.receiveOne(jsonrpc.Received{Text: whole})
	case whole == nil:
		c.broken(line)
	default:
		c.broken(whole)
	}
}

// nesting returns by how much a piece of JSON, which ends in no string, changes how many objects and arrays are open.
func nesting(piece []byte) (by int) {
	for i := 0; i < len(piece); i++ {
		switch piece[i] {
		case '"':
			i = rawjson.SkipString(piece, i) - 1
		case '{', '[':
			by++
		case '}', ']':
			by--
		}
	}
	return by
}

// breakPieces gives up a message whose rest has not come.
func (c *streamConn) breakPieces() {
	c.mu.Lock()
	pieces := c.pieces
	c.pieces, c.depth = nil, 0
	c.mu.Unlock()
	if pieces != nil {
		c.broken(pieces)
	}
}

// broken handles text that was to be a message, or is noise. The call ends whose id it has, or the only one that is
// open where it is the beginning of a response: many servers write the id last.
func (c *streamConn) broken(text []byte) {
	var call *pendingRequest
	if found := brokenID.FindSubmatch(text); rawjson.Valid(text) {
	} else if found != nil {
		call = c.remove(found[1])
	} else if bytes.HasPrefix(text, []byte(`{"result":`)) || bytes.HasPrefix(text, []byte(`{"jsonrpc":"2.0","result":`)) {
		call = c.removeSole()
	}
	if call != nil {
		call.finish(invalidAnswer("is no well-formed JSON"))
		return
	}
	c.drop("a line that is no JSON-RPC message", text)
}

var brokenID = regexp.MustCompile(`"id"\s*:\s*"?(\d+)`)

// removeSole removes and returns the only request that waits for an answer; nil where there are others.
func (c *streamConn) removeSole() (sole *pendingRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, call := range c.pending {
		if sole != nil {
			return nil
		}
		if !call.listens && call.method != methodListen {
			sole = call
		}
	}
	if sole != nil {
		delete(c.pending, sole.id)
	}
	return sole
}

// notified handles a notification.
func (c *streamConn) notified(e jsonrpc.Message) {
	switch {
	case e.Method == noteProgress:
		if isBadProgress(e) {
			c.notifications.losses.add()
			return
		}
		token, ours := progressToken(e)
		if !ours {
			return
		}
		c.mu.Lock()
		call := c.pending[token]
		c.mu.Unlock()
		if call != nil {
			if !call.report(e.Params) {
				c.notifications.losses.add()
			}
			return
		}
	case e.Method == noteCancelled:
		c.asked.canceled(e)
		return
	}
	call := c.listener(e)
	if method := e.Method; call == nil && (method == noteMessage || isCustom(method)) {
		// Here, where the result that may follow has not been read, calls in flight are those in flight for the server.
		var several bool
		if call, several = c.asked.sole(); several {
			call = discard() // it may be about what is nobody else's business, and does not say whose it is
			c.log.Debug("dropped a notification of the server: it belongs to one of several sessions, and does "+
				"not say which",
				"method", method)
		}
	}
	c.notifications.handle(e, call)
}

// discard is a call that nobody waits for: what is told to it is looked at, counted where it is malformed, and lost.
func discard() *pendingRequest {
	c := newLaneCall(0, "", nil)
	c.notify = func(tool.Notification) {}
	return c
}

// listener is the subscriptions/listen of a client's own that a notification names; nil for none.
func (c *streamConn) listener(e jsonrpc.Message) *pendingRequest {
	meta, ok := rawjson.Get(e.Params, "_meta")
	if !ok || !rawjson.IsObject(meta) {
		return nil
	}
	about, _ := rawjson.Get(meta, hop.SubscriptionKey)
	id, _ := idOf(about)
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.pending[id]; call != nil && call.listens {
		return call
	}
	return nil
}

// questions implements lane.
func (c *streamConn) serverRequests() *serverRequests { return c.asked }

// respond answers a request of the server; nil answers nothing. What a server does not take in is lost to it.
func (c *streamConn) respond(body []byte) {
	if line, err := rawjson.Line(body); err == nil && body != nil {
		_ = c.wire.Post(transport.Outgoing{Data: line})
	}
}

// say implements lane.
func (c *streamConn) say(_ context.Context, body []byte) { c.respond(body) }

// drop counts something that the server should not have sent, and logs it now and then.
func (c *streamConn) drop(what string, raw []byte) {
	c.notifications.losses.add()
	n := c.noise.Add(1)
	if c.noisy.Allow() {
		c.log.Warn("dropped output of the server: stdout must carry nothing but JSON-RPC messages",
			"what", what, "begins", c.redact.Show(string(raw[:min(len(raw), 120)]), len(raw) <= 120, secret.MaxText),
			"dropped_so_far", n)
	}
}

// remove forgets the request of the hub's that has an id, and returns it; nil if there is none.
func (c *streamConn) remove(raw json.RawMessage) *pendingRequest {
	id, ours := idOf(raw)
	if !ours {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.pending[id]
	delete(c.pending, id)
	return call
}

// forget is remove for a request that nobody waits for any more.
func (c *streamConn) forget(call *pendingRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, call.id)
}

// send implements lane.
func (c *streamConn) send(_ context.Context, call *pendingRequest) {
	c.mu.Lock()
	if c.pending == nil || c.endErr != nil {
		c.mu.Unlock()
		call.finish(endedFailure(call, transport.ErrClosed))
		return
	}
	c.pending[call.id] = call
	c.mu.Unlock()
	data, err := rawjson.Line(call.body())
	call.params = nil // they may be large, and are not sent again
	if err == nil {
		out := transport.Outgoing{Data: data, Call: call}
		if c.needs != nil && !call.isGreeting() {
			out.Call = signInCall{call, c.needs}
		}
		err = c.wire.Post(out)
	}
	if err != nil {
		c.forget(call)
		call.finish(response{err: &tool.Failure{
			Class:   tool.ClassDependencyUnavailable,
			Code:    "server_not_reading",
			Message: "the server does not take in requests: wait for its running calls to end, or restart it",
			Cause:   err,
		}})
	}
}

// withdraw implements lane.
func (c *streamConn) withdraw(_ context.Context, call *pendingRequest, reason string) withdrawal {
	// best effort: the caller has gone
	told := call.drop() && !call.isGreeting()
	if told && !c.noCancels {
		c.canceled.Store(time.Now().Unix())
		told = c.wire.Post(transport.Outgoing{Data: cancelBody(call.id, reason)}) == nil
	}
	return withdrawal{told, func() { c.forget(call) }}
}

// tell implements lane.
func (c *streamConn) tell(ctx context.Context, method string, params []byte) error {
	line, err := rawjson.Line(jsonrpc.NotificationText(method, params))
	if err != nil {
		return err
	}
	out := transport.Outgoing{Data: line, Done: make(chan error, 1)}
	if err := c.wire.Post(out); err != nil {
		return err
	}
	select {
	case err := <-out.Done:
		return err
	case <-c.closing:
		return transport.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ping implements lane.
func (c *streamConn) ping(ctx context.Context) error {
	call := newLaneCall(c.nextID(), methodPing, c.hop.ListParams(nil))
	return pingError(await(ctx, c, call))
}

// pingError is nil if the server answered at all: with an error, too, since not every server knows ping.
func pingError(a response) error {
	var rpc *tool.RPCError
	if a.err == nil || errors.As(a.err, &rpc) {
		return nil
	}
	return a.err
}

// listenGrace bounds how long the end of a subscription is waited for before the next one begins.
const listenGrace = 250 * time.Millisecond

// listen implements lane: from 2026-07-28 on, notifications are sent to those who asked. One subscription follows the
// other: servers keep them by connection, and the end of an earlier one could take a later one with it.
func (c *streamConn) listen(ctx context.Context, w *watch) {
	if c.hop != nil {
		// before what is listed next: servers that take one after the other tell of all changes
		call, version := c.subscribe(ctx, w)
		c.background.Go(func() { c.stand(ctx, w, call, version) })
	}
}

// subscribe sends the subscription that w asks for; nil for nothing.
func (c *streamConn) subscribe(ctx context.Context, w *watch) (call *pendingRequest, version int) {
	id := c.nextID()
	params, version := w.begin(c.hop, id)
	if params == nil {
		w.answered(version, nil, nil)
		return nil, version
	}
	call = newLaneCall(id, methodListen, params)
	c.send(ctx, call)
	return call, version
}

// stand renews a subscription, of which call is the first and asks for version, whenever w asks for something else.
func (c *streamConn) stand(ctx context.Context, w *watch, call *pendingRequest, version int) {
	for {
		var ready <-chan struct{}
		if call != nil {
			ready = call.ready
		}
		for renewed := false; !renewed; {
			select {
			case <-ready:
				if _, done := call.take(); done != nil {
					err := done.err
					if err == nil {
						err = errNotStanding
					}
					w.answered(version, nil, err)
					call, ready = nil, nil
				}
			case <-w.renew:
				renewed = true
			case <-ctx.Done():
				return
			case <-c.closing:
				return
			}
		}
		if call != nil {
			c.endListen(call)
			w.renewing()
		}
		call, version = c.subscribe(ctx, w)
	}
}

// endListen ends a subscription, and waits a while for that.
func (c *streamConn) endListen(call *pendingRequest) {
	defer c.forget(call)
	// best effort: the next one does not depend on it
	_ = c.wire.Post(transport.Outgoing{Data: cancelBody(call.id, "renewed")})
	timer := time.NewTimer(listenGrace)
	defer timer.Stop()
	for {
		select {
		case <-call.ready:
			if _, done := call.take(); done != nil {
				return
			}
		case <-timer.C:
			return
		case <-c.closing:
			return
		}
	}
}

// receiveOversize tells the call that waits for a message that it was too large.
func (c *streamConn) receiveOversize(large *transport.Oversize) {
	c.notifications.losses.add()
	large.Warn(c.log)
	if call := c.remove(large.ID); call != nil {
		call.finish(response{err: large.Failure()})
	}
}
