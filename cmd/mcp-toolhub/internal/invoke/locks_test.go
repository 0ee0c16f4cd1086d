package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
)

// file is a claim on a path: of a write, or of a safe read.
func file(path string, write bool) claim {
	mode := facts.ConcurrencySafe
	if write {
		mode = facts.ConcurrencyByTarget
	}
	return claimOf(mode, []target.Target{{Kind: target.Path, Resolved: path, Write: write}})
}

// on is a claim of a write to an address, or to a whole host.
func on(address, host string) claim {
	return claimOf(facts.ConcurrencyByTarget, []target.Target{{Kind: target.URL, Resolved: address, Host: host, Write: true}})
}

// TestWhichCallsConflict holds the rules of claim.
func TestWhichCallsConflict(t *testing.T) {
	t.Parallel()
	unknown, read, alone := claim{mode: facts.ConcurrencyByTarget}, claim{mode: facts.ConcurrencySafe}, claim{mode: facts.ConcurrencyExclusive}
	faulty := claimOf(facts.ConcurrencyByTarget, []target.Target{{Kind: target.Path, Resolved: "/a", Fault: "odd", Write: true}})
	for _, c := range []struct {
		name         string
		a, b         claim
		same, others bool // whether they conflict as calls of one caller, and of two
	}{
		{"two reads", read, read, false, false},
		{"reads of one file", file("/a", false), file("/a", false), false, false},
		{"writes of one file", file("/a", true), file("/a", true), true, true},
		{"writes of two files", file("/a", true), file("/b", true), false, false},
		{"a write and a read of one file", file("/a", true), file("/a", false), true, true},
		{"a directory and a file in it", file("/repo", true), file("/repo/a", false), true, true},
		{"names that begin alike", file("/repo", true), file("/repo2", true), false, false},
		{"the top and a file", file("/", true), file("/a", true), true, true},
		{"unknown targets", unknown, unknown, true, false},
		{"unknown targets and a read", unknown, read, true, false},
		{"unknown targets and a file", unknown, file("/a", true), true, false},
		{"a target with a fault is not known", faulty, file("/b", true), true, false},
		{"alone at the server", alone, read, true, true},
		{"a host and an address on it", on("ex.com", "ex.com"), on("https://ex.com/x", "ex.com"), true, true},
		{"a host and its port", on("ex.com", "ex.com"), on("ex.com:443", "ex.com"), true, true},
		{"two addresses on a host", on("https://ex.com/x", "ex.com"), on("https://ex.com/y", "ex.com"), false, false},
		{"two hosts", on("ex.com", "ex.com"), on("ex.org", "ex.org"), false, false},
		{"a path and an address", file("/a", true), claimOf(facts.ConcurrencyByTarget, []target.Target{{Kind: target.URL, Resolved: "/a", Write: true}}), false, false},
	} {
		for _, by := range []string{"one", "two"} {
			a, b := &place{by: caller{name: "one"}, claim: c.a}, &place{by: caller{name: by}, claim: c.b}
			want := c.others
			if by == "one" {
				want = c.same
			}
			if a.conflicts(b) != want || b.conflicts(a) != want {
				t.Errorf("%s, callers one and %s: conflict %t and %t, want %t", c.name, by, a.conflicts(b), b.conflicts(a), want)
			}
		}
	}
}

// course runs calls that take a minute each, in the order in which they come, and notes when they ran.
type course struct {
	t     *testing.T
	s     *scheduler
	began time.Time
	mu    sync.Mutex
	log   []string // name, and the minutes since the beginning at which it started
}

func (c *course) call(name, by string, what claim) {
	go func() {
		p, err := enterWith(c.t.Context(), c.s, "s", by, what)
		if err != nil {
			c.t.Error(err)
			return
		}
		c.mu.Lock()
		c.log = append(c.log, fmt.Sprintf("%s@%d", name, int(time.Since(c.began).Minutes())))
		c.mu.Unlock()
		time.Sleep(time.Minute)
		p.leave(false)
	}()
	synctest.Wait()
}

func (c *course) want(want ...string) {
	c.t.Helper()
	time.Sleep(time.Hour)
	synctest.Wait()
	if slices.Sort(c.log); !slices.Equal(c.log, want) {
		c.t.Errorf("ran %v, want %v", c.log, want)
	}
	if l := c.s.lanes(); l != 1 {
		c.t.Errorf("%d lanes are left", l)
	}
}

func (s *scheduler) lanes() int {
	q := s.queue("s")
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.lanes)
}

func onCourse(t *testing.T, l Limits, run func(*course)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		run(&course{t: t, s: newScheduler(l), began: time.Now()})
	})
}

// TestReadsWaitForWritesBeforeThem: arrival order holds between calls that conflict, and no other call waits.
func TestReadsWaitForWritesBeforeThem(t *testing.T) {
	t.Parallel()
	onCourse(t, Limits{}, func(c *course) {
		c.call("1read", "ann", file("/f", false))
		c.call("2read", "bob", file("/f", false))
		c.call("3write", "ann", file("/f", true))
		c.call("4read", "bob", file("/f", false))
		c.call("5read", "ann", file("/f", false))
		c.call("6other", "ann", file("/g", true))
		c.call("7unknown", "cid", claim{mode: facts.ConcurrencyByTarget})
		c.want("1read@0", "2read@0", "3write@1", "4read@2", "5read@2", "6other@0", "7unknown@0")
	})
}

// TestUnknownTargetsKeepTheCallersOrder: and do not hold up other callers.
func TestUnknownTargetsKeepTheCallersOrder(t *testing.T) {
	t.Parallel()
	onCourse(t, Limits{}, func(c *course) {
		for _, by := range []string{"ann", "bob"} {
			c.call(by+"1", by, claim{mode: facts.ConcurrencyByTarget})
			c.call(by+"2", by, claim{mode: facts.ConcurrencyByTarget})
			c.call(by+"3", by, claim{mode: facts.ConcurrencySafe})
			c.call(by+"4", by, claim{mode: facts.ConcurrencySafe})
		}
		c.want("ann1@0", "ann2@1", "ann3@2", "ann4@2", "bob1@0", "bob2@1", "bob3@2", "bob4@2")
	})
}

// TestATaskHoldsNoLock: a call that has become a task gives its locks back when its server has answered with the task.
func TestATaskHoldsNoLock(t *testing.T) {
	t.Parallel()
	b := newBench(t, "", func(context.Context, *tool.Execution) (tool.Reply, error) {
		return tool.Reply{Result: json.RawMessage(`{"task":{"taskId":"t1","status":"working"}}`), Task: "t1"}, nil
	})
	b.says(t, facts.Override{Concurrency: facts.ConcurrencyExclusive})
	for range 2 {
		if o := b.call(t.Context(), "mcp.s.t", `{"n":1}`); o.Task == nil {
			t.Fatalf("%s: %s", o.Status, o.Result)
		}
	}
}

// TestNobodyStarves: a call that wants the server alone runs though readers come all the time, and so does everybody else.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	onCourse(t, Limits{MaxParallel: 2}, func(c *course) {
		c.call("1read", "ann", claim{mode: facts.ConcurrencySafe})
		c.call("2alone", "bob", claim{mode: facts.ConcurrencyExclusive})
		for n := range 4 {
			c.call(fmt.Sprintf("3read%d", n), "ann", claim{mode: facts.ConcurrencySafe})
		}
		c.want("1read@0", "2alone@1", "3read0@2", "3read1@2", "3read2@3", "3read3@3")
	})
}

// TestOrderUnder64Callers: the calls of each of 64 callers run one after the other in their order, at a server with fewer places.
func TestOrderUnder64Callers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := narrow(10, 1000)
		ran := make([][]int, 64)
		running, most := 0, 0
		for n := range 5 {
			for by := range ran {
				go func() {
					p, err := enterWith(t.Context(), s, "s", fmt.Sprint(by), claim{mode: facts.ConcurrencyByTarget})
					if err != nil {
						t.Error(err)
						return
					}
					s.mu.Lock()
					ran[by] = append(ran[by], n)
					running++
					most = max(most, running)
					s.mu.Unlock()
					time.Sleep(time.Second)
					s.mu.Lock()
					running--
					s.mu.Unlock()
					p.leave(false)
				}()
				synctest.Wait()
			}
		}
		began := time.Now()
		time.Sleep(time.Hour)
		synctest.Wait()
		for by, order := range ran {
			if !slices.Equal(order, []int{0, 1, 2, 3, 4}) {
				t.Errorf("caller %d: %v", by, order)
			}
		}
		if most != 10 || time.Since(began) < 32*time.Second {
			t.Errorf("%d ran at the same time", most)
		}
	})
}

// TestSessionsHaveTheirOwnLocks where each of them has its own connection.
func TestSessionsHaveTheirOwnLocks(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{true, false} {
		onCourse(t, Limits{MaxParallel: 1, PerSession: own}, func(c *course) {
			c.call("1ann", "ann", claim{mode: facts.ConcurrencyExclusive})
			c.call("2bob", "bob", claim{mode: facts.ConcurrencyExclusive})
			if own {
				c.want("1ann@0", "2bob@0")
			} else {
				c.want("1ann@0", "2bob@1")
			}
		})
	}
}

// TestLocksAreReleasedWhileACallWaitsForInput: another call runs meanwhile, and the one that waited goes on after it.
func TestLocksAreReleasedWhileACallWaitsForInput(t *testing.T) {
	t.Parallel()
	onCourse(t, Limits{}, func(c *course) {
		p, err := enterWith(c.t.Context(), c.s, "s", "ann", file("/f", true))
		if err != nil {
			t.Fatal(err)
		}
		c.call("write", "bob", file("/f", true))
		if len(c.log) != 0 {
			t.Errorf("%v ran beside a call with the same target", c.log)
		}
		time.Sleep(time.Minute)
		p.unlock()
		synctest.Wait()
		if !slices.Equal(c.log, []string{"write@1"}) {
			t.Errorf("while the first call waits: %v", c.log)
		}
		c.call("late", "bob", file("/f", true))
		<-p.relock()
		if at := time.Since(c.began); at != 2*time.Minute {
			t.Errorf("it has its locks again after %s", at)
		}
		if synctest.Wait(); len(c.log) != 1 {
			t.Errorf("%v: one that had not begun came first", c.log)
		}
		p.leave(false)
		c.want("late@2", "write@1")
	})
}

// TestAKilledClientLeavesTheQueue: whoever waits for its call goes on, and what it held while it waited for input is free.
func TestAKilledClientLeavesTheQueue(t *testing.T) {
	t.Parallel()
	onCourse(t, Limits{}, func(c *course) {
		c.call("1", "ann", file("/f", true))
		killed, kill := context.WithCancel(c.t.Context())
		go func() {
			if _, err := enterWith(killed, c.s, "s", "bob", claim{mode: facts.ConcurrencyExclusive}); err == nil {
				t.Error("a canceled call was admitted")
			}
		}()
		synctest.Wait()
		c.call("2", "cid", file("/g", true))
		if len(c.log) != 1 {
			t.Errorf("%v", c.log)
		}
		kill()
		synctest.Wait()
		if l := c.s.load("s"); l.Queued != 0 || l.Running != 2 {
			t.Errorf("after it was killed: %+v", l)
		}
		c.want("1@0", "2@0")
	})
}
