package invoke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

func narrow(parallel, queued int) *scheduler {
	s := newScheduler(Limits{MaxParallel: parallel})
	s.maxQueued = queued
	return s
}

func TestTurnsGoRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := narrow(1, 100)
		held, err := enter(t.Context(), s, "s", "holder")
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		queue := func(caller string, calls int) {
			for i := range calls {
				go func() {
					held, err := enter(t.Context(), s, "s", caller)
					if err != nil {
						t.Error(err)
						return
					}
					order = append(order, fmt.Sprint(caller, i)) // one at a time: the gate is one wide
					held.leave(false)
				}()
				synctest.Wait()
			}
		}
		queue("greedy", 3)
		queue("modest", 1)
		if l := s.load("s"); l.Queued != 4 || l.Running != 1 {
			t.Errorf("load %+v", l)
		}
		held.leave(false)
		synctest.Wait()
		if want := []string{"greedy0", "modest0", "greedy1", "greedy2"}; !slices.Equal(order, want) {
			t.Errorf("turns %v, want %v", order, want)
		}
		if l := s.load("s"); l.Queued != 0 || l.Running != 0 || l.Calls != 5 {
			t.Errorf("load %+v", l)
		}
	})
}

// TestPeopleTakeTurnsFirst has a person with many sessions before one with one session. Their calls alternate, and those of the sessions
// of one person, too.
func TestPeopleTakeTurnsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := narrow(1, 100)
		held, err := enter(t.Context(), s, "s", "holder")
		if err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, by := range []string{"ann/1", "ann/1", "ann/2", "ann/3", "bob/1", "bob/1", "cid/1"} {
			go func() {
				held, err := enter(t.Context(), s, "s", by)
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, by) // one at a time: the gate is one wide
				held.leave(false)
			}()
			synctest.Wait()
		}
		held.leave(false)
		synctest.Wait()
		if want := []string{"ann/1", "bob/1", "cid/1", "ann/2", "bob/1", "ann/3", "ann/1"}; !slices.Equal(order, want) {
			t.Errorf("turns %v, want %v", order, want)
		}
	})
}

func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := narrow(1, 1)
		held, _ := enter(t.Context(), s, "slow", "a")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = enter(ctx, s, "slow", "a") }()
		synctest.Wait()
		_, err := enter(t.Context(), s, "slow", "a")
		var f *tool.Failure
		if !errors.As(err, &f) || f.Class != tool.ClassRateLimited || f.RetryAfter == 0 {
			t.Errorf("a call too many: %v", err)
		}
		if other, err := enter(t.Context(), s, "other", "b"); err != nil {
			t.Errorf("another server is held up: %v", err)
		} else {
			other.leave(false)
		}
		cancel()
		synctest.Wait()
		if l := s.load("slow"); l.Queued != 0 || l.Running != 1 {
			t.Errorf("after the waiting call gave up: %+v", l)
		}
		held.leave(true)
		if again, err := enter(t.Context(), s, "slow", "b"); err != nil {
			t.Errorf("the place was not given back: %v", err)
		} else {
			again.leave(false)
		}
	})
}

// TestAFullQueueHasRoomForEverybody: a caller that fills a queue keeps no other caller out of it, and sessions do not make more
// of a caller.
func TestAFullQueueHasRoomForEverybody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := narrow(1, 2)
		held, _ := enter(t.Context(), s, "s", "a")
		refused, ran := make(chan string, 20), make(chan string, 20)
		for _, by := range []string{"a/1", "a/2", "a/3", "b/1", "a/1", "b/1", "b/2", "c"} {
			go func() {
				p, err := enter(t.Context(), s, "s", by)
				var f *tool.Failure
				switch {
				case err == nil:
					ran <- by
					p.leave(false)
				case errors.As(err, &f) && f.Code == "queue_full":
					refused <- by
				default:
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		if len(refused) != 3 || <-refused != "a/3" || <-refused != "a/1" || <-refused != "b/2" {
			t.Error("other calls are refused than those that their callers have too many of")
		}
		if l := s.load("s"); l.Queued != 5 {
			t.Errorf("load %+v", l)
		}
		held.leave(false)
		synctest.Wait()
		if l := s.load("s"); len(ran) != 5 || l.Queued != 0 || l.Running != 0 || len(s.queue("s").lanes[""].turn) != 0 {
			t.Errorf("left behind: %+v", l)
		}
	})
}

func TestNothingIsLostWhenCallersGiveUp(t *testing.T) {
	t.Parallel()
	for _, queued := range []int{1000, 20} {
		nothingIsLost(t, queued)
	}
}

func nothingIsLost(t *testing.T, queued int) {
	t.Helper()
	s := narrow(2, queued)
	done := make(chan struct{})
	for i := range 200 {
		go func() {
			defer func() { done <- struct{}{} }()
			ctx, cancel := context.WithCancel(t.Context())
			if i%3 == 0 {
				go cancel()
			}
			defer cancel()
			if held, err := enter(ctx, s, "s", fmt.Sprint(i%7)); err == nil {
				held.leave(false)
			}
		}()
	}
	for range 200 {
		<-done
	}
	if l := s.load("s"); l.Running != 0 || l.Queued != 0 || len(s.queue("s").lanes[""].turn) != 0 {
		t.Errorf("left behind: %+v, %d lines", l, len(s.queue("s").lanes[""].turn))
	}
}

// enter is a safe call of that caller, and does not report that it waits.
func enter(ctx context.Context, s *scheduler, server, caller string) (*place, error) {
	return enterWith(ctx, s, server, caller, claim{mode: facts.ConcurrencySafe})
}

// enterWith enters a call of by: a name, or name/session.
func enterWith(ctx context.Context, s *scheduler, server, by string, c claim) (*place, error) {
	name, session, _ := strings.Cut(by, "/")
	p := &place{server: server, session: by, by: caller{name: name, session: session}, claim: c}
	waits, err := s.enter(p)
	if waits {
		err = s.await(ctx, p, func(int) {})
	}
	return p, err
}
