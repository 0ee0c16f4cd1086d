package upstream

import (
	"context"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
)

// await sends a request of the hub's own, and waits for its answer. When ctx ends first, the request is cancelled and
// the answer is ctx's error.
func (s *session) await(ctx context.Context, method string, params []byte) (a response) {
	if s.group.observe != nil {
		end := s.group.observe(ctx, s.cfg.ID, method)
		defer func() { end(a.err) }()
	}
	c := newLaneCall(s.ids.Add(1), &tool.Request{Method: method}, params)
	s.lane.send(ctx, c)
	for {
		select {
		case <-c.ready:
			if done := c.take().done; done != nil {
				done.room.Free() // what the hub asks for itself holds none
				return s.passable(*done)
			}
		case <-ctx.Done():
			s.withdraw(ctx, c, "timeout")
			return response{err: ctx.Err()}
		}
	}
}

// How long a call waits for the answer to what its server asks at first, and how long for the
// server to take that in: it looks roots up on the disk, beside calls.
const (
	questionPatience = 3 * time.Second
	takeInTime       = 500 * time.Millisecond
)

// wait sends c and returns its answer, or cancels it when a limit is reached, the caller goes, the
// hub stops, or c must end. Meanwhile it puts what the server asks to the client.
func (s *session) wait(ctx context.Context, c *pendingRequest, limits *callLimits) response {
	if limits.began.IsZero() {
		limits.began = time.Now()
	}
	wasHeld := false
	var goes <-chan time.Time // when c is sent; nil once it was
	if wait := s.asked.begin(c); wait > 0 {
		goes = time.After(wait)
	} else {
		s.lane.send(ctx, c)
	}
	defer c.answering.Wait()
	defer s.asked.end(c)
	timer := time.NewTimer(limits.left(false))
	defer timer.Stop()
	for {
		select {
		case <-c.ready:
			got := c.take()
			if got.done != nil {
				return *got.done
			}
			if goes != nil && !got.held {
				goes = time.After(takeInTime)
			}
			for _, q := range got.asked {
				s.asked.ask(ctx, q)
			}
			if got.held != wasHeld || got.progressed {
				wasHeld = got.held
				timer.Reset(limits.left(wasHeld))
			}
		case <-goes:
			goes = nil
			s.lane.send(ctx, c)
		case <-timer.C:
			if left := limits.left(true); c.isHeld() && left > 0 {
				timer.Reset(left)
				continue
			}
			at := time.Now()
			finished := s.withdrawAndSettle(ctx, c, "timeout")
			return response{err: s.late(c, *limits, at, finished), silent: !finished &&
				time.Since(limits.began) < limits.most}
		case <-ctx.Done():
			return response{err: ended(ctx, c, s.withdrawAndSettle(ctx, c, reasonOf(ctx)))}
		case <-c.until:
			s.withdraw(ctx, c, "renewed")
			return response{err: errRetired}
		case <-s.stopping:
			s.withdraw(ctx, c, "the client is stopping")
			return endedFailure(c, transport.ErrClosed)
		}
	}
}
