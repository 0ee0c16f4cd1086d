package invoke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func narrow(parallel, queued int) func(string) Limits {
	return func(string) Limits { return Limits{MaxParallel: parallel, MaxQueued: queued} }
}

func TestTurnsGoRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(narrow(1, 100))
		held, err := s.enter(t.Context(), "s", by("holder"))
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		queue := func(caller string, calls int) {
			for i := range calls {
				go func() {
					held, err := s.enter(t.Context(), "s", by(caller))
					if err != nil {
						t.Error(err)
						return
					}
					order = append(order, fmt.Sprint(caller, i)) // one at a time: the gate is one wide
					held.leave(time.Millisecond, false)
				}()
				synctest.Wait()
			}
		}
		queue("greedy", 3)
		queue("modest", 1)
		if l := s.load("s"); l.Queued != 4 || l.Running != 1 {
			t.Errorf("load %+v", l)
		}
		held.leave(time.Millisecond, false)
		synctest.Wait()
		if want := []string{"greedy0", "modest0", "greedy1", "greedy2"}; !slices.Equal(order, want) {
			t.Errorf("turns %v, want %v", order, want)
		}
		if l := s.load("s"); l.Queued != 0 || l.Running != 0 || l.Calls != 5 {
			t.Errorf("load %+v", l)
		}
	})
}

func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(narrow(1, 1))
		held, _ := s.enter(t.Context(), "slow", by("a"))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = s.enter(ctx, "slow", by("a")) }()
		synctest.Wait()
		_, err := s.enter(t.Context(), "slow", by("b"))
		var f *tool.Failure
		if !errors.As(err, &f) || f.Class != tool.ClassRateLimited || f.RetryAfter == 0 {
			t.Errorf("a call too many: %v", err)
		}
		if other, err := s.enter(t.Context(), "other", by("b")); err != nil {
			t.Errorf("another server is held up: %v", err)
		} else {
			other.leave(0, false)
		}
		cancel()
		synctest.Wait()
		if l := s.load("slow"); l.Queued != 0 || l.Running != 1 {
			t.Errorf("after the waiting call gave up: %+v", l)
		}
		held.leave(time.Second, true)
		if again, err := s.enter(t.Context(), "slow", by("b")); err != nil {
			t.Errorf("the place was not given back: %v", err)
		} else {
			again.leave(0, false)
		}
	})
}

func TestNothingIsLostWhenCallersGiveUp(t *testing.T) {
	t.Parallel()
	s := newScheduler(narrow(2, 1000))
	done := make(chan struct{})
	for i := range 200 {
		go func() {
			defer func() { done <- struct{}{} }()
			ctx, cancel := context.WithCancel(t.Context())
			if i%3 == 0 {
				go cancel()
			}
			defer cancel()
			if held, err := s.enter(ctx, "s", by(fmt.Sprint(i%7))); err == nil {
				held.leave(time.Microsecond, false)
			}
		}()
	}
	for range 200 {
		<-done
	}
	if l := s.load("s"); l.Running != 0 || l.Queued != 0 || len(s.queue("s").turn) != 0 {
		t.Errorf("left behind: %+v, %d lines", l, len(s.queue("s").turn))
	}
}

func TestLatency(t *testing.T) {
	t.Parallel()
	s := newScheduler(nil)
	for range 100 {
		held, _ := s.enter(t.Context(), "s", by("a"))
		held.leave(10*time.Millisecond, false)
	}
	for range 10 {
		held, _ := s.enter(t.Context(), "s", by("a"))
		held.leave(time.Second, true)
	}
	l := s.load("s")
	if l.P50 < 10*time.Millisecond || l.P50 > 15*time.Millisecond || l.P95 < time.Second || l.P95 > 1500*time.Millisecond || l.Errors != 10 {
		t.Errorf("load %+v", l)
	}
	for d := time.Microsecond; d < time.Hour; d = d*5/4 + 1 {
		if top := bucketTop(bucket(d)); top < d-time.Microsecond || top > 2*d {
			t.Errorf("%s is in the bucket up to %s", d, top)
		}
	}
}

// by is a caller of that name.
func by(name string) caller { return caller{name: name} }
