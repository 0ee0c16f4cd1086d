package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

const (
	// maxResumes bounds how often a broken stream is resumed without a new event in between.
	maxResumes = 5
	// resumePause is the pause before that where the server names none; maxResumePause bounds what it may name.
	resumePause    = 500 * time.Millisecond
	maxResumePause = 30 * time.Second

	// A stream is read on after its response for so many bytes and so long: its end has often not come yet, and a body
	// that is closed before its end takes the connection with it.
	maxDrain     = 64 << 10
	drainTimeout = 50 * time.Millisecond
)

// httpLane is the lane of a Streamable HTTP session: each request is one POST of its own.
type httpLane struct {
	signInNeeds
	client *http.Client

	// A server may answer on the standing stream.
	listens  atomic.Bool   // the stream is opened, and again when it ends
	noStream chan struct{} // closed when the server offers none

	works    atomic.Bool // the server has answered a call: of this session it knew the session and the token
	checking sync.Mutex
	isGone   bool // what isLost has found out

	closed    chan struct{} // closed by close
	responses atomic.Int32  // under way
}

// newHTTPLane makes the lane of sess. life bounds what answers the server's requests.
func newHTTPLane(life context.Context, sess *session, server *transport.HTTP) *httpLane {
	l := &httpLane{signInNeeds: signInNeeds{sess, server}, client: server.Client(), closed: make(chan struct{}),
		noStream: make(chan struct{})}
	sess.lane = l
	sess.asked = newServerRequests(func(body []byte) { l.deliver(life, body, responsePatience) })
	return l
}

// speaksModern reports whether requests are those of 2026-07-28.
func (l *httpLane) speaksModern() bool {
	version, _ := l.speaks.Load().(string)
	return version >= hop.Modern
}

// newRequest makes a request of this session.
func (l *httpLane) newRequest(ctx context.Context, method string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, l.server.URL.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	switch method {
	case http.MethodPost:
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	case http.MethodGet:
		req.Header.Set("Accept", "text/event-stream")
	}
	if version, _ := l.speaks.Load().(string); version != "" {
		req.Header.Set("Mcp-Protocol-Version", version)
	}
	if l.id != "" {
		req.Header.Set(headerSession, l.id)
	}
	return req, nil
}

const headerSession = "Mcp-Session-Id"

// send implements lane. The request does not end with ctx but with c.abort: a withdrawal tells the server first.
func (l *httpLane) send(ctx context.Context, c *pendingRequest) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.abort = cancel
	l.open.add(c)
	l.server.Flights.Go(func() {
		defer l.forget(c)
		c.finish(l.exchange(ctx, c))
	})
}

// exchange posts the call and reads what comes back up to the response.
func (l *httpLane) exchange(ctx context.Context, c *pendingRequest) response {
	resp, err := l.postCall(l.keepToken(ctx), c)
	lost := err == nil && l.isLost(ctx, resp)
	if err == nil && !lost && resp.StatusCode == http.StatusUnauthorized && l.works.Load() {
		_ = resp.Body.Close()
		resp, err = l.postCall(ctx, c) // with another token, if there is one
	}
	if err != nil {
		return l.unreached(ctx, c, err)
	}
	defer func() { _ = resp.Body.Close() }()
	var a response
	if !lost {
		a = l.answer(ctx, c, resp)
		lost = l.forgotten(ctx, c, a)
	}
	if lost {
		f := &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: fmt.Sprintf("http_%d", resp.StatusCode),
			Message: "the server has forgotten the session: call again", Cause: causeOf(a.err)}
		l.end(sessionLost())
		return response{err: f, status: resp.StatusCode, lost: true}
	}
	l.settle(c, a)
	return a
}

// postCall posts the call.
func (l *httpLane) postCall(ctx context.Context, c *pendingRequest) (*http.Response, error) {
	req, err := l.newRequest(ctx, http.MethodPost, c.text)
	if err != nil {
		return nil, err
	}
	again := req.GetBody
	req.Body = callBody{req.Body, c}
	req.GetBody = func() (io.ReadCloser, error) {
		body, err := again()
		return callBody{body, c}, err
	}
	if l.speaksModern() { // such servers compare headers with what the body holds
		req.Header.Set("Mcp-Method", c.Method)
		if c.Name != "" {
			req.Header.Set("Mcp-Name", hop.NameHeader(c.Name))
		}
		for name, value := range c.headers {
			req.Header.Set(name, value)
		}
	}
	return l.client.Do(req)
}

// answer reads what comes back for the call, up to the response.
func (l *httpLane) answer(ctx context.Context, c *pendingRequest, resp *http.Response) response {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return l.refused(c, resp)
	}
	if c.Method == tool.MethodInitialize {
		l.id = resp.Header.Get(headerSession)
	}
	if !c.isGreeting() && l.id != "" && !isPage(resp) && resp.ContentLength < 1 && isEmpty(resp) {
		return l.awaitElsewhere(ctx, c, resp.StatusCode)
	}
	if transport.IsEventStream(resp) {
		return l.readStream(ctx, c, resp.Body)
	}
	return l.readJSON(ctx, c, resp)
}

// callBody is the body of a call's request. Reading it marks the call as sent. That of a dropped
// call cannot be read, so that the server gets no whole request.
type callBody struct {
	io.ReadCloser
	call *pendingRequest
}

// Read implements io.Reader.
func (b callBody) Read(p []byte) (int, error) {
	if !b.call.Begin() {
		b.call.abort()
		return 0, context.Canceled
	}
	return b.ReadCloser.Read(p)
}

// unreached is the answer of a call whose request failed below HTTP, or whose answer the hub does not take.
func (l *httpLane) unreached(ctx context.Context, c *pendingRequest, err error) response {
	if answer := (*fault.AnswerError)(nil); errors.As(err, &answer) {
		message := "the server " + answer.Error()
		if answer.Redirects {
			return response{err: &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "redirected",
				Cause: err, Message: message}}
		}
		return response{err: &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: codeInvalidResponse,
			OutcomeUnknown: true, Cause: err, Message: message}}
	}
	if f := l.ofError(err); f != nil && ctx.Err() == nil {
		return response{err: f}
	}
	l.suspectAfter(ctx, c)
	if c.sent() {
		return endedFailure(c, err)
	}
	return response{err: &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "connection_failed", Cause: err,
		Message: "the server could not be reached: call again once it is back"}}
}

// suspectAfter notes that the exchange of c failed, unless ctx says that it was aborted. Proxies
// and platforms cut standing streams every few minutes, which means nothing.
func (l *httpLane) suspectAfter(ctx context.Context, c *pendingRequest) {
	if ctx.Err() == nil && c.Method != tool.MethodListen {
		wait.Signal(l.suspect)
	}
}

// refused is the answer of a call that got a status other than success.
func (l *httpLane) refused(c *pendingRequest, resp *http.Response) response {
	status := resp.StatusCode
	f := fault.StatusFailure(status, transport.RetryAfter(resp.Header))
	body := transport.ErrorBody(resp.Body)
	e := jsonrpc.Read(body)
	says := e.Kind == jsonrpc.Response && !rawjson.IsNull(e.Error) && e.Valid
	if says {
		f.Cause = errorAnswer(e.Error).err // for the record
	} else {
		page := &tool.HTTPError{Status: status, Media: resp.Header.Get("Content-Type"), Body: string(body)}
		f.Cause, f.Message = page, f.Message+l.words(page)
	}
	// Their senders say what it means.
	if c.isGreeting() || c.Method == tool.MethodListen && status == http.StatusUnauthorized {
		return response{err: f, status: status}
	}
	need := l.ofStatus(status, resp.Header, f.Cause)
	if status == http.StatusUnauthorized {
		l.end(fault.OfStatus(l.cfg, status, nil))
	}
	switch {
	case need != nil:
		return response{err: need, status: status}
	case status == http.StatusUnauthorized:
		return response{err: f, status: status}
	}
	if l.isForeign(status, body) && c.Method != tool.MethodListen {
		wait.Signal(l.suspect)
	}
	if says && status != http.StatusTooManyRequests {
		a := errorAnswer(e.Error)
		a.status = status
		return a
	}
	return response{err: f, status: status}
}

// isForeign reports whether a refusal looks like that of a server which does not speak 2026-07-28
// any more, as after it was replaced: one that says nothing about the request itself.
func (l *httpLane) isForeign(status int, body []byte) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		e := jsonrpc.Read(body)
		return l.speaksModern() && (e.Kind != jsonrpc.Response || rawjson.IsNull(e.ID))
	}
	return false
}

// readJSON reads a response that is one message, whatever its content type says.
func (l *httpLane) readJSON(ctx context.Context, c *pendingRequest, resp *http.Response) response {
	got, err := jsonrpc.ReadBody(resp.Body, resp.ContentLength, int64(l.cfg.Limits.Message), l.server.Memory)
	if large := (*jsonrpc.TooLarge)(nil); errors.As(err, &large) {
		l.dropOversize(large, c)
		return response{err: transport.OversizeFailure(large)}
	}
	if err != nil {
		l.suspectAfter(ctx, c)
		return endedFailure(c, err)
	}
	e := jsonrpc.Read(got.Text)
	if media := transport.MediaType(resp); e.Kind == jsonrpc.None && media != "application/json" {
		return l.unreached(ctx, c, &fault.AnswerError{Hint: "check that url is that of an MCP endpoint",
			What: fmt.Sprintf("answered with content type %q instead of JSON", hidden.Cut(media, 80))})
	}
	if e.Kind == jsonrpc.None { // a batch, for instance
		for _, e = range jsonrpc.Within(got.Text) {
			if id, ours := idOf(e.ID); e.Kind == jsonrpc.Response && ours && id == c.id {
				break
			}
		}
	}
	if e.Kind != jsonrpc.Response {
		return invalidAnswer("is no JSON-RPC response")
	}
	if id, ours := idOf(e.ID); !rawjson.IsNull(e.ID) && (!ours || id != c.id) {
		return invalidAnswer("is for another request")
	}
	a := c.answerOf(e)
	a.room = got.Room
	return a
}

// events returns a reader of the stream that answers a request. A message that is too large ends
// the call, and may have no end.
func (l *httpLane) events(body io.Reader) *jsonrpc.EventReader {
	events := jsonrpc.NewEventReader(body, l.cfg.Limits.Message, l.server.Memory)
	events.Ends = true
	return events
}

// readStream reads events up to the response of c. On older revisions a stream that breaks is resumed where the server
// gave its events ids.
func (l *httpLane) readStream(ctx context.Context, c *pendingRequest, body io.ReadCloser) response {
	defer func() { _ = body.Close() }()
	events := l.events(body)
	pause, lastID, resumes := resumePause, "", 0
	for {
		ev, err := events.Next()
		if err == nil {
			if ev.Retry > 0 {
				pause = min(ev.Retry, maxResumePause)
			}
			if ev.ID != lastID {
				lastID, resumes = ev.ID, 0
			}
			if a, done := l.received(c, ev); done {
				if !a.namesSession() {
					l.settle(c, a)
					c.finish(a) // the caller need not wait for the stream's end
				}
				drain(body)
				return a
			}
			continue
		}
		if large := (*jsonrpc.TooLarge)(nil); errors.As(err, &large) {
			l.dropOversize(large, c)
			return response{err: transport.OversizeFailure(large)}
		}
		var rest io.ReadCloser
		if lastID != "" && !l.speaksModern() {
			_ = body.Close()
			for again := true; again && rest == nil && resumes < maxResumes; resumes++ {
				rest, again = l.resume(ctx, lastID, pause)
			}
		}
		if rest == nil {
			if !errors.Is(err, io.EOF) {
				l.suspectAfter(ctx, c)
			}
			return endedFailure(c, err)
		}
		body, events = rest, l.events(rest)
		events.LastID = lastID
	}
}

// drain reads the rest of a stream whose response has come, so that the connection can be used again.
func drain(body io.ReadCloser) {
	timer := time.AfterFunc(drainTimeout, func() { _ = body.Close() })
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, body, maxDrain) // what fails here costs a connection, nothing else
}

// resume opens the rest of a broken stream. again reports whether trying once more makes sense.
func (l *httpLane) resume(ctx context.Context, lastID string, pause time.Duration) (rest io.ReadCloser, again bool) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return nil, false
	}
	req, err := l.newRequest(ctx, http.MethodGet, nil)
	if err != nil {
		return nil, false
	}
	req.Header.Set("Last-Event-ID", lastID)
	resp, err := l.client.Do(req)
	if err != nil {
		return nil, true
	}
	if resp.StatusCode == http.StatusOK && transport.IsEventStream(resp) {
		return resp.Body, true
	}
	_ = resp.Body.Close()
	return nil, resp.StatusCode >= 500
}

// received handles one event of a call's stream. done reports that it was the response.
func (l *httpLane) received(c *pendingRequest, ev jsonrpc.Event) (a response, done bool) {
	if !ev.IsMessage() {
		return response{}, false
	}
	e := jsonrpc.Read(ev.Data)
	if id, ours := idOf(e.ID); e.Kind == jsonrpc.Response && (ours && id == c.id || rawjson.IsNull(e.ID)) {
		a = c.answerOf(e)
		a.room = ev.Room
		return a, true
	}
	l.receive(e, ev.Room, c)
	return response{}, false
}

// tell implements lane.
func (l *httpLane) tell(ctx context.Context, method string, params []byte) error {
	return l.post(ctx, method, jsonrpc.NotificationText(method, params))
}

// post posts a message that is no call; method is "" for a response. It ends with the session.
func (l *httpLane) post(ctx context.Context, method string, body []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-l.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	req, err := l.newRequest(ctx, http.MethodPost, body)
	if err != nil {
		return err
	}
	if l.speaksModern() && method != "" {
		req.Header.Set("Mcp-Method", method)
	}
	resp, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_ = transport.ErrorBody(resp.Body)
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &fault.StatusError{Status: resp.StatusCode, Header: resp.Header}
	}
	return nil
}

const (
	maxResponses     = 256              // under way to one server: it may ask faster than it takes answers in
	responsePatience = 30 * time.Second // for a response, which may be large
)

// deliver is post in the background, for what nobody waits for. It may come from a call that outlives the session, as
// the flights do.
func (l *httpLane) deliver(ctx context.Context, body []byte, patience time.Duration) {
	if l.responses.Add(1) > maxResponses {
		l.responses.Add(-1)
		l.log.Warn("a message to the server was dropped: too many others are under way")
		return
	}
	l.server.Flights.Go(func() {
		defer l.responses.Add(-1)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		if err := l.post(ctx, "", body); err != nil {
			l.log.Debug("message to the server failed", "error", fault.Plain(err))
		}
	})
}

// withdraw implements lane. On 2026-07-28 closing the request is how a call is cancelled: nothing comes after that.
func (l *httpLane) withdraw(ctx context.Context, c *pendingRequest, reason string) (told bool) {
	sent := c.drop()
	if l.speaksModern() || c.isGreeting() {
		return false
	}
	if sent {
		l.deliver(ctx, cancelBody(c.id, reason), transport.CancelPatience)
	}
	return sent
}
