package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// restartWithin: a call waits for a server that has just died if it is started again as soon as that.
const restartWithin = 3 * time.Second

var (
	errRetired  = errors.New("the server has left the group") // before the call was sent
	errNotReady = errors.New("the server is not ready")
	errIsolated = errors.New("the server has begun to ask its clients") // before the call was sent
)

// lifecycle holds the state of one server, counts its calls in and out, and gives them the session
// to use. The server's run loop changes the state; all methods are safe for concurrent use.
type lifecycle struct {
	*entry

	retired  chan struct{} // closed when the server has left the group: what has not been sent yet goes elsewhere
	stopping chan struct{} // closed when calls in flight must end
	drained  chan struct{} // closed once leaving and no call is in flight
	wake     chan struct{} // has room for one: a call waits for the server
	settled  chan struct{} // closed when the server was ready or has failed once

	settleOnce sync.Once

	mu       sync.Mutex
	began    time.Time       // when the group started it; zero before
	after    <-chan struct{} // closed when the servers that this one replaces have ended; nil before began
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
	hint     string
	nextTry  time.Time
	restarts int
	pid      int
	session  *session      // not nil exactly while ready
	previous *session      // the last one that was ready
	moved    chan struct{} // closed and replaced at each change of state
}

func newLifecycle(e *entry, state tool.ServerState) *lifecycle {
	return &lifecycle{entry: e,
		retired: make(chan struct{}), stopping: make(chan struct{}), drained: make(chan struct{}),
		wake: make(chan struct{}, 1), settled: make(chan struct{}), moved: make(chan struct{}),
		state: state, since: time.Now(), lastUsed: time.Now(),
	}
}

// begin notes that the group starts the server, once the channel after is closed.
func (l *lifecycle) begin(after <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began, l.after = time.Now(), after
}

// beginning returns when the group started the server; the zero time before.
func (l *lifecycle) beginning() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began
}

// setState is the one place where the state changes. f is nil where nothing went wrong. sess is the
// session of a server that is ready.
func (l *lifecycle) setState(state tool.ServerState, sess *session, f *fault.Fault, nextTry time.Time) {
	l.mu.Lock()
	if l.state != state {
		l.since = time.Now()
	}
	if state == tool.ServerStarting && l.state != tool.ServerStopped && l.state != state {
		l.restarts++
	}
	l.state, l.session, l.nextTry = state, sess, nextTry
	switch state {
	case tool.ServerStarting:
		l.asleep = false
	case tool.ServerReady:
		l.asleep, l.up, l.lastUsed = false, true, time.Now()
	case tool.ServerBackoff, tool.ServerNeedsAuth, tool.ServerNeedsSetup:
		l.asleep, l.up = false, false
	case tool.ServerStopped:
	}
	switch {
	case state == tool.ServerReady:
		l.lastErr, l.hint, l.previous, l.pid = "", "", sess, sess.pid
	case f != nil:
		l.lastErr, l.hint = f.What, f.Hint
	}
	if state != tool.ServerReady && state != tool.ServerStarting {
		l.pid = 0
	}
	close(l.moved)
	l.moved = make(chan struct{})
	l.mu.Unlock()

	if state == tool.ServerReady || f != nil {
		l.settle()
	}
	switch {
	case f != nil:
		attrs := []any{"state", string(state), "error", f.What, "hint", f.Hint}
		if !nextTry.IsZero() {
			attrs = append(attrs, "next_try", nextTry)
		}
		l.log.Warn("server failed", attrs...)
	case state == tool.ServerReady:
		l.log.Info("server is ready", "protocol", sess.version)
	default:
		l.log.Debug("server changes state", "state", string(state))
	}
	if l.use != useSession {
		l.group.changed()
	}
}

// starting is setState for a start.
func (l *lifecycle) starting(f *fault.Fault) { l.setState(tool.ServerStarting, nil, f, time.Time{}) }

// sleep stops the server until it is used. f is why, or nil.
func (l *lifecycle) sleep(f *fault.Fault) {
	l.mu.Lock()
	l.asleep, l.up = !l.leaving, l.up || f == nil
	l.mu.Unlock()
	l.setState(tool.ServerStopped, nil, f, time.Time{})
	l.settle()
}

// backOff sets the state after a failure. Calls bring the next try forward from early on. died says
// that it was ready before.
func (l *lifecycle) backOff(f *fault.Fault, nextTry, early time.Time, died bool) {
	l.mu.Lock()
	l.nextWake, l.died = early, died
	l.mu.Unlock()
	l.setState(tool.ServerBackoff, nil, f, nextTry)
}

func (l *lifecycle) settle() { l.settleOnce.Do(func() { close(l.settled) }) }

func (l *lifecycle) setPID(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pid = pid
}

// enter counts a call in. It returns false once the server lets none in.
func (l *lifecycle) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving {
		return false
	}
	l.inFlight++
	return true
}

// leave counts a call out.
func (l *lifecycle) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight--
	l.lastUsed = time.Now()
	if l.leaving && l.inFlight == 0 {
		close(l.drained)
	}
}

// refuseCalls lets no more calls in. l.mu is held.
func (l *lifecycle) refuseCalls() {
	if l.leaving {
		return
	}
	l.leaving = true
	if l.inFlight == 0 {
		close(l.drained)
	}
}

// drain ends the calls in flight, lets no new ones in, and waits for those to return.
func (l *lifecycle) drain() {
	l.mu.Lock()
	l.refuseCalls()
	l.asleep = false // in one step with leaving: a call that waits must not wait for it to wake
	if !wait.IsClosed(l.stopping) {
		close(l.stopping)
	}
	l.mu.Unlock()
	l.setState(tool.ServerStopped, nil, nil, time.Time{})
	<-l.drained
}

// retire takes the server out of use: calls that have not been sent yet go elsewhere.
func (l *lifecycle) retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retireNow()
}

// retireNow is retire where l.mu is held.
func (l *lifecycle) retireNow() {
	l.refuseCalls()
	if !l.isRetired() {
		close(l.retired)
	}
}

func (l *lifecycle) isRetired() bool { return wait.IsClosed(l.retired) }

// isNeeded reports whether clients have subscribed to resources of the server.
func (l *lifecycle) isNeeded() bool { return len(l.group.subscriptions.of(l.entry)) > 0 }

// isUnused reports whether nothing has needed the server for its idle time. l.mu is held.
func (l *lifecycle) isUnused() bool { return time.Since(l.lastUsed) >= l.cfg.IdleStop && !l.isNeeded() }

// stopIfIdle takes the session out of use if nothing needs it; a connection of one client session is retired then.
func (l *lifecycle) stopIfIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight > 0 || !l.isUnused() {
		return false
	}
	l.session = nil
	l.asleep = l.use != useSession
	if l.use == useSession {
		l.retireNow()
	}
	return true
}

// retireIfSpare retires a connection with which nothing is lost, and reports whether it did.
func (l *lifecycle) retireIfSpare() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.inFlight > 0 || l.isRunning() && !l.isUnused() {
		return false
	}
	l.retireNow() // in one step: no call may come in between
	return true
}

// isRunning reports whether the server is connected or connecting. l.mu is held.
func (l *lifecycle) isRunning() bool {
	return l.state == tool.ServerReady || l.state == tool.ServerStarting
}

// acquire returns the session of a ready server, other than stale. It waits up to limit for a
// server that is starting, and for one that has just died and is about to be started again. The
// error is errRetired, errNotReady, or that of a canceled call.
func (l *lifecycle) acquire(ctx context.Context, stale *session, limit time.Duration) (*session, error) {
	var late <-chan time.Time // made when there is something to wait for
	for {
		l.mu.Lock()
		sess, state, moved := l.session, l.state, l.moved
		backs := state == tool.ServerBackoff
		wakes := l.asleep || backs && !time.Now().Before(l.nextWake)
		restarts := backs && l.died && time.Until(l.nextTry) <= restartWithin
		l.mu.Unlock()
		if sess != nil && sess != stale && !wait.IsClosed(sess.ended) {
			return sess, nil
		}
		if wakes {
			wait.Signal(l.wake)
		}
		// A session that is over is about to be replaced, or to become a failure that tells more.
		if !wakes && !restarts && state != tool.ServerStarting && state != tool.ServerReady {
			if l.isRetired() {
				return nil, errRetired
			}
			return nil, errNotReady
		}
		if late == nil {
			late = time.After(min(l.cfg.Timeouts.Connect, limit))
		}
		select {
		case <-moved:
		case <-l.retired:
			return nil, errRetired
		case <-late:
			return nil, errNotReady
		case <-ctx.Done():
			return nil, canceled(ctx, false)
		}
	}
}

// current returns the session that calls use now, or nil.
func (l *lifecycle) current() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session == nil || wait.IsClosed(l.session.ended) {
		return nil
	}
	return l.session
}

func (l *lifecycle) stateNow() tool.ServerState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

func (l *lifecycle) isAsleep() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asleep
}

// isCurrent reports whether the server is connected, or would be as soon as it is used: then its lists hold.
func (l *lifecycle) isCurrent() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session != nil || l.asleep
}

// outlook returns whether the server works as far as is known, and what somebody has to do before
// it works again; "" for nothing.
func (l *lifecycle) outlook() (up bool, needs string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.up || l.lastErr == "":
		return l.up, ""
	case l.state == tool.ServerNeedsAuth && l.cfg.OAuth.PerCaller:
		return true, "" // it is a matter of the caller
	case l.state == tool.ServerNeedsAuth:
		return l.up, "a sign-in: " + l.hint
	}
	return l.up, fmt.Sprintf("mending: %s; %s", l.lastErr, l.hint) // also while it is tried again
}

// report fills in what a person can see of the state.
func (l *lifecycle) report(st *tool.ServerStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	st.State, st.Since, st.PID, st.Restarts, st.InFlight = l.state, l.since, l.pid, l.restarts, l.inFlight
	st.LastError, st.Hint = l.redact.Beginning(l.lastErr, secret.MaxMessage),
		l.redact.Beginning(l.hint, secret.MaxMessage)
	if !l.nextTry.IsZero() {
		next := l.nextTry
		st.NextTry = &next
	}
	if of := l.previous; of != nil {
		st.ProtocolVersion = of.version
		st.ServerName, st.ServerVersion = l.redact.Text(of.info.Name), l.redact.Text(of.info.Version)
	}
	if st.Hint != "" {
		return
	}
	switch {
	case l.after != nil && !l.cfg.Disabled && !wait.IsClosed(l.after):
		st.Hint = fmt.Sprintf("its entry has changed, and it starts when the calls that it was still working on have "+
			"ended, within %s", retireWithin)
	case l.asleep && l.use == useListing:
		st.Hint = "each session gets a connection of its own when it calls one of the tools"
	case l.asleep:
		st.Hint = "starts when one of its tools is called"
	}
}

// reportSession adds the connection of one client session to what a person can see of its server.
func (l *lifecycle) reportSession(st *tool.ServerStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isRunning() {
		st.Sessions++
	}
	if l.lastErr != "" && st.LastError == "" {
		st.LastError, st.Hint = "session "+l.client.Name+": "+l.lastErr, l.hint
	}
}
