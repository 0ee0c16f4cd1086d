package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// lane carries raw requests over one session. There are two: streamConn for transports with one stream both ways,
// httpLane for Streamable HTTP.
type lane interface {
	// send puts c on its way and returns at once. The answer and the progress before it arrive in c; each call is
	// finished, whatever happens, at the latest when the session ends.
	send(ctx context.Context, c *pendingRequest)

	// withdraw tells the server that nobody waits for c any more, and returns at once. told says that the server may
	// have the request, and may still answer it.
	withdraw(ctx context.Context, c *pendingRequest, reason string) (told bool)

	// tell sends a notification of a client, and returns once the server has it or will not. params
	// are nil where it has none.
	tell(ctx context.Context, method string, params []byte) error
}

// response says how a pendingRequest ended.
type response struct {
	result json.RawMessage // nil where err is set
	err    error           // *tool.RPCError or *tool.Failure
	object rawjson.Object  // result, read; the zero value where it nests too deeply
	room   *budget.Room    // that result takes; nil where the message is not large

	// status is the HTTP status with which the request was refused, or 0.
	status int

	// the server let the time of a request without progress pass, and did not answer when that was
	// cancelled
	silent bool

	// lost says that the session is gone and the server refused the request for that reason alone, so that it was not
	// executed and may be sent again over the next session.
	lost bool
}

// unsent reports that the session ended before the request was sent.
func (a response) unsent() bool {
	var f *tool.Failure
	return errors.As(a.err, &f) && f.Code == codeConnectionLost && !f.OutcomeUnknown
}

// isCutOff reports whether a request failed because the session ended before the answer came.
func isCutOff(err error) bool {
	var f *tool.Failure
	return errors.As(err, &f) && f.Code == codeConnectionLost
}

// States of a pendingRequest on its way out.
const (
	callQueued  int32 = iota
	callSent          // the server may have received it
	callDropped       // nobody waits any more: never to be sent
)

// pendingRequest is one raw request under way. Its progress token is its id.
type pendingRequest struct {
	// Request is a client's, or the hub's own, which has a method alone. Its Name is for the Mcp-Name header. Its Notify
	// and Progress receive what the server says of the call before it answers, in the order of the wire. They run where
	// the stream is read, and do not block.
	*tool.Request
	id      int64
	text    []byte            // as it goes to the server; nil once that is not needed any more
	headers map[string]string // further headers, on Streamable HTTP only
	until   <-chan struct{}   // closed when it must end: a subscriptions/listen of a client's own. Nil for others

	state atomic.Int32
	abort context.CancelFunc // Streamable HTTP: closes the request. Set by send.
	needs *signInNeeds       // SSE: of the server. Set by send.

	ready chan struct{} // has room for one; signalled when take would return something

	// Only who waits for the request uses these.
	lastSent  <-chan struct{} // closed when the latest question has gone to the client; nil before the first
	answering sync.WaitGroup  // questions that wait for the client

	mu    sync.Mutex
	news  news
	held  int  // open questions that may be what the server is waiting for
	muted bool // nobody listens any more
}

// news is what has come for a call since the last time.
type news struct {
	asked      []*serverRequest // questions of the server
	held       bool             // a question is open: the server may be waiting for its answer
	progressed bool             // progress was reported
	done       *response        // the answer, which stays
}

// newLaneCall makes r a request with these params: one object.
func newLaneCall(id int64, r *tool.Request, params json.RawMessage) *pendingRequest {
	return &pendingRequest{Request: r, id: id, ready: make(chan struct{}, 1),
		text: jsonrpc.RequestText(strconv.AppendInt(nil, id, 10), r.Method, params)}
}

// Begin implements transport.Call. It marks the call as sent. It returns false if the call was
// dropped meanwhile and must not be sent.
func (c *pendingRequest) Begin() bool {
	return c.state.CompareAndSwap(callQueued, callSent) || c.state.Load() == callSent
}

// TakeBack implements transport.Call. It marks a call that was begun as not sent: not a byte of it has left.
func (c *pendingRequest) TakeBack() { c.state.CompareAndSwap(callSent, callQueued) }

// Fail implements transport.Call. After HTTP 401 the wire ends, and the next session shows whether
// the token is good: the server may have refused it for this session alone.
func (c *pendingRequest) Fail(err error) {
	if c.needs != nil && !c.isGreeting() {
		if f := c.needs.ofError(err); f != nil {
			c.finish(response{err: f})
			return
		}
	}
	if a := ofStatus(err); a.err != nil {
		c.finish(a)
		return
	}
	c.finish(endedFailure(c, err))
}

// ofStatus is the answer of a request that ended with a *fault.StatusError; the zero value for other errors.
func ofStatus(err error) response {
	var refused *fault.StatusError
	if !errors.As(err, &refused) {
		return response{}
	}
	retry := transport.RetryAfter(refused.Header)
	return response{err: fault.StatusFailure(refused.Status, retry), status: refused.Status}
}

// isGreeting reports whether the request belongs to the handshake. "The initialize request MUST NOT be cancelled by
// clients", and why it failed is told to whoever looks after the server.
func (c *pendingRequest) isGreeting() bool {
	return c.Method == tool.MethodInitialize || c.Method == tool.MethodDiscover
}

// isList reports whether the request reads a list. Some servers list to everybody.
func (c *pendingRequest) isList() bool {
	_, is := lists.Of(c.Method)
	return is
}

// drop marks the call as not to be sent, and reports whether it may have been sent before.
func (c *pendingRequest) drop() (sent bool) {
	return !c.state.CompareAndSwap(callQueued, callDropped) && c.sent()
}

// sent reports whether the server may have received the request.
func (c *pendingRequest) sent() bool { return c.state.Load() == callSent }

// report passes progress on.
func (c *pendingRequest) report(params json.RawMessage, redact *secret.Redactor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.news.done == nil && !c.muted && c.Progress != nil {
		c.Progress(tool.Progress{Params: bytes.Clone(params), // rather than the whole message that it came in
			Message: redact.Text(rawjson.Text(params, "message"))})
	}
	c.news.progressed = true
	wait.Signal(c.ready)
}

// remark passes a log message on.
func (c *pendingRequest) remark(n tool.Notification) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.news.done == nil && !c.muted {
		c.Notify(n)
	}
}

// mute drops what the server says of the call from now on, but for its answer.
func (c *pendingRequest) mute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.muted = true
}

// finish sets the answer. Only the first one counts.
func (c *pendingRequest) finish(a response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.news.done == nil {
		c.news.done = &a
	} else {
		a.room.Free()
	}
	wait.Signal(c.ready)
}

// take returns what has come since the last time.
func (c *pendingRequest) take() news {
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.news
	got.held, c.news = c.held > 0, news{done: got.done}
	return got
}

const codeConnectionLost = "connection_lost"

// endedFailure is the answer of a call whose session ended before the response.
func endedFailure(c *pendingRequest, cause error) response {
	f := &tool.Failure{
		Class:          tool.ClassDependencyUnavailable,
		Code:           codeConnectionLost,
		OutcomeUnknown: c.sent(),
		Cause:          cause,
	}
	if f.OutcomeUnknown {
		f.Message = "the server ended or lost its connection while the call was running, so it may have taken effect: " +
			"check before calling again"
	} else {
		f.Message = "the server ended before it received the call: call again once it is back"
	}
	return response{err: f}
}

// openCalls are the requests of a session that have not been answered, by id. The zero value is ready.
type openCalls struct {
	mu    sync.Mutex
	calls map[int64]*pendingRequest
	over  error // why no more are taken in
}

// add reports whether it has taken c in.
func (t *openCalls) add(c *pendingRequest) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over != nil {
		return false
	}
	if t.calls == nil {
		t.calls = make(map[int64]*pendingRequest)
	}
	t.calls[c.id] = c
	return true
}

// find returns the request that an id of the server's names; nil if there is none.
func (t *openCalls) find(raw json.RawMessage) *pendingRequest {
	id, ours := idOf(raw)
	if !ours {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[id]
}

// sole returns the only request that waits for an answer; nil where there are others.
func (t *openCalls) sole() (sole *pendingRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		switch {
		case c.Method == tool.MethodListen:
		case sole != nil:
			return nil
		default:
			sole = c
		}
	}
	return sole
}

// end takes all requests out, and no more in, because of err.
func (t *openCalls) end(err error) map[int64]*pendingRequest {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.calls
	t.calls, t.over = nil, err
	return all
}

// err is why no more requests are taken in.
func (t *openCalls) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
}

// put queues a question of the server for whoever waits for the call.
func (c *pendingRequest) put(q *serverRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.news.asked = append(c.news.asked, q)
	wait.Signal(c.ready)
}

// hold counts open questions.
func (c *pendingRequest) hold(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held += n
	wait.Signal(c.ready)
}

func (c *pendingRequest) isHeld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held > 0
}

// isDone reports whether the answer has come.
func (c *pendingRequest) isDone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.news.done != nil
}

// left says how long a call that began then may still go without a word from the server. While the server waits for a
// person's answer the idle time does not run.
func (l callLimits) left(held bool) time.Duration {
	all := l.most - time.Since(l.began)
	if held {
		return all
	}
	return min(l.idle, all)
}
