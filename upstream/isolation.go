package upstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/child"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// isolation gives each client session a connection of its own to one server: what a server with
// state (a browser, a shell) needs, so that nobody types into somebody else's page. Where each
// caller signs in to the server, each person has one, with that person's sign-in, and all sessions
// of the person share it.
//
// Each connection is a server too: the same state machine with the same recovery, limits and child
// process. Unlike the server that it belongs to it lists nothing for itself, is started by calls
// alone, and ends with its session, or when the session has not called for a while. The server that
// they all belong to keeps what is common: the entry's place in the group, the catalog and the
// counters. Its own connection only lists.
//
// A server over a stream that asks its clients (for their roots, say) is isolated by itself as soon as it asks, because
// the stream does not say whom. The session that has answered it keeps the connection that was shared until then.
type isolation struct {
	server *server      // the one that this belongs to
	people *people      // of a server that each caller signs in to; nil otherwise
	slots  *child.Slots // connections that start at the same time: a hanging one must not hold other servers back

	running sync.WaitGroup

	mu      sync.Mutex
	within  withinFunc           // makes the context of a connection; nil until the server is started
	ended   <-chan struct{}      // closed when the server's context has ended
	shut    bool                 // no connection is made any more
	open    map[string]*server   // by the key of the session or person
	closing map[*server]struct{} // not in use any more, and not gone yet
	failed  starts               // starts that failed within the last hour, of all sessions
	bar     *fault.Fault         // why no connection is made for now; nil where nothing is wrong
	barEnd  time.Time            // of bar; zero: when something has changed
	older   bool                 // the server speaks a revision before 2026-07-28
	keeper  clientSession        // has the shared connection: the server has asked it there; the zero value is nobody
}

func newIsolation(s *server, people *people) *isolation {
	return &isolation{server: s, people: people, slots: s.slots.Another(), open: make(map[string]*server),
		closing: make(map[*server]struct{})}
}

// withinFunc returns a context that ends with the one that bounds it, and what ends it earlier.
type withinFunc = func() (context.Context, context.CancelFunc)

// begin lets connections be made, until ctx ends.
func (i *isolation) begin(ctx context.Context) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.within = func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	i.ended = ctx.Done()
}

// retire ends every connection after its calls, and lets no new ones be made.
func (i *isolation) retire() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shut {
		return
	}
	i.shut = true
	for _, one := range i.open {
		i.running.Go(one.retire)
	}
}

// close returns when every connection is gone. Their context has ended.
func (i *isolation) close() {
	i.mu.Lock()
	i.shut = true
	i.mu.Unlock()
	i.running.Wait()
}

// execute sends x over the connection of its session.
func (i *isolation) execute(ctx context.Context, x *clientRequest) error {
	for {
		x.reply = tool.Reply{}
		one, err := i.connection(x.Session, x.Hop)
		if err != nil {
			return err
		}
		if err := one.execute(ctx, x); !errors.Is(err, errRetired) {
			return err
		}
		// Nothing was sent. That connection has just ended: the session gets another one, if it still lives.
	}
}

// connection returns the session's connection, and makes one where there is none, for a client that
// says this of itself.
func (i *isolation) connection(who tool.Session, says tool.Hop) (*server, error) {
	if who.IsOver() {
		return nil, &tool.Failure{Class: tool.ClassCanceled, Code: "session_ended",
			Message: "the session that the call belongs to has ended: open a new one and call again"}
	}
	if i.people != nil {
		if err := i.people.refusal(who.Person); err != nil {
			return nil, err
		}
	} else if i.server.lifecycle.stateNow() == tool.ServerNeedsAuth {
		return nil, i.server.unavailable()
	}
	who = i.owner(who)
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case i.within == nil, wait.IsClosed(i.ended):
		return nil, i.unavailable()
	case i.shut:
		return nil, errRetired
	}
	if one := i.open[who.Key]; one != nil {
		if !one.lifecycle.isRetired() && !one.client.IsOver() {
			return one, nil
		}
		i.dismiss(one)
	}
	if i.barred() != nil {
		return nil, i.unavailable()
	}
	if len(i.open) >= i.server.cfg.MaxSessions && !i.evict() {
		return nil, i.full()
	}
	return i.start(who, says), nil
}

// owner returns in place of who the session that the connection of who is made for: all of a
// person's sessions share one, unless each session has its own.
func (i *isolation) owner(who tool.Session) tool.Session {
	if i.people == nil || i.server.cfg.Isolated {
		return who
	}
	return tool.Session{Key: who.PersonKey(), Name: who.Person, Person: who.Person}
}

// unavailable is the server's own answer, made where mu is held.
func (i *isolation) unavailable() error {
	i.mu.Unlock()
	defer i.mu.Lock()
	return i.server.unavailable()
}

// barred returns the fault that keeps connections from being made for now, or nil. mu is held.
func (i *isolation) barred() *fault.Fault {
	if i.bar != nil && !i.barEnd.IsZero() && !time.Now().Before(i.barEnd) {
		i.bar = nil
	}
	return i.bar
}

// evict ends a connection that serves nobody: one whose session has ended, one that has failed and
// waits for a call, or one that is due to end unused. It reports whether there was any. mu is held.
func (i *isolation) evict() bool {
	for _, one := range i.open {
		if one.client.IsOver() || one.lifecycle.retireIfSpare() {
			i.dismiss(one)
			return true
		}
	}
	return false
}

// dismiss ends one, with the calls that it still serves. mu is held.
func (i *isolation) dismiss(one *server) {
	one.lifecycle.retire()
	i.letGo(one)
	one.stop()
}

// full is the answer where every connection is in use.
func (i *isolation) full() *tool.Failure {
	cfg := i.server.cfg
	return &tool.Failure{Class: tool.ClassRateLimited, Code: "sessions_full", Message: fmt.Sprintf(
		"server %q has a connection of its own for %d sessions, as many as its max_sessions allows, and all "+
			"are in use: "+
			"end a session, or try again later (one that is not used ends after %s). The hub's operator can raise "+
			"max_sessions",
		cfg.ID, cfg.MaxSessions, cfg.SessionIdle)}
}

// start makes a connection for who and lets it run, once those that close have made room. mu is held.
func (i *isolation) start(who tool.Session, says tool.Hop) *server {
	parent := i.server
	e := *parent.entry
	e.use, e.client, e.clientHop, e.log = useSession, who, keepHop(says),
		parent.log.With("session", cmp.Or(who.Name, "unnamed"))
	e.cfg.Lazy, e.cfg.IdleStop = false, parent.cfg.SessionIdle
	if parent.use == useShared && who.Ended != nil { // nobody has asked for an end before that
		e.cfg.IdleStop = settings.OrDefault(parent.cfg.IdleStop, 30*24*time.Hour)
	}
	if i.people != nil {
		e.cfg = e.cfg.For(who.Person)
		e.cfg.SignIn, e.tokens = i.people.mark(who.Person), i.people.source(who.Person)
	}
	one, _ := newServer(&e, tool.ServerStarting) // as the parent was made, so it cannot fail
	one.isolation, one.slots = i, i.slots
	one.connector.older = i.older
	full := len(i.open)+len(i.closing) >= parent.cfg.MaxSessions
	var before []*server
	for old := range i.closing {
		if full || old.client.Key == who.Key && !e.isPersonal() { // two of a session could be in each other's way
			before = append(before, old)
		}
	}
	ctx, stop := i.within()
	one.stop = stop
	i.open[who.Key] = one
	i.running.Go(func() {
		defer stop()
		for _, old := range before {
			select {
			case <-old.over:
			case <-ctx.Done():
			}
		}
		one.keepAlive(ctx)
		i.gone(one)
	})
	if who.Ended != nil {
		i.running.Go(func() { i.endWith(one) })
	}
	return one
}

// keepHop copies what a connection keeps of the request that made it.
func keepHop(says tool.Hop) tool.Hop {
	says.ClientCapabilities, says.LogLevel = bytes.Clone(says.ClientCapabilities), nil
	return says
}

// endWith ends one as soon as its session ends. Nobody waits for its calls any more.
func (i *isolation) endWith(one *server) {
	select {
	case <-one.client.Ended:
	case <-one.over:
		return
	}
	one.log.Info("session has ended: its connection is closed")
	i.mu.Lock()
	defer i.mu.Unlock()
	i.dismiss(one)
}

// letGo takes one out of use. mu is held.
func (i *isolation) letGo(one *server) {
	if i.open[one.client.Key] != one {
		return
	}
	delete(i.open, one.client.Key)
	i.closing[one] = struct{}{}
}

// gone notes that nothing of one is left.
func (i *isolation) gone(one *server) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.letGo(one)
	delete(i.closing, one)
	close(one.over)
}

// keep makes the shared connection that of one, which the server can ask there, unless it is another one's.
func (i *isolation) keep(one clientSession) (kept bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keeper.who.Key == "" || i.keeper.who.IsOver() {
		i.keeper = one
	}
	return i.keeper.who.Key == one.who.Key
}

// isApart reports whether who has a connection of its own, instead of the one of s, which keeper has; the zero value is
// nobody alone.
func (s *server) isApart(who tool.Session) (keeper clientSession, apart bool) {
	if s.use != useShared || s.isolation == nil || !s.catalog.known().Asks {
		return keeper, s.use == useListing
	}
	s.isolation.mu.Lock()
	keeper = s.isolation.keeper
	s.isolation.mu.Unlock()
	if s.lifecycle.stateNow() == tool.ServerStarting {
		if one, ok := s.group.subscriptions.sole(); ok && one.who.Key == who.Key {
			return keeper, false // it may become the keeper's
		}
	}
	return keeper, keeper.who.Key == "" || keeper.who.Key != who.Key
}

// peek returns the session's connection, or nil where it has none.
func (i *isolation) peek(who tool.Session) *server {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.open[i.owner(who).Key]
}

// followSignIns ends the connections of people who have signed in anew since, or out, after their calls.
func (i *isolation) followSignIns() {
	if i.people == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.shut || i.within == nil {
		return
	}
	for _, one := range i.open {
		if i.people.mark(one.client.Person) != one.cfg.SignIn {
			i.letGo(one)
			i.running.Go(one.retire)
		}
	}
}

// each calls f for every connection. f does not block.
func (i *isolation) each(f func(one *server)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, one := range i.open {
		f(one)
	}
}

// startFailed counts a start of any session that failed, and returns how many there were within an hour.
func (i *isolation) startFailed() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.failed = append(i.failed, time.Now())
	return i.failed.count()
}

// stopFor keeps sessions from starting connections for d, or for 0 until something has changed:
// what keeps one from being started would keep all.
func (i *isolation) stopFor(f *fault.Fault, d time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.bar, i.barEnd = f, time.Time{}
	if d > 0 {
		i.barEnd = time.Now().Add(d)
	}
}

// learn keeps what a connection that was made has shown of the server.
func (i *isolation) learn(older bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.older, i.bar = older, nil
}

// report adds to st what is to be seen of the connections.
func (i *isolation) report(st *tool.ServerStatus) {
	i.mu.Lock()
	bar, end := i.barred(), i.barEnd
	all := make([]*server, 0, len(i.open))
	for _, one := range i.open {
		all = append(all, one)
	}
	i.mu.Unlock()
	st.Isolation = "session"
	if i.people != nil {
		st.Isolation, st.SignIns = "caller", i.people.signIns(i.server.redact.Text)
	}
	for _, one := range all {
		one.lifecycle.reportSession(st)
	}
	switch {
	case bar != nil && end.IsZero():
		st.State, st.LastError, st.Hint, st.NextTry = tool.ServerNeedsAuth, bar.What, bar.Hint, nil
	case bar != nil:
		st.State, st.LastError, st.Hint, st.NextTry = tool.ServerBackoff, bar.What, bar.Hint, &end
	}
}

// The following are the steps in which the life of a session's connection, or of the server that it belongs to, differs
// from that of a server that is shared.

// listFor brings the catalog up to what a session's connection is offered in the beginning, where
// no other connection keeps it true. That is before the session's first call: what a server offers
// a session later is that session's own, and is not listed. A server that does not list in time is
// used all the same.
func (s *server) listFor(ctx context.Context, sess *session) (*session, *fault.Fault) {
	if s.isolation.people != nil { // what the server offers one person is not shown to others
		return sess, nil
	}
	l, _ := s.catalog.current()
	if s.isolation.server.lifecycle.stateNow() == tool.ServerReady ||
		s.answers() < 3 && l != nil && !l.Catalog.Pending {
		return sess, nil
	}
	limited, cancel := context.WithTimeout(ctx, s.probeTime())
	defer cancel()
	got, f := s.listAll(limited, sess)
	switch {
	case f == nil:
		s.catalog.publish(sess, got)
	case wait.IsClosed(sess.ended):
		sess.shut()
		return nil, sess.reason
	default:
		s.log.Warn("tools could not be listed again: the catalog stays as it was", "error", f.What)
	}
	return sess, nil
}
