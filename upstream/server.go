package upstream

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
)

// server is one upstream server, or one client session's connection to it (see isolation): a state machine that one
// goroutine, run, drives.
type server struct {
	*entry
	hubVersion string
	guards     *guards
	catalogs   Catalogs // nil where none are kept
	retryMin   time.Duration
	retryMax   time.Duration
	budget     int           // starts within an hour
	rest       time.Duration // pause once they are used up
	http       *httpServer   // nil for stdio
	slots      *slots
	kill       <-chan struct{} // closed when stopping must be brisk
	onChange   func()
	onRestate  func(kind) // the server has told of a change, which may be none

	wishes  *wishes       // of all clients
	leveled chan struct{} // has room for one: the log level that they wish for is another
	notices *notices

	isolation *isolation // the connections of client sessions, of which this may be one; nil for useShared

	// Only run and what it calls use these.
	older       bool        // the server is known to speak a revision before 2026-07-28
	dear        bool        // and does not say so when it is asked: that takes long to find out
	untried     bool        // it is other connections that know
	olderNext   bool        // the attempt failed with server/discover unanswered
	endsOnProbe bool        // the server ends when it is asked server/discover
	attempts    []time.Time // starts within the last hour

	// Only resubscribe uses these.
	reported *book           // of the latest session
	owed     map[string]bool // resources that an earlier one reported on, and none since

	publishing sync.Mutex        // one catalog at a time
	kept       [sha256.Size]byte // digest of the offer that stands in catalogs; zero where none does

	calls  atomic.Int64
	errors atomic.Int64

	retired  chan struct{} // closed when the server has left the group: what has not been sent yet goes elsewhere
	stopping chan struct{} // closed when calls in flight must end
	drained  chan struct{} // closed once leaving and no call is in flight

	before <-chan struct{} // closed when those that the server replaces have ended; nil before Start

	stop func()        // ends run
	over chan struct{} // closed when run has returned, and that of each server which it came after
	wake chan struct{} // has room for one: a call waits for the server

	settled    chan struct{} // closed when the server was ready or has failed once
	settleOnce sync.Once

	firstWithin time.Duration // see Config.FirstListWithin

	mu       sync.Mutex
	firstBy  time.Time // until then its first list is waited for; zero before the start
	inFlight int
	leaving  bool // no call is let in any more
	lastUsed time.Time
	asleep   bool      // stopped, or about to be, until it is used
	up       bool      // as far as is known it works, though it may be asleep or on its way
	nextWake time.Time // before this a call does not bring the next try forward
	died     bool      // it was ready when it failed, and has not been started since
	state    tool.ServerState
	since    time.Time
	lastErr  string
	unlisted [lists]*fault.Fault // why a list that the server offers was not read when it was last asked for
	hint     string
	nextTry  time.Time
	restarts int
	pid      int
	session  *session      // not nil exactly while ready
	previous *session      // the last one that was ready, for what is known of the server
	moved    chan struct{} // closed and replaced at each change of state
	listing  *listing      // nil until first listed
	seen     toolsSeen     // of the tools, by compare
	foreign  bool          // the listing is that of a server of the same id and another identity
	fresh    freshness     // of the listing
}

// become is the one place where the state changes. f is nil where nothing went wrong.
func (s *server) become(state tool.ServerState, sess *session, f *fault.Fault, nextTry time.Time) {
	s.mu.Lock()
	if s.state != state {
		s.since = time.Now()
	}
	if state == tool.ServerStarting && s.state != tool.ServerStopped && s.state != state {
		s.restarts++
	}
	s.state, s.session, s.nextTry = state, sess, nextTry
	switch state {
	case tool.ServerStarting:
		s.asleep = false
	case tool.ServerReady:
		s.asleep, s.up = false, true
	case tool.ServerBackoff, tool.ServerNeedsAuth:
		s.asleep, s.up = false, false
	case tool.ServerStopped:
	}
	switch {
	case sess != nil:
		s.lastErr, s.hint, s.previous, s.pid = "", "", sess, sess.pid
	case f != nil:
		s.lastErr, s.hint = f.What, f.Hint
	}
	if state != tool.ServerReady && state != tool.ServerStarting {
		s.pid = 0
	}
	close(s.moved)
	s.moved = make(chan struct{})
	s.mu.Unlock()

	if state == tool.ServerReady || f != nil {
		s.settle()
	}
	switch {
	case f != nil:
		attrs := []any{"state", string(state), "error", f.What, "hint", f.Hint}
		if !nextTry.IsZero() {
			attrs = append(attrs, "next_try", nextTry)
		}
		s.log.Warn("server failed", attrs...)
	case state == tool.ServerReady:
		s.log.Info("server is ready", "protocol", sess.version)
	default:
		s.log.Debug("server changes state", "state", string(state))
	}
	s.onChange()
}

func (s *server) settle() { s.settleOnce.Do(func() { close(s.settled) }) }

func (s *server) setPID(pid int) {
	s.mu.Lock()
	s.pid = pid
	s.mu.Unlock()
}

// maxQuickLosses is how many sessions in a row a server may forget at once before that counts as a failure.
const maxQuickLosses = 3

// run keeps the server alive until ctx ends; then it stops it and returns.
func (s *server) run(ctx context.Context) {
	defer s.settle()
	defer s.finish()
	pause, losses := s.retryMin, 0
	asleep := s.cfg.Lazy
	for ctx.Err() == nil {
		if asleep && s.isKnown() && !s.sleep(ctx) {
			return
		}
		asleep = s.use == useSession && !s.isSubscribed() // only a call starts that again
		s.become(tool.ServerStarting, nil, nil, time.Time{})
		s.attempts = append(s.recentAttempts(), time.Now())
		sess, f := s.start(ctx)
		if f == nil {
			began := time.Now()
			s.teach()
			s.become(tool.ServerReady, sess, nil, time.Time{})
			f = s.serve(ctx, sess)
			lasted := time.Since(began)
			if lasted > s.retryMax {
				pause = s.retryMin
			}
			if losses++; lasted > s.retryMin {
				losses = 1
			}
			if f.Idle || f.Lost && losses == 1 {
				s.attempts = s.attempts[:len(s.attempts)-1] // the budget is for starts that end in failure
			}
			switch {
			case ctx.Err() != nil:
				s.drain() // first: so that each call's cancellation can still be told
				sess.shut(s.kill)
				return
			case f.Idle:
				if s.use == useListing {
					s.doze() // no call waits for it, however long its end takes
				}
				sess.shut(s.kill)
				if s.use == useSession {
					s.log.Info("session has not called for a while: its connection is closed")
					return
				}
				asleep, pause = true, s.retryMin
			case f.Lost && losses <= maxQuickLosses:
				s.become(tool.ServerStarting, nil, f, time.Time{})
				sess.shut(s.kill) // nothing is wrong with the server: the call that found out waits for the new session
				asleep = false
			case losses == 1 && s.isWorthAnother(f):
				s.waitForCall(f)
				sess.shut(s.kill)
			default:
				s.backOff(ctx, sess, f, &pause)
			}
			continue
		}
		if ctx.Err() == nil {
			s.backOff(ctx, nil, f, &pause)
		}
	}
}

// drain ends the calls in flight, lets no new ones in, and waits for those to return.
func (s *server) drain() {
	s.mu.Lock()
	s.shutDoor()
	s.asleep = false // in one step with leaving: a call that waits must not wait for it to wake
	select {
	case <-s.stopping:
	default:
		close(s.stopping)
	}
	s.mu.Unlock()
	s.become(tool.ServerStopped, nil, nil, time.Time{})
	<-s.drained
}

// shutDoor lets no more calls in. s.mu is held.
func (s *server) shutDoor() {
	if s.leaving {
		return
	}
	s.leaving = true
	if s.inFlight == 0 {
		close(s.drained)
	}
}

// finish ends what is left when run returns.
func (s *server) finish() {
	s.drain()
	if s.http != nil {
		s.http.flights.Wait()
		s.http.pool.CloseIdleConnections()
	}
}

// enter counts a call in. It returns false once the server lets none in.
func (s *server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return false
	}
	s.inFlight++
	return true
}

// leave counts a call out.
func (s *server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	s.lastUsed = time.Now()
	if s.leaving && s.inFlight == 0 {
		close(s.drained)
	}
}

// backOff waits after a failure until the next try is due, or a call asks for it sooner. The session that failed, if any, is
// closed meanwhile. "Authentication failures stop it until something changed": so does waiting for those.
func (s *server) backOff(ctx context.Context, sess *session, f *fault.Fault, pause *time.Duration) {
	if f.Auth {
		if s.use == useSession {
			s.isolation.stopFor(f, 0)
		}
		s.become(tool.ServerNeedsAuth, nil, f, time.Time{})
		if sess != nil {
			sess.shut(s.kill)
		}
		if s.use == useSession {
			s.depart()
			s.stop()
		}
		<-ctx.Done()
		return
	}
	d := max(jitter(*pause), f.Pause)
	// A call may bring the next try forward, but not so far that a busy client uses the budget up within a minute.
	early := time.Now().Add(max(s.retryMin, *pause/4, f.Pause))
	*pause = min(*pause*2, s.retryMax)
	n := len(s.recentAttempts())
	if s.use == useSession && sess == nil {
		n = max(n, s.isolation.startFailed())
	}
	if n >= s.budget {
		d = max(jitter(s.rest), d)
		early = time.Now().Add(d) // a call must not make it more
		spent := *f               // others may be reading f
		spent.Hint = orText(f.Hint, "see the server's own log") +
			fmt.Sprintf("; it has been started %d times within an hour, so the hub pauses", n)
		f = &spent
		if s.use == useSession && sess == nil {
			s.isolation.stopFor(f, d)
		}
	}
	s.mu.Lock()
	s.nextWake, s.died = early, sess != nil
	s.mu.Unlock()
	s.become(tool.ServerBackoff, nil, f, time.Now().Add(d))
	timer := time.NewTimer(d)
	defer timer.Stop()
	if sess != nil {
		sess.shut(s.kill)
	}
	for {
		select {
		case <-timer.C:
			return
		case <-s.wake:
			if !time.Now().Before(early) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// recentAttempts forgets the starts that are older than an hour and returns the others.
func (s *server) recentAttempts() []time.Time {
	cut := time.Now().Add(-time.Hour)
	s.attempts = slices.DeleteFunc(s.attempts, func(t time.Time) bool { return t.Before(cut) })
	return s.attempts
}

// doze says that the server is stopped until it is used.
func (s *server) doze() {
	s.mu.Lock()
	s.asleep, s.up = !s.leaving, true
	s.mu.Unlock()
	s.become(tool.ServerStopped, nil, nil, time.Time{})
	s.settle()
}

// sleep waits until the server is used. It returns false when ctx ended instead.
func (s *server) sleep(ctx context.Context) bool {
	select {
	case <-s.wake: // of a call that was served since; one that waits asks again when the state changes
	default:
	}
	s.doze()
	var unused <-chan time.Time
	if s.use == useSession {
		ticker := time.NewTicker(max(s.cfg.IdleStop/4, time.Millisecond))
		defer ticker.Stop()
		unused = ticker.C
	}
	for {
		select {
		case <-s.wake:
			return true
		case <-unused:
			if s.park() {
				return false
			}
		case <-ctx.Done():
			return false
		}
	}
}

// park takes a session out of use if no call has needed it for a while.
func (s *server) park() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inFlight > 0 || time.Since(s.lastUsed) < s.cfg.IdleStop || s.isSubscribed() {
		return false
	}
	s.session = nil
	s.asleep = s.use != useSession
	if s.use == useSession {
		s.turnAway()
	}
	return true
}

// depart takes the server out of use: what has not been sent yet goes elsewhere.
func (s *server) depart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turnAway()
}

// turnAway is depart where s.mu is held.
func (s *server) turnAway() {
	s.shutDoor()
	if !s.isRetired() {
		close(s.retired)
	}
}

// retire ends a server that has left the group, after its calls.
func (s *server) retire() {
	s.depart()
	if s.use == useListing {
		s.isolation.retire()
	}
	timer := time.NewTimer(retireWithin)
	defer timer.Stop()
	select {
	case <-s.drained:
	case <-timer.C:
	}
	s.stop()
}

// jitter spreads d by a quarter to both sides, so that servers that failed together do not come back together.
func jitter(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }

// start connects and lists, in one of the group's slots.
func (s *server) start(ctx context.Context) (*session, *fault.Fault) {
	free, ok := s.slots.take(ctx)
	if !ok {
		return nil, &fault.Fault{What: "stopped", Cause: ctx.Err()}
	}
	defer free()

	sess, f := s.connect(ctx)
	if f != nil {
		return nil, f
	}
	if listens := sess.hasToListen(); listens || s.listensForRequests(sess) {
		// Before listing: what changes in between is told.
		sess.watch.lapsed = func() {
			for _, uri := range sess.book.all() {
				s.makeUp(uri)
			}
		}
		listening, stop := context.WithCancel(ctx)
		shut := sess.shut
		sess.shut = func(kill <-chan struct{}) {
			stop()
			shut(kill)
		}
		if l, ok := sess.lane.(*httpLane); ok && s.listensForRequests(sess) {
			l.listenFirst(listening, sess.watch)
		} else {
			sess.lane.listen(listening, sess.watch)
		}
	}
	if s.use == useSession {
		return s.listFor(ctx, sess)
	}
	got, f := s.listAll(ctx, sess)
	if f != nil {
		if sess.isOver() {
			over := *sess.reason
			over.What += " (before it had listed its tools)"
			f = &over
		}
		sess.shut(s.kill)
		return nil, f
	}
	s.publish(sess, got)
	return sess, nil
}

// serve looks after a ready session until it ends or ctx does.
func (s *server) serve(ctx context.Context, sess *session) *fault.Fault {
	if s.listsOnly() {
		return &fault.Fault{What: "listed", Idle: true}
	}
	ctx, stop := context.WithCancel(ctx)
	var tending sync.WaitGroup
	defer tending.Wait()
	defer stop()
	s.tend(ctx, sess, &tending)
	var idle <-chan time.Time
	if s.cfg.IdleStop > 0 && s.use != useListing {
		ticker := time.NewTicker(max(s.cfg.IdleStop/4, time.Millisecond))
		defer ticker.Stop()
		idle = ticker.C
		s.mu.Lock()
		s.lastUsed = time.Now()
		s.mu.Unlock()
	}
	for {
		select {
		case <-ctx.Done():
			return &fault.Fault{What: "stopped", Cause: ctx.Err()}
		case <-sess.ended:
			return sess.reason
		case <-idle:
			if !sess.isCut() && s.park() { // a child that has just died is not one that nobody needs
				return &fault.Fault{What: "idle", Idle: true}
			}
		case <-sess.suspect:
			if f := s.verify(ctx, sess); f != nil {
				return f
			}
		}
	}
}

// tend looks after what a ready session has to be asked and told besides calls, until ctx ends.
func (s *server) tend(ctx context.Context, sess *session, tending *sync.WaitGroup) {
	for k := range kinds {
		switch {
		case !sess.offers(k):
		case s.use != useSession:
			tending.Go(func() { s.keepListed(ctx, sess, k) })
		default: // what one session's server adds for it is no change of what all are offered
			tending.Go(func() { s.keepTold(ctx, sess, k) })
		}
	}
	if can := sess.abilities(); s.use != useListing && (can.Subscribe || can.Logging && sess.hop == nil) {
		tending.Go(func() { s.keepWishes(ctx, sess) })
	}
}

// verify asks a server that could not be reached whether it is still there.
func (s *server) verify(ctx context.Context, sess *session) *fault.Fault {
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeouts.Connect)
	defer cancel()
	err := sess.lane.ping(limited)
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
		return &fault.Fault{What: fmt.Sprintf("no answer to ping within %s", s.cfg.Timeouts.Connect), Hint: "see the server's messages in the log",
			Cause: err}
	}
	return fault.OfConnect(s.cfg, causeOf(err), s.redact)
}

// overFor returns why sess is over when a request to it has failed with err, or nil where it goes on. Where the connection was
// lost it waits for the reason: a child's exit is known a moment later than the end of its output. Over Streamable HTTP
// a lost connection is one request's, and the session goes on.
func (s *server) overFor(ctx context.Context, sess *session, err error) *fault.Fault {
	var f *tool.Failure
	lost := s.cfg.Transport != StreamableHTTP && errors.As(err, &f) && f.Code == codeConnectionLost
	if sess.isOver() || lost && waitFor(ctx.Done(), sess.ended, reasonWithin) {
		return sess.reason
	}
	return nil
}

// reasonWithin is how long the reason for a session's end may take: what a child has written is read first, and its exit awaited.
const reasonWithin = drainTime + 2*exitTime

// catalog is what the server offers as far as is known.
func (s *server) catalog() tool.Catalog {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listing == nil {
		return tool.Catalog{Server: s.cfg.ID, Source: tool.SourceMCP, Tags: s.cfg.Tags, Pending: !s.cfg.Disabled, Needs: s.needs()}
	}
	c := s.listing.catalog
	c.Needs = s.needs()
	if s.cfg.HideWhenDown && !s.up {
		c.Tools, c.Prompts, c.Resources, c.Templates, c.Abilities = nil, nil, nil, nil, tool.Abilities{}
	}
	return c
}
