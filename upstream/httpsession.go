package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// sessionLost says that the server has forgotten the session, as it does after a restart.
func sessionLost() *fault.Fault {
	return &fault.Fault{What: "the server has forgotten the session", Lost: true}
}

// forgotten reports whether a says that the server no longer knows the session: "it MUST respond to requests containing
// that session ID with HTTP 404 Not Found". Many servers say it otherwise, in words that they use for other faults as
// well; then a ping over the same session tells the two apart.
func (l *httpLane) forgotten(ctx context.Context, c *pendingRequest, a response) bool {
	var f *tool.Failure
	if a.err == nil || c.isGreeting() || l.id == "" || c.Method == tool.MethodPing ||
		errors.As(a.err, &f) && f.Code == codeNeedsSignIn {
		return false
	}
	switch a.status {
	case http.StatusNotFound:
		return true
	case http.StatusBadRequest, http.StatusForbidden, http.StatusConflict, http.StatusGone,
		http.StatusUnprocessableEntity:
	default:
		if !a.namesSession() {
			return false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, transport.CancelPatience)
	defer cancel()
	ping := l.await(ctx, newLaneCall(l.ids.Add(1), &tool.Request{Method: tool.MethodPing}, l.hop.ListParams(nil)))
	return ping.status != 0 && ping.status == a.status || ping.status == http.StatusNotFound || ping.namesSession()
}

// settle takes note of the answer to c.
func (l *httpLane) settle(c *pendingRequest, a response) {
	if a.err == nil && !c.isGreeting() && !c.isList() {
		l.works.Store(true)
	}
}

// namesSession reports whether an error can be about the session.
func (a response) namesSession() bool {
	words := a.words()
	return strings.Contains(words, "session") || strings.Contains(words, "not initialized")
}

// keepToken returns the context of a request whose refusal isLost looks at, before another token is asked for.
func (l *httpLane) keepToken(ctx context.Context) context.Context {
	if !l.works.Load() || l.id == "" {
		return ctx
	}
	return transport.KeepToken(ctx)
}

// isLost reports whether resp refuses the session and not the credentials, though it says HTTP 401: the same were good
// before, and are still good for a new session.
func (l *httpLane) isLost(ctx context.Context, resp *http.Response) bool {
	if resp.StatusCode != http.StatusUnauthorized || !l.works.Load() || l.id == "" {
		return false
	}
	l.checking.Lock()
	defer l.checking.Unlock()
	if l.isGone || l.server.HasOther(resp.Request) {
		return l.isGone
	}
	fresh := newHTTPLane(ctx, newSession(l.entry, l.stopping), l.server)
	limited, cancel := context.WithTimeout(ctx, l.cfg.Timeouts.Connect)
	defer cancel()
	a := fresh.await(limited, newLaneCall(l.ids.Add(1), &tool.Request{Method: tool.MethodInitialize},
		l.initializeParams(l.catalog.agreedTerms())))
	l.server.Flights.Go(func() { fresh.close(context.WithoutCancel(ctx), l.closed) })
	l.isGone = a.status != http.StatusUnauthorized && a.status != http.StatusForbidden && !l.server.HasOther(resp.Request)
	return l.isGone
}

// closeTimeout bounds how long the server may take to hear that a session is over.
const closeTimeout = 3 * time.Second

// close tells the server that the session is over, and ends what is under way besides calls. A server that does not
// listen is not waited for once kill is closed.
func (l *httpLane) close(life context.Context, kill <-chan struct{}) {
	ctx, cancel := context.WithCancel(life)
	told := make(chan struct{})
	go func() {
		defer close(told)
		l.endSession(ctx)
	}()
	wait.For(kill, told, closeTimeout)
	cancel()
	<-told
	close(l.closed)
}

// endSession tells the server that the session is over, if it knows one. What cannot be said to it is not worth an
// error.
func (l *httpLane) endSession(ctx context.Context) {
	if l.id == "" {
		return
	}
	if req, err := l.newRequest(transport.KeepToken(ctx), http.MethodDelete, nil); err == nil {
		if resp, err := l.client.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}
}

// isPage reports whether a response names a content type that no answer has, as a proxy's page does.
func isPage(resp *http.Response) bool {
	media := resp.Header.Get("Content-Type")
	return resp.StatusCode != http.StatusAccepted && media != "" && !strings.Contains(media, "json") &&
		!strings.HasPrefix(media, "text/plain") && !transport.IsEventStream(resp)
}

// isEmpty reports whether a response ends before its first byte, which it waits for.
func isEmpty(resp *http.Response) bool {
	first := make([]byte, 1)
	n, err := io.ReadFull(resp.Body, first)
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first[:n]), resp.Body), resp.Body}
	return errors.Is(err, io.EOF)
}

// elsewhereWithin bounds the wait for an answer on the standing stream where nothing has promised one.
const elsewhereWithin = time.Minute

// awaitElsewhere waits for an answer on the standing stream, which it opens where there is none. receiveResponse
// finishes the call and ends ctx. Only a 202 promises that an answer comes.
func (l *httpLane) awaitElsewhere(ctx context.Context, c *pendingRequest, status int) response {
	if status != http.StatusAccepted {
		bounded, cancel := context.WithTimeout(ctx, elsewhereWithin)
		defer cancel()
		ctx = bounded
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	l.server.Flights.Go(func() {
		defer end()
		<-l.closed
	})
	l.listen(life)
	select {
	case <-ctx.Done():
	case <-l.noStream:
	case <-l.closed:
	}
	return endedFailure(c, io.ErrUnexpectedEOF)
}
