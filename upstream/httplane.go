package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
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
	client  *http.Client
	session string                 // Mcp-Session-Id, or ""; set with the answer to initialize
	spoken  atomic.Pointer[spoken] // the server may ask while the handshake still runs

	greeting func() []byte // the params of another initialize

	// A server may answer on the standing stream.
	open     sync.Map      // by id: *pendingRequest under way
	listens  atomic.Bool   // the stream is opened, and again when it ends
	hears    *watch        // of the session
	noStream chan struct{} // closed when the server offers none

	works    atomic.Bool // the server has answered a call: of this session it knew the session and the token
	checking sync.Mutex
	isOver   bool // what isLost has found out

	notifications notificationHandler
	onSuspect     func() // the server could not be reached: the session may be over

	asked      *serverRequests
	ended      chan struct{}  // closed by close
	background sync.WaitGroup // notifications and the listener
	responses  atomic.Int32   // under way
}

// spoken is what speak sets. The zero value says that no version is agreed upon.
type spoken struct {
	version string
	hop     *hop.Hop
}

// newHTTPLane returns the lane of sess. life bounds what answers the server's requests.
func newHTTPLane(
	life context.Context, e *entry, server *transport.HTTP, sess *session, to notificationHandler,
) *httpLane {
	l := &httpLane{signInNeeds: signInNeeds{e, server, sess.end}, client: server.Client(), notifications: to,
		onSuspect: sess.suspected, ended: make(chan struct{}), noStream: make(chan struct{}), hears: sess.watch}
	l.asked = newServerRequests(func(body []byte) { l.respond(life, body) })
	return l
}

// speak implements lane.
func (l *httpLane) speak(version string, h *hop.Hop) { l.spoken.Store(&spoken{version, h}) }

// says returns what speak has set last.
func (l *httpLane) says() spoken {
	if s := l.spoken.Load(); s != nil {
		return *s
	}
	return spoken{}
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
	if version := l.says().version; version != "" {
		req.Header.Set("Mcp-Protocol-Version", version)
	}
	if l.session != "" {
		req.Header.Set(headerSession, l.session)
	}
	return req, nil
}

const headerSession = "Mcp-Session-Id"

// send implements lane. The request does not end with ctx but with c.abort: a withdrawal tells the server first.
func (l *httpLane) send(ctx context.Context, c *pendingRequest) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.abort = cancel
	l.open.Store(c.id, c)
	l.server.Flights.Go(func() {
		defer cancel()
		defer l.open.Delete(c.id)
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
		l.onEnd(sessionLost())
		return response{err: f, status: resp.StatusCode, lost: true}
	}
	l.settle(c, a)
	return a
}

// postCall posts the call.
func (l *httpLane) postCall(ctx context.Context, c *pendingRequest) (*http.Response, error) {
	req, err := l.newRequest(ctx, http.MethodPost, c.body())
	if err != nil {
		return nil, err
	}
	again := req.GetBody
	req.Body = callBody{req.Body, c}
	req.GetBody = func() (io.ReadCloser, error) {
		body, err := again()
		return callBody{body, c}, err
	}
	if l.says().hop != nil {
		c.hopHeaders(req.Header)
	}
	return l.client.Do(req)
}

// answer reads what comes back for the call, up to the response.
func (l *httpLane) answer(ctx context.Context, c *pendingRequest, resp *http.Response) response {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return l.refused(c, resp)
	}
	if c.method == methodInitialize {
		l.session = resp.Header.Get(headerSession)
	}
	if !c.isGreeting() && l.session != "" && !isPage(resp) && resp.ContentLength < 1 && isEmpty(resp) {
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

// unreached is the answer of a call whose request failed below HTTP.
func (l *httpLane) unreached(ctx context.Context, c *pendingRequest, err error) response {
	if answer := (*fault.AnswerError)(nil); errors.As(err, &answer) {
		f := &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "redirected", Cause: err,
			OutcomeUnknown: !answer.Redirects, Message: "the server " + answer.Error()}
		if !answer.Redirects {
			f.Code = "invalid_response"
		}
		return response{err: f}
	}
	if f := l.ofError(err); f != nil && ctx.Err() == nil {
		return response{err: f}
	}
	l.suspect(ctx)
	if c.sent() {
		return endedFailure(c, err)
	}
	return response{err: &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "connection_failed", Cause: err,
		Message: "the server could not be reached: call again once it is back"}}
}

// suspect notes that an exchange failed, unless ctx says that it was aborted.
func (l *httpLane) suspect(ctx context.Context) {
	if ctx.Err() == nil {
		l.onSuspect()
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
	if c.isGreeting() { // the connector says what it means
		return response{err: f, status: status, pause: f.RetryAfter}
	}
	if need := l.ofStatus(status, resp.Header, f.Cause); need != nil {
		if status == http.StatusUnauthorized {
			l.onEnd(fault.OfStatus(l.cfg, status, 0, nil))
		}
		return response{err: need, status: status}
	}
	if status == http.StatusUnauthorized {
		l.onEnd(&fault.Fault{What: fmt.Sprintf("%s refused the credentials (HTTP 401)",
			secret.URL(l.server.URL.String())),
			Hint: "renew the credentials in headers of the server's entry", Auth: true})
		return response{err: f, status: status}
	}
	if l.isForeign(status, body) && c.method != methodDiscover {
		l.onSuspect()
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
		return l.says().hop != nil && (e.Kind != jsonrpc.Response || rawjson.IsNull(e.ID))
	}
	return false
}

// readJSON reads a response that is one message, whatever its content type says.
func (l *httpLane) readJSON(ctx context.Context, c *pendingRequest, resp *http.Response) response {
	got, err := jsonrpc.ReadBody(resp.Body, resp.ContentLength, int64(l.cfg.Limits.Message), l.server.Memory)
	if full := noRoom(err); full != nil || errors.Is(err, jsonrpc.ErrBodyTooLarge) {
		return l.oversizeAnswer(full)
	}
	if err != nil {
		l.suspect(ctx)
		return endedFailure(c, err)
	}
	if got.Text = bytes.TrimSpace(got.Text); len(got.Text) > 0 && got.Text[0] == '[' {
		got.Text = responseIn(got.Text, c.id)
	}
	e := jsonrpc.Read(got.Text)
	if media := transport.MediaType(resp); e.Kind == jsonrpc.None && media != "application/json" {
		return response{err: &tool.Failure{
			Class: tool.ClassDependencyUnavailable,
			Code:  "invalid_response",
			Message: fmt.Sprintf("the server answered with content type %q instead of JSON: check its url",
				hidden.Line(hidden.Cut(media, 80))),
			OutcomeUnknown: true,
			Cause:          &fault.MediaError{Media: media},
		}}
	}
	if e.Kind == jsonrpc.None {
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
	return c.answerOf(e).in(got.Room)
}

// responseIn returns the response to id in a batch, or nil.
func responseIn(batch []byte, id int64) (found []byte) {
	_ = rawjson.Elements(batch, func(one []byte) bool {
		if e := jsonrpc.Read(one); e.Kind == jsonrpc.Response {
			if own, ours := idOf(e.ID); ours && own == id {
				found = one
			}
		}
		return found == nil
	})
	return found
}

// readStream reads events up to the response of c. On older revisions a stream that breaks is resumed where the server
// gave its events ids.
func (l *httpLane) readStream(ctx context.Context, c *pendingRequest, body io.ReadCloser) response {
	defer func() { _ = body.Close() }()
	events := jsonrpc.NewEventReader(body, l.cfg.Limits.Message, l.server.Memory)
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
			if a, done := l.received(ctx, c, ev); done {
				if !a.namesSession() {
					l.settle(c, a)
					c.finish(a) // the caller need not wait for the stream's end
				}
				drain(body)
				return a
			}
			ev.Room.Free()
			continue
		}
		if full := cmp.Or(noRoom(err), events.NoRoom()); full != nil || errors.Is(err, jsonrpc.ErrEventTooLarge) {
			return l.oversizeAnswer(full)
		}
		var rest io.ReadCloser
		if lastID != "" && l.says().hop == nil {
			_ = body.Close()
			for again := true; again && rest == nil && resumes < maxResumes; resumes++ {
				rest, again = l.resume(ctx, lastID, pause)
			}
		}
		if rest == nil {
			if !errors.Is(err, io.EOF) {
				l.suspect(ctx)
			}
			return endedFailure(c, err)
		}
		body, events = rest, jsonrpc.NewEventReader(rest, l.cfg.Limits.Message, l.server.Memory)
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
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
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
func (l *httpLane) received(ctx context.Context, c *pendingRequest, ev jsonrpc.Event) (a response, done bool) {
	if (ev.Name != "" && ev.Name != "message") || len(ev.Data) == 0 {
		return response{}, false
	}
	e := jsonrpc.Read(ev.Data)
	switch e.Kind {
	case jsonrpc.Response:
		if id, ours := idOf(e.ID); ours && id == c.id || rawjson.IsNull(e.ID) {
			return c.answerOf(e).in(ev.Room), true
		}
	case jsonrpc.Notification:
		if e.Method == noteCancelled {
			l.asked.canceled(e)
		} else if e.Method != noteProgress {
			l.notifications.handle(e, c)
		} else if token, ours := progressToken(e); isBadProgress(e) {
			l.notifications.losses.add()
		} else if ours && token == c.id {
			if !c.report(e.Params) {
				l.notifications.losses.add()
			}
		} else if ours {
			l.notifications.handle(e, c) // of a call that has become a task
		}
	case jsonrpc.Request:
		l.receiveRequest(ctx, e, c)
	default:
		l.notifications.losses.add()
	}
	return response{}, false
}

// receiveRequest handles a request of the server that came on the stream of c, or on one that is no
// call's; then c is nil.
func (l *httpLane) receiveRequest(ctx context.Context, e jsonrpc.Message, c *pendingRequest) {
	if !e.Valid {
		l.notifications.losses.add()
		if body := notUTF8Error(e); body != nil {
			l.respond(ctx, body)
		}
		return
	}
	if !l.asked.receive(e, c) {
		l.respond(ctx, replyBody(e))
	}
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
		case <-l.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	req, err := l.newRequest(ctx, http.MethodPost, body)
	if err != nil {
		return err
	}
	if l.says().hop != nil && method != "" {
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

// respond answers a request of the server, or tells it something, in the background. It may come
// from a call that outlives the session, as the flights do.
func (l *httpLane) respond(ctx context.Context, body []byte) {
	if l.responses.Add(1) > maxResponses {
		l.responses.Add(-1)
		l.log.Warn("a message to the server was dropped: too many others are under way")
		return
	}
	l.server.Flights.Go(func() {
		defer l.responses.Add(-1)
		_ = l.deliver(ctx, body, responsePatience) // which logs it
	})
}

// say implements lane.
func (l *httpLane) say(ctx context.Context, body []byte) { l.respond(ctx, body) }

// questions implements lane.
func (l *httpLane) serverRequests() *serverRequests { return l.asked }

// deliver is post with nobody who waits for it.
func (l *httpLane) deliver(ctx context.Context, body []byte, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err := l.post(ctx, "", body)
	if err != nil {
		l.log.Debug("message to the server failed", "error", fault.Plain(err))
	}
	return err
}

// withdraw implements lane. On 2026-07-28 closing the request is how a call is cancelled.
func (l *httpLane) withdraw(ctx context.Context, c *pendingRequest, reason string) withdrawal {
	sent := c.drop()
	switch {
	case l.says().hop != nil || c.isGreeting(): // nothing comes after that
		c.abort()
		return withdrawal{false, c.abort}
	case sent:
		// which logs it
		l.background.Go(func() { _ = l.deliver(ctx, cancelBody(c.id, reason), transport.CancelPatience) })
	}
	return withdrawal{sent, c.abort}
}

func (l *httpLane) newPing() *pendingRequest {
	return newLaneCall(l.nextID(), methodPing, l.says().hop.ListParams(nil))
}

// ping implements lane.
func (l *httpLane) ping(ctx context.Context) error {
	c := l.newPing()
	if l.says().hop == nil {
		return pingError(await(ctx, l, c))
	}
	c.method = methodDiscover // 2026-07-28 has no ping
	a := await(ctx, l, c)
	var rpc *tool.RPCError
	if errors.As(a.err, &rpc) &&
		(a.status == http.StatusBadRequest || a.status == http.StatusNotFound || rpc.Code == tool.CodeMethodNotFound) {
		return errors.New("the server does not speak protocol 2026-07-28 any more")
	}
	return pingError(a)
}

// oversizeAnswer is the answer of a call whose response is too large, or had no room: full says why.
func (l *httpLane) oversizeAnswer(full error) response {
	large := &transport.Oversize{Limit: l.cfg.Limits.Message, NoRoom: full}
	l.notifications.losses.add()
	large.Warn(l.log)
	return response{err: large.Failure()}
}

// noRoom returns err if it says that there was no memory for a message, else nil.
func noRoom(err error) error {
	if errors.Is(err, budget.ErrTooLarge) || errors.Is(err, budget.ErrBusy) || errors.Is(err, budget.ErrLate) {
		return err
	}
	return nil
}
