package invoke

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Limits bound the calls of one server. Zero means the default.
type Limits struct {
	MaxParallel int // calls executing at the same time; default 100
	MaxQueued   int // calls waiting for one of those places; default 1000
}

func (l Limits) withDefaults() Limits {
	if l.MaxParallel <= 0 {
		l.MaxParallel = 100
	}
	if l.MaxQueued <= 0 {
		l.MaxQueued = 1000
	}
	return l
}

// ServerLoad is what the scheduler knows of one server: a copy.
type ServerLoad struct {
	Running int
	Queued  int
	Calls   int64
	Errors  int64         // calls that failed; those that the client gave up are none
	Waited  time.Duration // in queues, of all calls together
	P50     time.Duration // of the execution of calls, without their time in the queue; within a factor of 1.5
	P95     time.Duration
}

// scheduler gives the calls of each server their turn. Servers have nothing in common, so a slow one holds up only calls
// to itself. Among the callers of one server turns go round, so that one with a thousand calls does not keep another
// with a single call waiting for all of them.
type scheduler struct {
	limits func(server string) Limits

	mu    sync.Mutex
	gates map[string]*entrance
}

// entrance is the way into one server.
type entrance struct {
	mu      sync.Mutex
	running int
	queued  int
	callers map[string]*line // with somebody waiting
	turn    []*line          // those lines, in the order of their turns
	load    ServerLoad
	latency [64]int64 // calls by how long they took: see bucket
}

// line are the calls of one caller that wait, first come first served.
type line struct {
	caller  string
	waiting []*ticket
}

// ticket is one waiting call. admitted is closed when it is its turn.
type ticket struct{ admitted chan struct{} }

func newScheduler(limits func(string) Limits) *scheduler {
	if limits == nil {
		limits = func(string) Limits { return Limits{} }
	}
	return &scheduler{limits: limits, gates: make(map[string]*entrance)}
}

func (s *scheduler) gate(server string) *entrance {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.gates[server]
	if !ok {
		g = &entrance{callers: make(map[string]*line)}
		s.gates[server] = g
	}
	return g
}

// enter waits until a call of caller may go to server. leave is called when it has ended; failed says how.
func (s *scheduler) enter(ctx context.Context, server, caller string) (leave func(took time.Duration, failed bool), err error) {
	g := s.gate(server)
	limits := s.limits(server).withDefaults()
	leave = func(took time.Duration, failed bool) { g.leave(s.limits(server).withDefaults(), took, failed) }
	g.mu.Lock()
	if g.running < limits.MaxParallel && g.queued == 0 {
		g.running++
		g.mu.Unlock()
		return leave, nil
	}
	if g.queued >= limits.MaxQueued {
		g.mu.Unlock()
		return nil, &tool.Failure{Class: tool.ClassRateLimited, Code: "queue_full", RetryAfter: time.Second, Message: fmt.Sprintf(
			"%d calls to server %q are waiting already: try again in a moment, or raise its max_parallel", limits.MaxQueued, server)}
	}
	t := g.join(caller)
	g.mu.Unlock()
	began := time.Now()
	select {
	case <-t.admitted:
		g.waited(time.Since(began))
		return leave, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-t.admitted: // at the same moment: the place goes to the next one
		g.running--
		g.admit(limits)
	default:
		g.giveUp(caller, t)
	}
	return nil, &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled while it waited for its turn"}
}

// join puts a call of caller at the end of the caller's line. g.mu is held.
func (g *entrance) join(caller string) *ticket {
	t := &ticket{admitted: make(chan struct{})}
	l, ok := g.callers[caller]
	if !ok {
		l = &line{caller: caller}
		g.callers[caller] = l
		g.turn = append(g.turn, l)
	}
	l.waiting = append(l.waiting, t)
	g.queued++
	return t
}

// giveUp takes a waiting call of caller out of its line. g.mu is held.
func (g *entrance) giveUp(caller string, t *ticket) {
	l := g.callers[caller]
	i := slices.Index(l.waiting, t)
	l.waiting = slices.Delete(l.waiting, i, i+1)
	g.queued--
	if len(l.waiting) == 0 {
		delete(g.callers, caller)
		i = slices.Index(g.turn, l)
		g.turn = slices.Delete(g.turn, i, i+1)
	}
}

// admit lets waiting calls in as long as there is room. g.mu is held.
func (g *entrance) admit(limits Limits) {
	for g.running < limits.MaxParallel && len(g.turn) > 0 {
		l := g.turn[0]
		g.turn = g.turn[1:]
		t := l.waiting[0]
		l.waiting = l.waiting[1:]
		if len(l.waiting) > 0 {
			g.turn = append(g.turn, l)
		} else {
			delete(g.callers, l.caller)
		}
		g.queued--
		g.running++
		close(t.admitted)
	}
}

func (g *entrance) waited(d time.Duration) {
	g.mu.Lock()
	g.load.Waited += d
	g.mu.Unlock()
}

// leave ends a call and lets the next one in.
func (g *entrance) leave(limits Limits, took time.Duration, failed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	g.load.Calls++
	if failed {
		g.load.Errors++
	}
	g.latency[bucket(took)]++
	g.admit(limits)
}

// bucket is the index of d's bucket: two for each power of two of microseconds.
func bucket(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 1))
	exp := bits.Len64(us) - 1
	half := 0
	if exp > 0 && us&(1<<(exp-1)) != 0 {
		half = 1
	}
	return min(2*exp+half, 63)
}

// bucketTop is the longest duration of bucket i.
func bucketTop(i int) time.Duration {
	base := time.Microsecond << (i / 2)
	if i%2 == 0 {
		return base + base/2
	}
	return 2 * base
}

// percentile is the latency that a share of the calls did not exceed. g.mu is held.
func (g *entrance) percentile(share float64) time.Duration {
	if g.load.Calls == 0 {
		return 0
	}
	want, seen := int64(share*float64(g.load.Calls)), int64(0)
	for i, n := range g.latency {
		if seen += n; seen > want || seen == g.load.Calls {
			return bucketTop(i)
		}
	}
	return 0
}

// load returns what is known of server.
func (s *scheduler) load(server string) ServerLoad {
	g := s.gate(server)
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.load
	l.Running, l.Queued = g.running, g.queued
	l.P50, l.P95 = g.percentile(0.5), g.percentile(0.95)
	return l
}
