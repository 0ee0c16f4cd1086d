package invoke

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Limits bound the calls of one server. Zero means the default.
type Limits struct {
	MaxParallel int // calls executing at the same time; default 100
	MaxQueued   int // calls waiting for one of those places; default 1000

	// each client session has a connection of its own: MaxParallel holds for each, and they share
	// no lock
	PerSession bool
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

// scheduler decides when calls run. Servers share nothing: a slow one holds up only its own calls.
// The callers of one connection take turns: one with a thousand calls does not keep another waiting
// for all of them. Calls that conflict (see claim) run in the order in which they came.
type scheduler struct {
	limits func(server string) Limits

	mu     sync.Mutex
	queues map[string]*serverQueue
}

// serverQueue holds the running and waiting calls of one server.
type serverQueue struct {
	mu      sync.Mutex
	queued  int
	came    int64            // calls so far: the number of the last one
	lanes   map[string]*lane // by the key of the session; "" is the connection that all share
	load    ServerLoad
	latency [64]int64 // calls by how long they took: see bucket
}

// caller is who takes turns with others at a server.
type caller struct{ door, name, session string }

// anySession stands for c with all its sessions and runs.
func (c caller) anySession() caller { return caller{door: c.door, name: c.name} }

// place is what a call holds of its server: a place in its queue, and then one of its connection's
// places and the locks of its claim. The zero value is none. It does not move while it is held. The
// queue's mutex guards it.
type place struct {
	scheduler *scheduler
	server    string
	session   string // key of the lane
	queue     *serverQueue
	by        caller
	claim     claim
	came      int64         // its number in the order of arrival
	admitted  chan struct{} // closed when the call may run, or was dropped; nil where it never waited
	dropped   bool          // it had to make room for another caller's call
	prev, nxt *place        // among those that run

	unlocked bool          // the call waits for input and holds no lock
	relocks  chan struct{} // closed when it has its locks again; nil where it does not wait for them
}

// leave gives the place back. took says how long the call ran, failed whether it failed.
func (p *place) leave(took time.Duration, failed bool) {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.load.Calls++
	if failed {
		q.load.Errors++
	}
	q.latency[bucket(took)]++
	p.vacate()
}

// vacate gives the place back and lets others in. The queue's mutex is held.
func (p *place) vacate() {
	q := p.queue
	l := q.lanes[p.session]
	l.stopRelocking(p)
	l.remove(p)
	q.queued -= l.admit(p.scheduler.limits(p.server).withDefaults().MaxParallel)
	q.tidy(p.session, l)
}

// unlock gives the locks of a running call back for as long as it waits for input. It keeps its place.
func (p *place) unlock() {
	q := p.queue
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[p.session]
	l.stopRelocking(p)
	p.unlocked = true
	q.queued -= l.admit(p.scheduler.limits(p.server).withDefaults().MaxParallel)
}

// relock takes the locks again. It returns nil, or a channel that is closed when the call has them.
func (p *place) relock() <-chan struct{} {
	q := p.queue
	if q == nil {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[p.session]
	p.relocks = make(chan struct{})
	l.back = append(l.back, p)
	wait := p.relocks
	l.relockAll()
	return wait
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
		s.queues[server] = &serverQueue{lanes: map[string]*lane{"": {}}}
	}
	return s.queues[server]
}

// Waiting is reported after queuedAfter, and then every queuedEvery.
const (
	queuedAfter = 200 * time.Millisecond
	queuedEvery = 15 * time.Second
)

// enter lets the call of p in, or puts it into the queue: then it waits with await. p says whose
// call it is, at which server, and what it claims; its other fields are set here. The place is
// given back with leave, and none is held where there is an error.
func (s *scheduler) enter(p *place) (waits bool, err error) {
	q := s.queue(p.server)
	limits := s.limits(p.server).withDefaults()
	p.scheduler, p.queue = s, q
	if !limits.PerSession {
		p.session = ""
	}
	q.mu.Lock()
	l := q.lanes[p.session]
	if l == nil {
		l = &lane{}
		q.lanes[p.session] = l
	}
	q.came++
	p.came = q.came
	if l.count < limits.MaxParallel && l.isFree(p) {
		l.add(p)
		l.start(p)
		q.mu.Unlock()
		return false, nil
	}
	if q.queued >= limits.MaxQueued {
		if !q.makeRoom(p.by, limits) {
			q.tidy(p.session, l)
			q.mu.Unlock()
			server := p.server
			*p = place{}
			return false, full(server, limits)
		}
		if l.count < limits.MaxParallel && l.isFree(p) { // of the call that made room
			l.add(p)
			l.start(p)
			q.mu.Unlock()
			return false, nil
		}
	}
	q.queued++
	l.add(p)
	l.join(p)
	q.mu.Unlock()
	return true, nil
}

func full(server string, limits Limits) error {
	return &tool.Failure{Class: tool.ClassRateLimited, Code: "queue_full", RetryAfter: time.Second,
		Message: fmt.Sprintf(
			"%d calls to server %q are waiting already: try again in a moment, or raise its max_parallel",
			limits.MaxQueued, server)}
}

// makeRoom drops a call of a full queue for one of by: the newest one of whoever has the most, with
// all sessions and runs together. It returns false where nobody has more than by would have then.
// q.mu is held.
func (q *serverQueue) makeRoom(by caller, limits Limits) bool {
	waiting := make(map[caller]int)
	var most caller
	for _, l := range q.lanes {
		for _, c := range l.turn {
			whose := c.caller.anySession()
			if waiting[whose] += len(c.waiting); waiting[whose] > waiting[most] {
				most = whose
			}
		}
	}
	if waiting[most] < waiting[by.anySession()]+2 {
		return false
	}
	var in *lane
	var p *place
	for _, l := range q.lanes {
		for _, c := range l.turn {
			newest := c.waiting[len(c.waiting)-1]
			if c.caller.anySession() == most && (p == nil || newest.came > p.came) {
				in, p = l, newest
			}
		}
	}
	in.giveUp(p)
	in.remove(p)
	p.dropped = true
	close(p.admitted)
	q.queued -= 1 + in.admit(limits.MaxParallel)
	return true
}

// await waits until a queued call is admitted, or its caller gives it up. report is called for a
// call that waits for long, with 1, 2 and so on.
func (s *scheduler) await(ctx context.Context, p *place, report func(n int)) error {
	began := time.Now()
	timer := time.NewTimer(queuedAfter)
	defer timer.Stop()
	for n := 1; ; n++ {
		select {
		case <-p.admitted:
			p.queue.waited(time.Since(began))
			if p.dropped {
				server := p.server
				*p = place{}
				return full(server, s.limits(server).withDefaults())
			}
			return nil
		case <-timer.C:
			report(n)
			timer.Reset(queuedEvery)
		case <-ctx.Done():
			return s.giveUp(p)
		}
	}
}

func (q *serverQueue) waited(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.load.Waited += d
}

// giveUp takes a call out of the queue, and says so.
func (s *scheduler) giveUp(p *place) error {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-p.admitted: // at the same moment: the place goes to the next one
	default:
		q.lanes[p.session].giveUp(p)
		q.queued--
	}
	if !p.dropped {
		p.vacate()
	}
	*p = place{}
	return &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled while it waited for its turn"}
}

// tidy forgets the lane of a session that has no calls. q.mu is held.
func (q *serverQueue) tidy(session string, l *lane) {
	if session != "" && l.first == nil && len(l.turn) == 0 {
		delete(q.lanes, session)
	}
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
	l.Queued = q.queued
	for _, one := range q.lanes {
		l.Running += one.count
	}
	l.P50, l.P95 = q.percentile(0.5), q.percentile(0.95)
	return l
}
