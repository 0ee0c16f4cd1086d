package invoke

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// limiter says which limits a server has.
type limiter interface{ Limits(server string) Limits }

// Limits bound the calls of one server. Zero means the default.
type Limits struct {
	MaxParallel int // calls executing at the same time; default 100 (defaultParallel)

	// each client session has a connection of its own: MaxParallel holds for each, and they share
	// no lock
	PerSession bool
}

// ServerLoad is a copy of what the scheduler knows of one server.
type ServerLoad struct {
	Running int
	Queued  int
	Calls   int64
	Errors  int64 // calls that failed; those that the client gave up are none
}

const defaultParallel = 100

// maxQueued bounds the calls of one caller, with all its sessions and runs, that wait at one server.
const maxQueued = 1000

// scheduler decides when calls run. Servers share nothing: a slow one holds up only its own calls.
// The callers of one connection take turns: one with a thousand calls does not keep another waiting
// for all of them. Calls that conflict (see claim) run in the order in which they came.
type scheduler struct {
	limits    limiter
	maxQueued int

	mu     sync.Mutex
	queues map[string]*serverQueue
}

// serverQueue holds the running and waiting calls of one server.
type serverQueue struct {
	mu    sync.Mutex
	came  int64            // calls so far: the number of the last one
	lanes map[string]*lane // by the key of the session; "" is the connection that all share
	load  ServerLoad
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
	admitted  chan struct{} // closed when the call may run; nil where it never waited

	unlocked bool          // the call waits for input and holds no lock
	relocks  chan struct{} // closed when it has its locks again; nil where it does not wait for them
}

// leave gives the place back. failed says whether the call failed.
func (p *place) leave(failed bool) {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.load.Calls++
	if failed {
		q.load.Errors++
	}
	p.vacate()
}

// vacate gives the place back and lets others in. The queue's mutex is held.
func (p *place) vacate() {
	q := p.queue
	l := q.lanes[p.session]
	l.stopRelocking(p)
	l.running = slices.DeleteFunc(l.running, func(r *place) bool { return r == p })
	l.admit(p.scheduler.limits.Limits(p.server))
	if p.session != "" && len(l.running) == 0 && len(l.turn) == 0 { // the session has no calls
		delete(q.lanes, p.session)
	}
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
	l.admit(p.scheduler.limits.Limits(p.server))
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
	l.admit(p.scheduler.limits.Limits(p.server))
	return wait
}

func newScheduler(limits limiter) *scheduler {
	return &scheduler{limits: limits, maxQueued: maxQueued, queues: make(map[string]*serverQueue)}
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
	limits := s.limits.Limits(p.server)
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
	if len(l.running) < cmp.Or(limits.MaxParallel, defaultParallel) && l.isFree(p) {
		l.running = append(l.running, p)
		q.mu.Unlock()
		return false, nil
	}
	if q.waiting(p.by) >= s.maxQueued {
		q.mu.Unlock()
		server := p.server
		*p = place{}
		return false, &tool.Failure{Class: tool.ClassRateLimited, Code: "queue_full", RetryAfter: time.Second,
			Message: fmt.Sprintf("%d calls to server %q are waiting already: try again in a moment, or raise "+
				"its max_parallel", s.maxQueued, server)}
	}
	l.join(p)
	q.mu.Unlock()
	return true, nil
}

// waiting counts the waiting calls of by, with all its sessions and runs. q.mu is held.
func (q *serverQueue) waiting(by caller) (n int) {
	for _, l := range q.lanes {
		for _, c := range l.turn {
			if c.caller.anySession() == by.anySession() {
				n += len(c.waiting)
			}
		}
	}
	return n
}

// await waits until a queued call is admitted, or its caller gives it up. report is called for a
// call that waits for long, with 1, 2 and so on.
func (s *scheduler) await(ctx context.Context, p *place, report func(n int)) error {
	timer := time.NewTimer(queuedAfter)
	defer timer.Stop()
	for n := 1; ; n++ {
		select {
		case <-p.admitted:
			return nil
		case <-timer.C:
			report(n)
			timer.Reset(queuedEvery)
		case <-ctx.Done():
			return s.giveUp(p)
		}
	}
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
	}
	p.vacate()
	*p = place{}
	return &tool.Failure{Class: tool.ClassCanceled, Message: "the call was canceled while it waited for its turn"}
}

// load returns the load of server.
func (s *scheduler) load(server string) ServerLoad {
	q := s.queue(server)
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.load
	for _, one := range q.lanes {
		l.Running += len(one.running)
		for _, c := range one.turn {
			l.Queued += len(c.waiting)
		}
	}
	return l
}
