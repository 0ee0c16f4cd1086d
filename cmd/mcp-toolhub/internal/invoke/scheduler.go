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

// ServerLoad is a copy of what the scheduler knows of one server.
type ServerLoad struct {
	Running int
	Queued  int
	Calls   int64
	Errors  int64         // calls that failed; those that the client gave up are none
	Waited  time.Duration // in queues, of all calls together
	P50     time.Duration // of the execution of calls, without their time in the queue; within a factor of 1.5
	P95     time.Duration
}

// scheduler bounds the calls that each server runs at the same time. Servers share nothing: a slow one holds up only its own
// calls. The callers of one server take turns: one with a thousand calls does not keep another waiting for all of them.
type scheduler struct {
	limits func(server string) Limits

	mu     sync.Mutex
	queues map[string]*serverQueue
}

// serverQueue holds the running and waiting calls of one server.
type serverQueue struct {
	mu      sync.Mutex
	running int
	queued  int
	turn    []*callerQueue // of callers with waiting calls, in the order of their turns
	load    ServerLoad
	latency [64]int64 // calls by how long they took: see bucket
}

// caller is who takes turns with others at a server.
type caller struct{ door, name, session string }

// place is what a running call holds of its server: one of its places. The zero value is none.
type place struct {
	scheduler *scheduler
	server    string
	queue     *serverQueue
}

// leave gives the place back. took says how long the call ran, failed whether it failed.
func (p *place) leave(took time.Duration, failed bool) {
	p.queue.leave(p.scheduler.limits(p.server).withDefaults(), took, failed)
}

// callerQueue holds the waiting calls of one caller, first come first served. A call's channel is closed when it is admitted.
type callerQueue struct {
	caller  caller
	waiting []chan struct{}
}

func newScheduler(limits func(string) Limits) *scheduler {
	if limits == nil {
		limits = func(string) Limits { return Limits{} }
	}
	return &scheduler{limits: limits, queues: make(map[string]*serverQueue)}
}

func (s *scheduler) queue(server string) *serverQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues[server] == nil {
		s.queues[server] = &serverQueue{}
	}
	return s.queues[server]
}

// enter waits until a call of by may go to server. Its place is given back when it has ended.
func (s *scheduler) enter(ctx context.Context, server string, by caller) (place, error) {
	q := s.queue(server)
	limits := s.limits(server).withDefaults()
	entered := place{s, server, q}
	q.mu.Lock()
	if q.running < limits.MaxParallel && q.queued == 0 {
		q.running++
		q.mu.Unlock()
		return entered, nil
	}
	if q.queued >= limits.MaxQueued {
		q.mu.Unlock()
		return place{}, &tool.Failure{Class: tool.ClassRateLimited, Code: "queue_full", RetryAfter: time.Second, Message: fmt.Sprintf(
			"%d calls to server %q are waiting already: try again in a moment, or raise its max_parallel", limits.MaxQueued, server)}
	}
	admitted := q.join(by)
	q.mu.Unlock()
	began := time.Now()
	select {
	case <-admitted:
		q.mu.Lock()
		defer q.mu.Unlock()
		q.load.Waited += time.Since(began)
		return entered, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-admitted: // at the same moment: the place goes to the next one
		q.running--
		q.admit(limits)
	default:
		q.giveUp(by, admitted)
	}
	return place{}, &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled while it waited for its turn"}
}

// join puts a call of by at the end of the caller's line. q.mu is held.
func (q *serverQueue) join(by caller) (admitted chan struct{}) {
	admitted = make(chan struct{})
	i := q.find(by)
	if i < 0 {
		i = len(q.turn)
		q.turn = append(q.turn, &callerQueue{caller: by})
	}
	q.turn[i].waiting = append(q.turn[i].waiting, admitted)
	q.queued++
	return admitted
}

// giveUp takes a waiting call of by out of its line. q.mu is held.
func (q *serverQueue) giveUp(by caller, admitted chan struct{}) {
	i := q.find(by)
	l := q.turn[i]
	l.waiting = slices.DeleteFunc(l.waiting, func(c chan struct{}) bool { return c == admitted })
	q.queued--
	if len(l.waiting) == 0 {
		q.turn = slices.Delete(q.turn, i, i+1)
	}
}

// find returns the index of a caller in turn; -1 where none of its calls waits. q.mu is held.
func (q *serverQueue) find(by caller) int {
	return slices.IndexFunc(q.turn, func(l *callerQueue) bool { return l.caller == by })
}

// admit lets waiting calls in as long as there is room. q.mu is held.
func (q *serverQueue) admit(limits Limits) {
	for q.running < limits.MaxParallel && len(q.turn) > 0 {
		l := q.turn[0]
		q.turn = q.turn[1:]
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		if len(l.waiting) > 0 {
			q.turn = append(q.turn, l)
		}
		q.queued--
		q.running++
	}
}

// leave ends a call and lets the next one in.
func (q *serverQueue) leave(limits Limits, took time.Duration, failed bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running--
	q.load.Calls++
	if failed {
		q.load.Errors++
	}
	q.latency[bucket(took)]++
	q.admit(limits)
}

// bucket returns the index of d's bucket. There are two for each power of two of microseconds.
func bucket(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 1))
	exp := bits.Len64(us) - 1
	half := 0
	if exp > 0 && us&(1<<(exp-1)) != 0 {
		half = 1
	}
	return min(2*exp+half, 63)
}

// bucketTop returns the longest duration of bucket i.
func bucketTop(i int) time.Duration {
	base := time.Microsecond << (i / 2)
	if i%2 == 0 {
		return base + base/2
	}
	return 2 * base
}

// percentile returns the latency that a share of the calls did not exceed. q.mu is held.
func (q *serverQueue) percentile(share float64) time.Duration {
	if q.load.Calls == 0 {
		return 0
	}
	want, seen := int64(share*float64(q.load.Calls)), int64(0)
	for i, n := range q.latency {
		if seen += n; seen > want || seen == q.load.Calls {
			return bucketTop(i)
		}
	}
	return 0
}

// load returns the load of server.
func (s *scheduler) load(server string) ServerLoad {
	q := s.queue(server)
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.load
	l.Running, l.Queued = q.running, q.queued
	l.P50, l.P95 = q.percentile(0.5), q.percentile(0.95)
	return l
}
