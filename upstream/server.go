package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/child"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// server is one upstream server, or the connection of one client session to it (see isolation). One
// goroutine, keepAlive, starts it, looks after its session, and starts it again.
type server struct {
	*entry
	slots         *child.Slots
	lifecycle     *lifecycle
	connector     *connector
	subscriptions *subscriptions

	isolation *isolation // the connections of client sessions, of which this may be one; nil where there are none

	// Only keepAlive and what it calls use these.
	starts starts
	pause  time.Duration // before the next start

	stop func()        // ends keepAlive
	over chan struct{} // closed when keepAlive has returned, and that of each server which it came after
}

// newServer makes a server that has not been started.
func newServer(e *entry, state tool.ServerState) (*server, error) {
	s := &server{entry: e, over: make(chan struct{})}
	s.subscriptions = &subscriptions{entry: e}
	s.lifecycle = newLifecycle(e, state)
	s.connector = &connector{entry: e, lifecycle: s.lifecycle}
	switch e.cfg.Transport {
	case StreamableHTTP, SSE:
		if e.cfg.IsOff() { // its address may not be known
			return s, nil
		}
		var err error
		s.connector.http, err = transport.NewHTTP(e.cfg, e.memory)
		if err == nil && e.tokens != nil {
			s.connector.http.Tokens = e.tokens
		}
		return s, err
	case Stdio:
		return s, nil
	}
	return nil, fmt.Errorf("unknown transport %q: use stdio, http or sse", e.cfg.Transport)
}

// retry bounds the starts of a failed server.
type retry struct {
	min, max time.Duration // of the pause, which doubles
	budget   int           // starts within an hour
	rest     time.Duration // pause once they are used up
}

// starts holds the times of starts within the last hour.
type starts []time.Time

// count forgets older starts and counts the others.
func (s *starts) count() int {
	cut := time.Now().Add(-time.Hour)
	*s = slices.DeleteFunc(*s, func(t time.Time) bool { return t.Before(cut) })
	return len(*s)
}

// maxQuickLosses bounds the sessions in a row that a server may forget at once before that counts as a failure.
const maxQuickLosses = 3

// keepAlive keeps the server alive until ctx ends; then it stops it and returns.
func (s *server) keepAlive(ctx context.Context) {
	defer s.lifecycle.settle()
	defer s.finish()
	s.pause = s.retry.min
	losses, asleep := 0, s.cfg.Lazy
	for ctx.Err() == nil {
		if asleep && (s.use == useSession || s.catalog.isKnown()) && !s.sleep(ctx) {
			return
		}
		asleep = s.use == useSession && !s.lifecycle.isNeeded() // only a call starts that again
		s.lifecycle.starting(nil)
		s.starts = append(s.starts, time.Now())
		sess, f := s.start(ctx)
		if f != nil {
			if ctx.Err() == nil {
				s.backOff(ctx, nil, f)
			}
			continue
		}
		began := time.Now()
		if s.isolation != nil {
			s.isolation.learn(s.connector.generation)
		}
		s.lifecycle.setState(tool.ServerReady, sess, nil, time.Time{})
		f = s.serve(ctx, sess)
		lasted := time.Since(began)
		if lasted > s.retry.max {
			s.pause = s.retry.min
		}
		if losses++; lasted > s.retry.min {
			losses = 1
		}
		if f.Idle || f.Lost && losses == 1 {
			s.starts = s.starts[:len(s.starts)-1] // the budget is for starts that end in failure
		}
		switch {
		case ctx.Err() != nil:
			s.lifecycle.drain() // first: so that each call's cancellation can still be told
			sess.shut(s.group.kill)
			return
		case f.Idle:
			if s.use == useListing {
				s.lifecycle.sleep(nil) // no call waits for it, however long its end takes
			}
			sess.shut(s.group.kill)
			if s.use == useSession {
				s.log.Info("session has not called for a while: its connection is closed")
				return
			}
			asleep, s.pause = true, s.retry.min
		case f.Lost && losses <= maxQuickLosses:
			s.lifecycle.starting(f)
			sess.shut(s.group.kill) // nothing is wrong with the server: the call that found out waits for the new session
			asleep = false
		case losses == 1 && s.use == useSession && !f.Auth && f.Pause == 0 && s.starts.count() < s.retry.budget:
			s.lifecycle.sleep(f)
			s.log.Warn("the session's state at the server is lost: its next call starts afresh, over a new connection")
			sess.shut(s.group.kill)
		default:
			s.backOff(ctx, sess, f)
		}
	}
}

// finish ends what is left when keepAlive has returned.
func (s *server) finish() {
	s.lifecycle.drain()
	s.catalog.save()
	if s.connector.http != nil {
		s.connector.http.Flights.Wait()
		s.connector.http.Close()
	}
	if s.tokens != nil {
		s.tokens.Close()
	}
}

// backOff waits after a failure until the next try is due, or a call asks for it sooner. The
// session that failed, if any, is closed meanwhile. "Authentication failures stop it until
// something changed": so does waiting for those.
func (s *server) backOff(ctx context.Context, sess *session, f *fault.Fault) {
	if f.Auth {
		switch {
		case s.use == useSession && s.isolation.people != nil:
			s.isolation.people.refuse(s.entry, f)
		case s.use == useSession:
			s.isolation.stopFor(f, 0)
		}
		s.lifecycle.setState(tool.ServerNeedsAuth, nil, f, time.Time{})
		if sess != nil {
			sess.shut(s.group.kill)
		}
		if s.use == useSession {
			s.lifecycle.retire()
			s.stop()
		}
		<-ctx.Done()
		return
	}
	d := max(jitter(s.pause), f.Pause)
	// A call may bring the next try forward, but not so far that a busy client uses the budget up within a minute.
	early := time.Now().Add(max(s.retry.min, s.pause/4, f.Pause))
	s.pause = min(s.pause*2, s.retry.max)
	n := s.starts.count()
	// what one person's account refuses holds up nobody else
	counted := s.use == useSession && sess == nil && s.isolation.people == nil
	if counted {
		n = max(n, s.isolation.startFailed())
	}
	if n >= s.retry.budget {
		d = max(jitter(s.retry.rest), d)
		early = time.Now().Add(d) // a call must not make it more
		spent := *f               // others may be reading f
		spent.Hint = cmp.Or(f.Hint, "see the server's own log") +
			fmt.Sprintf("; it has been started %d times within an hour, so the hub pauses", n)
		f = &spent
		if counted {
			s.isolation.stopFor(f, d)
		}
	}
	s.lifecycle.backOff(f, time.Now().Add(d), early, sess != nil)
	timer := time.NewTimer(d)
	defer timer.Stop()
	if sess != nil {
		sess.shut(s.group.kill)
	}
	for {
		select {
		case <-timer.C:
			return
		case <-s.lifecycle.wake:
			if !time.Now().Before(early) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// sleep waits until the server is used. It returns false when ctx has ended, or nobody needs the connection any more.
func (s *server) sleep(ctx context.Context) bool {
	select {
	case <-s.lifecycle.wake: // of a call that was served since; one that waits asks again when the state changes
	default:
	}
	s.lifecycle.sleep(nil)
	var unused <-chan time.Time
	if s.use == useSession {
		ticker := time.NewTicker(max(s.cfg.IdleStop/4, time.Millisecond))
		defer ticker.Stop()
		unused = ticker.C
	}
	for {
		select {
		case <-s.lifecycle.wake:
			return true
		case <-unused:
			if s.lifecycle.stopIfIdle() {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// execute does what x asks for.
func (s *server) execute(ctx context.Context, x *clientRequest) error {
	if !s.lifecycle.enter() {
		if s.lifecycle.isRetired() {
			return errRetired
		}
		return s.unavailable()
	}
	defer s.lifecycle.leave()
	if !s.isApart(x.Session) {
		if err := s.call(ctx, x); !errors.Is(err, errIsolated) {
			return err
		}
	}
	return s.isolation.execute(ctx, x)
}

// retire ends a server that has left the group, after its calls.
func (s *server) retire() {
	s.lifecycle.retire()
	if s.use != useSession && s.isolation != nil {
		s.isolation.retire()
	}
	timer := time.NewTimer(retireWithin)
	defer timer.Stop()
	select {
	case <-s.lifecycle.drained:
	case <-timer.C:
	}
	s.stop()
}

// jitter spreads d by a quarter to both sides, so that servers that failed together do not come back together.
func jitter(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }

// start connects and lists, in one of the group's slots.
func (s *server) start(ctx context.Context) (*session, *fault.Fault) {
	free, ok := s.slots.Take(ctx)
	if !ok {
		return nil, &fault.Fault{What: "stopped", Cause: ctx.Err()}
	}
	defer free()

	sess, f := s.connector.connect(ctx)
	if f != nil {
		return nil, f
	}
	if sess.asked.outside != nil {
		s.group.running.Go(func() { sess.asked.askOutside(ctx, sess.ended) })
	}
	if listens := sess.hasToListen(); listens || s.listensForRequests(sess) {
		// Before listing: what changes in between is told.
		listening, stop := context.WithCancel(ctx)
		var standing sync.WaitGroup
		shut := sess.shut
		sess.shut = func(kill <-chan struct{}) {
			stop()
			standing.Wait()
			shut(kill)
		}
		if sess.hop != nil {
			call, version := sess.subscribe(listening)
			standing.Go(func() { sess.stand(listening, call, version) })
		} else if l, ok := sess.lane.(*httpLane); ok {
			l.listen(listening)
		}
		if !sess.oneStream && (s.use != useSession || s.listensForRequests(sess)) {
			sess.watch.stands(ctx.Done())
		}
	}
	s.subscriptions.setLevel(ctx, sess) // before calls
	if s.use == useSession {
		return s.listFor(ctx, sess)
	}
	got, f := s.listAll(ctx, sess)
	if f != nil {
		if wait.IsClosed(sess.ended) {
			over := *sess.reason
			over.What += " (before it had listed its tools)"
			f = &over
		}
		sess.shut(s.group.kill)
		return nil, f
	}
	s.catalog.publish(sess, got)
	return sess, nil
}

// addsWithin is how long a child that only lists has for tools that it adds once it knows what its client can do.
const addsWithin = time.Second

// serve looks after a ready session until it ends or ctx does.
func (s *server) serve(ctx context.Context, sess *session) *fault.Fault {
	keeper, isolates := s.isolates()
	onlyLists := isolates && keeper.who.Key == "" && s.cfg.Transport == Stdio
	listed := &fault.Fault{What: "listed", Idle: true}
	if onlyLists && !sess.announces(lists.ToolKind) {
		return listed // a child is not kept for listing; a remote server tells of changes
	}
	ctx, stop := context.WithCancel(ctx)
	var tending sync.WaitGroup
	defer tending.Wait()
	defer stop()
	s.tend(ctx, sess, &tending)
	var idle <-chan time.Time
	if onlyLists {
		idle = time.After(addsWithin)
	} else if s.cfg.IdleStop > 0 && s.use != useListing {
		ticker := time.NewTicker(max(s.cfg.IdleStop/4, time.Millisecond))
		defer ticker.Stop()
		idle = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return &fault.Fault{What: "stopped", Cause: ctx.Err()}
		case <-sess.ended:
			return sess.reason
		case <-idle:
			if onlyLists {
				return listed
			}
			if !wait.IsClosed(sess.cut) && s.lifecycle.stopIfIdle() { // a child that has just died is not one that nobody needs
				return &fault.Fault{What: "idle", Idle: true}
			}
		case <-sess.suspect:
			if f := s.verify(ctx, sess); f != nil {
				return f
			}
		case <-sess.silent:
			if f := s.verifySilent(ctx, sess); f != nil {
				return f
			}
		}
	}
}

// tend looks after what a ready session has to be asked and told besides calls, until ctx ends.
func (s *server) tend(ctx context.Context, sess *session, tending *sync.WaitGroup) {
	for k := range lists.Kinds {
		if sess.offers(k) {
			tending.Go(func() { s.keepListed(ctx, sess, k) })
		}
	}
	if can := sess.abilities(); s.use != useListing && (can.Subscribe || can.Logging && sess.hop == nil) {
		tending.Go(func() { s.subscriptions.keep(ctx, sess) })
	}
}

// verify asks a server that could not be reached whether it is still there.
func (s *server) verify(ctx context.Context, sess *session) *fault.Fault {
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.Connect)
	defer cancel()
	c := newLaneCall(s.ids.Add(1), &tool.Request{Method: tool.MethodPing}, sess.hop.ListParams(nil))
	if !sess.oneStream && sess.hop != nil { // which has no ping
		c.Method = tool.MethodDiscover
	}
	a := sess.await(limited, c)
	err := a.err
	if rpc := (*tool.RPCError)(nil); errors.As(err, &rpc) {
		err = nil // it has answered: not every server knows ping
		if c.Method == tool.MethodDiscover && (a.status == http.StatusBadRequest || a.status == http.StatusNotFound ||
			rpc.Code == tool.CodeMethodNotFound) {
			err = errors.New("the server does not speak protocol 2026-07-28 any more")
		}
	}
	select {
	case <-sess.suspect: // its own doing
	default:
	}
	if err == nil || ctx.Err() != nil {
		return nil
	}
	if over := s.overFor(ctx, sess, err); over != nil {
		return over
	}
	if s.cfg.Transport == Stdio {
		return &fault.Fault{What: fmt.Sprintf("no answer to ping within %s", s.cfg.Timeouts.Connect),
			Hint:  "see the server's messages in the log",
			Cause: err}
	}
	return fault.OfConnect(s.cfg, causeOf(err), s.redact)
}

// reasonWithin bounds the wait for the reason of a session's end: a child's output is read first, and its exit awaited.
const reasonWithin = run.DrainTime + 2*exitTime

// awaitFirstList is AwaitFirstLists for one server.
func (s *server) awaitFirstList(ctx context.Context, within time.Duration) (recent bool) {
	left := time.Until(s.lifecycle.beginning().Add(max(s.firstWithin, within)))
	if left <= 0 || s.cfg.Lazy || s.cfg.Disabled {
		return false
	}
	if l, _ := s.catalog.current(); l != nil {
		return true
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-s.lifecycle.settled:
	case <-s.lifecycle.retired: // another server takes its place
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}
