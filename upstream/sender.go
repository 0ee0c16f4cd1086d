package upstream

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// sender sends single requests over a session and waits for their answers.
type sender struct {
	*entry
	stopping <-chan struct{} // closed when calls in flight must end; then stop is called
	timers   sync.Pool       // of *time.Timer, stopped

	mu   sync.Mutex
	here map[*pendingRequest]struct{} // calls that their callers' goroutines exchange
}

// startTimer returns a timer that fires after d. stopTimer must follow.
func (s *sender) startTimer(d time.Duration) *time.Timer {
	if timer, ok := s.timers.Get().(*time.Timer); ok {
		timer.Reset(d)
		return timer
	}
	return time.NewTimer(d)
}

func (s *sender) stopTimer(timer *time.Timer) {
	timer.Stop()
	s.timers.Put(timer)
}

// stop ends the calls that their callers' goroutines exchange. The others look at stopping.
func (s *sender) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.here {
		c.abort()
	}
}

// enter has c ended by stop, until leave.
func (s *sender) enter(c *pendingRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.here == nil {
		s.here = make(map[*pendingRequest]struct{})
	}
	s.here[c] = struct{}{}
	if wait.IsClosed(s.stopping) {
		c.abort()
	}
}

func (s *sender) leave(c *pendingRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.here, c)
}

func ignoreProgress(tool.Progress) {}

// wait sends c and returns its answer, or cancels it when a limit is reached, the caller goes, or the hub stops. Meanwhile
// it puts what the server asks to the client.
func (s *sender) wait(
	ctx context.Context, sess *session, c *pendingRequest, progress func(tool.Progress), limits callLimits,
) response {
	limits.start()
	requests := sess.lane.serverRequests()
	if l, ok := sess.lane.(*httpLane); ok && l.isDirect(c) {
		c.attend = func() response { return s.attend(ctx, l, c, progress, limits) }
		requests.begin(c)
		defer requests.end(c)
		return s.exchange(ctx, l, c, limits)
	}
	requests.begin(c)
	defer requests.end(c)
	sess.lane.send(ctx, c)
	return s.attend(ctx, sess.lane, c, progress, limits)
}

// exchange exchanges c on the goroutine of its caller. Another one attends c from when there is more to take than the answer.
func (s *sender) exchange(ctx context.Context, l *httpLane, c *pendingRequest, limits callLimits) response {
	s.enter(c)
	defer s.leave(c)
	defer context.AfterFunc(ctx, c.abort)()
	deadline := time.Now().Add(limits.left(false))
	a := l.exchangeHere(ctx, c, deadline)
	if a.cut {
		switch {
		case ctx.Err() != nil:
			a = s.canceled(ctx, l, c)
		case wait.IsClosed(s.stopping):
			a = s.stopped(ctx, l, c)
		case !time.Now().Before(deadline):
			a = s.expired(ctx, l, c, limits)
		}
	}
	c.finish(a)
	if c.attended != nil { // nobody changes it any more
		return <-c.attended
	}
	return a
}

// attend waits for the answer of c, or cancels it when a limit is reached, the caller goes, or the hub stops.
func (s *sender) attend(
	ctx context.Context, l lane, c *pendingRequest, progress func(tool.Progress), limits callLimits,
) response {
	requests, wasHeld := l.serverRequests(), false
	var ask func(*serverRequest) // nil before the first question
	over := func() {}
	defer func() { over() }()
	timer := s.startTimer(limits.left(false))
	defer s.stopTimer(timer)
	for {
		select {
		case <-c.ready:
			questions, held := c.takeServerRequests() // first, so that what came before them goes before them
			reports, done := c.take()
			for _, r := range reports {
				if r.progress != nil {
					progress(tool.Progress{Params: r.progress, Message: s.redact.Text(rawjson.Text(r.progress, "message"))})
				} else {
					c.notify(r.note)
				}
			}
			if done != nil {
				return *done
			}
			for _, q := range questions {
				if ask == nil {
					ask, over = requests.asking(ctx)
				}
				ask(q)
			}
			if held != wasHeld || slices.ContainsFunc(reports, func(r report) bool { return r.progress != nil }) {
				wasHeld = held
				timer.Reset(limits.left(held))
			}
		case <-timer.C:
			if left := limits.left(true); c.isHeld() && left > 0 {
				timer.Reset(left)
				continue
			}
			return s.expired(ctx, l, c, limits)
		case <-ctx.Done():
			return s.canceled(ctx, l, c)
		case <-s.stopping:
			return s.stopped(ctx, l, c)
		}
	}
}

// expired cancels a call that has reached a limit.
func (s *sender) expired(ctx context.Context, l lane, c *pendingRequest, limits callLimits) response {
	l.cancel(ctx, c, "timeout")
	if c.sent() {
		return response{err: s.timedOut(orText(c.name, c.method), "may have taken effect: check before calling again", true, limits)}
	}
	return response{err: s.timedOut(orText(c.name, c.method), "had not been sent: nothing ran", false, limits)}
}

// canceled cancels a call whose caller has gone.
func (s *sender) canceled(ctx context.Context, l lane, c *pendingRequest) response {
	l.cancel(ctx, c, "canceled by the client")
	return response{err: canceled(ctx, c.sent())}
}

// stopped cancels a call because the server must stop.
func (s *sender) stopped(ctx context.Context, l lane, c *pendingRequest) response {
	l.cancel(ctx, c, "the client is stopping")
	return endedFailure(c, transport.ErrClosed)
}
