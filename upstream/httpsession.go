package upstream

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
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
	if a.err == nil || c.isGreeting() || l.session == "" || c.method == methodPing ||
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
	ping := await(ctx, l, l.newPing())
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
	if !l.works.Load() || l.session == "" {
		return ctx
	}
	return transport.KeepToken(ctx)
}

// isLost reports whether resp refuses the session and not the credentials, though it says HTTP 401: the same were good
// before, and are still good for a new session.
func (l *httpLane) isLost(ctx context.Context, resp *http.Response) bool {
	if resp.StatusCode != http.StatusUnauthorized || !l.works.Load() || l.session == "" {
		return false
	}
	l.checking.Lock()
	defer l.checking.Unlock()
	used := resp.Request.Header.Get("Authorization")
	if l.isOver || l.server.HasOther(ctx, used) {
		return l.isOver
	}
	fresh := newHTTPLane(ctx, l.entry, l.server, newSession(), l.notifications)
	fresh.streamFirst.Store(l.streamFirst.Load())
	limited, cancel := context.WithTimeout(ctx, l.cfg.Timeouts.Connect)
	defer cancel()
	a := await(limited, fresh, newLaneCall(l.nextID(), methodInitialize, l.greeting()))
	l.background.Go(func() { fresh.close(context.WithoutCancel(ctx), l.ended) })
	l.isOver = a.status != http.StatusUnauthorized && a.status != http.StatusForbidden && !l.server.HasOther(ctx, used)
	return l.isOver
}
