package upstream

import (
	"context"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

// sender sends single requests over a session and waits for their answers.
type sender struct {
	*entry
	stopping <-chan struct{} // closed when calls in flight must end
}

// How long a call waits for the answer to what its server asks at first, and how long for the server to take that in: it
// looks roots up on the disk, beside calls.
const (
	questionPatience = 3 * time.Second
	takeInTime       = 500 * time.Millisecond
)

func ignoreProgress(tool.Progress) {}

// wait sends c and returns its answer, or cancels it when a limit is reached, the caller goes, or
// the hub stops. Meanwhile it puts what the server asks to the client.
func (s *sender) wait(
	ctx context.Context, sess *session, c *pendingRequest, progress func(tool.Progress), limits callLimits,
) response {
	limits.start()
	l := sess.lane
	requests, wasHeld := l.serverRequests(), false
	var goes <-chan time.Time // when c is sent; nil once it was
	if wait := requests.begin(c); wait > 0 {
		goes = time.After(wait)
	} else {
		l.send(ctx, c)
	}
	defer requests.end(c)
	var ask func(*serverRequest) // nil before the first question
	over := func() {}
	defer func() { over() }()
	timer := time.NewTimer(limits.left(false))
	defer timer.Stop()
	for {
		select {
		case <-c.ready:
			questions, held := c.takeServerRequests() // first, so that what came before them goes before them
			reports, done := c.take()
			for _, r := range reports {
				if r.progress != nil {
					progress(tool.Progress{Params: r.progress,
						Message: s.redact.Text(rawjson.Text(r.progress, "message"))})
				} else {
					c.notify(r.note)
				}
			}
			if done != nil {
				return *done
			}
			if len(reports)+len(questions) > 0 {
				sess.spoke()
			}
			if goes != nil && !held {
				goes = time.After(takeInTime)
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
		case <-goes:
			goes = nil
			l.send(ctx, c)
		case <-timer.C:
			if left := limits.left(true); c.isHeld() && left > 0 {
				timer.Reset(left)
				continue
			}
			at := time.Now()
			finished := l.withdraw(ctx, c, "timeout").settle(c)
			if finished {
				sess.spoke()
			}
			return response{err: s.late(c, limits, at, finished), silent: !finished &&
				time.Since(limits.began) < limits.most}
		case <-ctx.Done():
			return response{err: ended(ctx, c, l.withdraw(ctx, c, reasonOf(ctx)).settle(c))}
		case <-s.stopping:
			l.withdraw(ctx, c, "the client is stopping").over()
			return endedFailure(c, transport.ErrClosed)
		}
	}
}
