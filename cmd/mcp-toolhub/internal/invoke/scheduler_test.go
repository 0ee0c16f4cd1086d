package invoke

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

func narrow(parallel, queued int) func(string) Limits {
	return func(string) Limits { return Limits{MaxParallel: parallel, MaxQueued: queued} }
}

func TestTurnsGoRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(narrow(1, 100))
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

// TestPeopleTakeTurnsFirst has a person with many sessions before one with one session. Their calls alternate, and those of the sessions
// of one person, too.
func TestPeopleTakeTurnsFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(func(string) Limits { return Limits{MaxParallel: 1, MaxQueued: 100} })
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
				held.leave(time.Millisecond, false)
			}()
			synctest.Wait()
		}
		held.leave(time.Millisecond, false)
		synctest.Wait()
		if want := []string{"ann/1", "bob/1", "cid/1", "ann/2", "bob/1", "ann/3", "ann/1"}; !slices.Equal(order, want) {
			t.Errorf("turns %v, want %v", order, want)
		}
	})
}

func TestTheQueueIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(narrow(1, 1))
		held, _ := enter(t.Context(), s, "slow", "a")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = enter(ctx, s, "slow", "a") }()
		synctest.Wait()
		_, err := enter(t.Context(), s, "slow", "b")
		var f *tool.Failure
		if !errors.As(err, &f) || f.Class != tool.ClassRateLimited || f.RetryAfter == 0 {
			t.Errorf("a call too many: %v", err)
		}
		if other, err := enter(t.Context(), s, "other", "b"); err != nil {
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
		if again, err := enter(t.Context(), s, "slow", "b"); err != nil {
			t.Errorf("the place was not given back: %v", err)
		} else {
			again.leave(0, false)
		}
	})
}

// TestAFullQueueHasRoomForEverybody: who fills a queue keeps nobody out of it. The newest call of the caller with the most makes room for
// one of a caller with fewer.
func TestAFullQueueHasRoomForEverybody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(narrow(1, 4))
		held, _ := enter(t.Context(), s, "s", "a")
		type end struct {
			by  string
			n   int
			err error
		}
		ended := make(chan end, 20)
		come := func(by string, n int) {
			go func() {
				p, err := enter(t.Context(), s, "s", by)
				ended <- end{by, n, err}
				if err == nil {
					p.leave(0, false)
				}
			}()
			synctest.Wait()
		}
		for n := range 5 {
			come(fmt.Sprint("a/", n%3), n) // sessions do not make more of a caller
		}
		come("b", 0)
		come("b", 1)
		come("b", 2)
		come("c", 0)
		var dropped []string
		for range 5 {
			e := <-ended
			var f *tool.Failure
			if !errors.As(e.err, &f) || f.Code != "queue_full" {
				t.Fatalf("%s %d: %v", e.by, e.n, e.err)
			}
			dropped = append(dropped, fmt.Sprint(e.by[:1], e.n))
		}
		if got := strings.Join(dropped, " "); got != "a4 a3 a2 b2 a1" {
			t.Errorf("dropped: %s", got)
		}
		if l := s.load("s"); l.Queued != 4 {
			t.Errorf("load %+v", l)
		}
		held.leave(0, false)
		for range 4 {
			if e := <-ended; e.err != nil {
				t.Errorf("%s %d: %v", e.by, e.n, e.err)
			}
		}
		synctest.Wait()
		if l := s.load("s"); l.Queued != 0 || l.Running != 0 || len(s.queue("s").lanes[""].turn) != 0 {
			t.Errorf("left behind: %+v", l)
		}
	})
}

// TestACallThatMadeRoomHoldsUpNobody: the call for which another one was dropped runs at once where it was that one alone that stood in its way.
func TestACallThatMadeRoomHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScheduler(narrow(9, 2))
		write := func(paths ...string) claim {
			c := claim{mode: facts.ConcurrencyByTarget}
			for _, path := range paths {
				c.targets = append(c.targets, target.Target{Kind: target.Path, Resolved: path, Write: true})
			}
			return c
		}
		held, err := enterWith(t.Context(), s, "s", "a", write("/a"))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = enterWith(t.Context(), s, "s", "a", write("/a")) }()
		synctest.Wait()
		go func() { _, _ = enterWith(t.Context(), s, "s", "a", write("/a", "/c")) }()
		synctest.Wait()
		began := time.Now()
		time.AfterFunc(time.Hour, func() { held.leave(0, false) })
		if p, err := enterWith(t.Context(), s, "s", "b", write("/c")); err != nil || time.Since(began) > 0 {
			t.Errorf("the call has waited for %v, %v", time.Since(began), err)
		} else {
			p.leave(0, false)
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
	s := newScheduler(narrow(2, queued))
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
				held.leave(time.Microsecond, false)
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

func TestLatency(t *testing.T) {
	t.Parallel()
	s := newScheduler(nil)
	for range 100 {
		held, _ := enter(t.Context(), s, "s", "a")
		held.leave(10*time.Millisecond, false)
	}
	for range 10 {
		held, _ := enter(t.Context(), s, "s", "a")
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
