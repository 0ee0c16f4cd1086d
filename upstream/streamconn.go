package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

const (
	// maxServerRequests bounds a server's own requests that wait for their answer: the SDK queues without bound.
	maxServerRequests = 64
	// sdkBacklog bounds how many messages may wait for the SDK to read them.
	sdkBacklog = 64
	pingID     = idPrefix + "ping"
	listenID   = idPrefix + "listen"
)

// streamConn is the connection to a server over one stream of messages both ways: a child's pipes, or HTTP with SSE. To
// the SDK it is an mcp.Connection. Beside that it is the lane of the session: responses and progress of lane calls
// never reach the SDK but go to their calls as they were received.
type streamConn struct {
	wire          transport.Wire
	log           *slog.Logger
	redact        *secret.Redactor
	notifications notificationHandler
	hop           *hop.Hop     // set once the version is negotiated, nil below 2026-07-28
	needs         *signInNeeds // of the server; nil for one on stdio

	toSDK    chan sdkrpc.Message
	closing  chan struct{}
	ended    chan struct{} // closed when the reader is done
	endOnce  sync.Once
	requests atomic.Int32 // of the server, unanswered
	noise    atomic.Int64
	noisy    *rate.Limiter
	probe    probe
	declared transport.Declared // of the server, in what it answers the SDK
	asked    *serverRequests
	pings    atomic.Int64

	background sync.WaitGroup // the listener

	mu      sync.Mutex
	pending map[string]*pendingRequest
	endErr  error
}

// newStreamConn starts reading from w. patience is how long server/discover may go unanswered until the SDK is told
// that the server does not know it.
func newStreamConn(
	w transport.Wire, patience time.Duration, to notificationHandler, log *slog.Logger, r *secret.Redactor,
) *streamConn {
	c := &streamConn{
		wire:          w,
		log:           log,
		redact:        r,
		notifications: to,
		toSDK:         make(chan sdkrpc.Message, sdkBacklog),
		closing:       make(chan struct{}),
		ended:         make(chan struct{}),
		noisy:         rate.NewLimiter(rate.Every(10*time.Second), 3),
		pending:       make(map[string]*pendingRequest),
	}
	c.probe.patience = patience
	c.asked = newServerRequests(c.respond)
	go c.readAll()
	return c
}

// Connect makes streamConn its own mcp.Transport.
func (c *streamConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID is empty: these transports have no session ids.
func (c *streamConn) SessionID() string { return "" }

// Read returns the next message that is for the SDK.
func (c *streamConn) Read(ctx context.Context) (sdkrpc.Message, error) {
	select {
	case m := <-c.toSDK:
		return m, nil
	default:
	}
	select {
	case m := <-c.toSDK:
		return m, nil
	case <-c.ended:
		select {
		case m := <-c.toSDK: // came before the end, and may say why it comes
			return m, nil
		default:
			return nil, io.EOF
		}
	case <-c.closing:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message of the SDK.
func (c *streamConn) Write(ctx context.Context, m sdkrpc.Message) error {
	data, err := sdkrpc.EncodeMessage(m)
	if err != nil {
		return fmt.Errorf("encode message: %w", err)
	}
	switch m := m.(type) {
	case *sdkrpc.Response:
		c.requests.Add(-1)
	case *sdkrpc.Request:
		if m.Method == methodDiscover {
			c.probe.start(m.ID, c.deliver)
		}
	}
	out := transport.Outgoing{Data: data, Done: make(chan error, 1)}
	if err := c.wire.Post(out); err != nil {
		return fmt.Errorf("send message: %w", err)
	}
	select {
	case err := <-out.Done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closing:
		return transport.ErrClosed
	case <-c.ended:
		return transport.ErrClosed
	}
}

// Close ends the connection for the SDK and fails every call in flight. It does not wait for the server to end: the SDK
// calls it under a lock of its own.
func (c *streamConn) Close() error {
	c.shut(transport.ErrClosed)
	return nil
}

func (c *streamConn) shut(err error) {
	c.endOnce.Do(func() {
		c.mu.Lock()
		c.endErr = err
		calls := c.pending
		c.pending = nil
		c.mu.Unlock()
		close(c.closing)
		c.probe.stop()
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
	for {
		got, err := c.wire.Read()
		if err == nil {
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
	switch e.Kind {
	case jsonrpc.Response:
		if id, ours := laneID(e); ours {
			if call := c.remove(id); call != nil {
				call.finish(call.answerOf(e).in(got.Room))
				got.Room = nil
			}
			return
		}
	case jsonrpc.Notification:
		if !c.notified(e) {
			return
		}
	case jsonrpc.Request:
		if e.NotUTF8 > 0 {
			c.drop("a request that is not UTF-8", raw)
			c.respond(notUTF8Error(e))
			return
		}
		if e.Valid && c.asked.receive(e, nil) {
			return
		}
		if c.requests.Add(1) > maxServerRequests {
			c.requests.Add(-1)
			c.drop("a request while too many others of the server wait", nil)
			return
		}
	default:
		c.drop("a line that is no JSON-RPC message", raw)
		return
	}
	m, err := sdkrpc.DecodeMessage(raw)
	if err != nil {
		if e.Kind == jsonrpc.Request {
			c.requests.Add(-1)
		}
		c.drop("a malformed message", raw)
		return
	}
	if r, ok := m.(*sdkrpc.Response); ok && c.probe.answered(r.ID) {
		return // too late: the SDK was told otherwise
	}
	if e.Kind == jsonrpc.Response {
		c.declared.Note(e)
	}
	c.deliver(m)
}

// notified handles a notification, and reports whether it is for the SDK. Those that nothing listens to end here,
// because the SDK would queue a flood of them without bound.
func (c *streamConn) notified(e jsonrpc.Message) (forSDK bool) {
	switch {
	case e.Method == noteProgress:
		if isBadProgress(e) {
			c.notifications.losses.add()
			return false
		}
		token, ours := progressToken(e)
		if !ours {
			return false
		}
		c.mu.Lock()
		call := c.pending[token]
		c.mu.Unlock()
		if call != nil {
			if !call.report(e.Params) {
				c.notifications.losses.add()
			}
			return false
		}
	case e.Method == noteCancelled:
		return !c.asked.canceled(e)
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
	return false
}

// discard is a call that nobody waits for: what is told to it is looked at, counted where it is malformed, and lost.
func discard() *pendingRequest {
	c := newLaneCall("", "", nil)
	c.notify = func(tool.Notification) {}
	return c
}

// listener is the subscriptions/listen of a client's own that a notification names; nil for none.
func (c *streamConn) listener(e jsonrpc.Message) *pendingRequest {
	meta, ok := rawjson.Get(e.Params, "_meta")
	if !ok || !rawjson.IsObject(meta) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.pending[rawjson.Text(meta, hop.SubscriptionKey)]; call != nil && call.listens {
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

// deliver queues a message for the SDK.
func (c *streamConn) deliver(m sdkrpc.Message) {
	select {
	case c.toSDK <- m:
	case <-c.closing:
	}
}

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

func (c *streamConn) remove(id string) *pendingRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.pending[id]
	delete(c.pending, id)
	return call
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
		if c.needs != nil {
			out.Call = signInCall{call, c.needs}
		}
		err = c.wire.Post(out)
	}
	if err != nil {
		c.remove(call.id)
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
	told := call.drop() && c.wire.Post(transport.Outgoing{Data: cancelBody(call.id, reason)}) == nil
	return withdrawal{told, func() { c.remove(call.id) }}
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
	call := newLaneCall(fmt.Sprintf("%s-%d", pingID, c.pings.Add(1)), methodPing, c.hop.ListParams(""))
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
	params, id, version := w.begin(c.hop)
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
	defer c.remove(call.id)
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

// receiveOversize tells whoever waits for a message that it was too large: the call, or the SDK.
func (c *streamConn) receiveOversize(large *transport.Oversize) {
	c.notifications.losses.add()
	large.Warn(c.log)
	e := jsonrpc.Read(large.Response)
	if e.Kind != jsonrpc.Response {
		return
	}
	if id, ours := laneID(e); !ours {
		c.receiveOne(jsonrpc.Received{Text: large.Response})
	} else if call := c.remove(id); call != nil {
		call.finish(response{err: large.Failure()})
	}
}
