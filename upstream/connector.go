package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/child"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/hop"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/transport"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// maxProbeTime bounds the wait for an answer to server/discover, before the hub goes on to initialize.
const maxProbeTime = 5 * time.Second

// connector makes initialised sessions with one server, and remembers which generation of the
// protocol it speaks. Only the server's run loop uses it.
type connector struct {
	*entry
	http      *transport.HTTP // nil for stdio
	lifecycle *lifecycle
	isolation *isolation // that learns what the server asks; nil for a connection of a session

	generation
	olderNext bool   // the attempt failed with server/discover unanswered
	doing     string // what the child of the attempt did instead of answering in time
}

// generation records which revision a server has shown to speak.
type generation struct {
	older       bool // a revision before 2026-07-28
	slowProbe   bool // it does not answer server/discover, which takes long to find out
	inferred    bool // other connections know
	endsOnProbe bool // it ends when it is asked server/discover
}

// connect starts or reaches the server and initialises a session, within the connect timeout. Only run calls it.
func (c *connector) connect(ctx context.Context) (sess *session, f *fault.Fault) {
	within, done := c.group.launcher.Firsts.Await(ctx, c.cfg)
	defer func() { done(f == nil) }()
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if left := c.catalog.rest(0); left > 0 {
		return nil, &fault.Fault{What: fmt.Sprintf("%s wants no request for another %s (Retry-After)",
			secret.URL(c.cfg.URL), left.Round(time.Second)), Hint: "wait", Pause: left}
	}
	if c.tokens != nil {
		if _, err := c.tokens.Token(limited); err != nil {
			return nil, fault.OfToken(c.cfg, err, c.redact)
		}
	}
	switch c.cfg.Transport {
	case StreamableHTTP:
		sess, f = c.connectHTTP(limited)
	case SSE:
		sess, f = c.connectSSE(ctx, limited)
	default:
		sess, f = c.connectStdio(limited)
	}
	if f != nil {
		c.catalog.rest(f.Pause)
		if ctx.Err() == nil && limited.Err() != nil && !f.Auth {
			f = c.silent(f, within)
		}
		// A server that failed as an older one may have been replaced by one that is not.
		older := !c.skipsProbe() && c.olderNext
		c.generation = generation{older: older, slowProbe: older}
		return nil, f
	}
	c.slowProbe = c.slowProbe && c.skipsProbe() || sess.undiscovered
	c.older, c.inferred = sess.version < hop.Modern, false
	return sess, nil
}

// silent explains why the server has not answered within the connect timeout. f is the fault of the last attempt.
func (c *connector) silent(f *fault.Fault, within time.Duration) *fault.Fault {
	s := &fault.Fault{What: fmt.Sprintf("no answer to initialize within %s", within), Cause: f,
		Hint: "check that it is an MCP server and that it can start; if it is only slow, raise timeout of its entry"}
	if c.doing != "" {
		s.What += ": " + c.doing
	}
	if len(c.cfg.Withheld) > 0 {
		s.Hint += fmt.Sprintf("; if it needs %s, which the hub has, add them to hub.env",
			strings.Join(c.cfg.Withheld, ", "))
	}
	return s
}

// skipsProbe reports whether server/discover is not sent. A server that answers it at once is asked
// at each reconnect: it may have become one of the other generation. One that does not answer costs
// seconds, and is asked again when it fails as an older one. The first connection of a session
// knows from others.
func (c *connector) skipsProbe() bool { return c.older && (c.slowProbe || c.inferred) }

// connectStdio starts a child. Some servers of older revisions end when the first message is not initialize; they are
// started again and spared the question.
func (c *connector) connectStdio(ctx context.Context) (*session, *fault.Fault) {
	older := c.skipsProbe() || c.endsOnProbe
	c.olderNext, c.doing = false, ""
	sess, ended, f := c.startChild(ctx, older)
	if older || !ended || ctx.Err() != nil {
		return sess, f
	}
	sess, _, again := c.startChild(ctx, true)
	if again != nil {
		return nil, f
	}
	c.endsOnProbe = true
	return sess, nil
}

// startChild starts one child and initialises it. ended reports that the child has ended instead of that.
func (c *connector) startChild(ctx context.Context, older bool) (sess *session, ended bool, f *fault.Fault) {
	proc, f := c.group.launcher.Start(c.cfg, c.log, c.redact)
	if f != nil {
		return nil, false, f
	}
	sess = newSession(c.entry, c.lifecycle.stopping)
	sess.pid = proc.PID()
	c.lifecycle.setPID(sess.pid)
	lines := transport.NewLines(proc.Stdin, proc.Stdout, c.cfg.Limits.Message, c.memory)
	conn := newStreamConn(sess, lines)
	sess.cut = conn.ended
	c.catalog.change(func(h *habits) { conn.noCancels = h.CancelDeaths >= 2 })
	var watching sync.WaitGroup
	watching.Go(func() { c.watchChild(sess, conn, proc, lines.Broken) })
	sess.shut = func(kill <-chan struct{}) {
		conn.shut(transport.ErrClosed)
		proc.Stop(kill)
		conn.release()
		watching.Wait()
	}
	sess.asked.follow(c.requestRule(), c.isolation, nil, false) // some servers ask as soon as they are initialised
	if a := c.handshake(ctx, sess, older); a.err != nil {
		c.olderNext = c.olderNext || !older
		f = c.handshakeFault(ctx, sess, a)
		if ctx.Err() != nil {
			c.doing = c.redact.Beginning(proc.Doing(context.WithoutCancel(ctx)), secret.MaxMessage)
		}
		sess.shut(c.group.kill)
		return nil, isCutOff(a.err), f
	}
	return sess, false, nil
}

// exitTime bounds the wait for the exit of a child that has closed its stdout: its pipes close
// first, and the log is to name its exit status.
const exitTime = 2 * time.Second

// watchChild ends the session when the child has closed its stdout or exited.
func (c *connector) watchChild(sess *session, conn *streamConn, proc *child.Process, broken <-chan struct{}) {
	select {
	case <-conn.ended:
	case <-broken:
		sess.end(&fault.Fault{What: fmt.Sprintf("command %q closed its stdin and went on running", c.cfg.Command),
			Hint: "see the server's messages in the log"})
		return
	case <-proc.Exited:
		// A descendant that left the process group may hold stdout open.
		if !wait.For(nil, conn.ended, run.DrainTime) {
			conn.release()
		}
		<-conn.ended
	}
	if time.Now().Unix()-conn.canceled.Load() <= 2 && !errors.Is(sess.open.err(), transport.ErrClosed) {
		c.catalog.change(func(h *habits) { h.CancelDeaths++ })
	}
	f := &fault.Fault{Hint: "see the server's messages in the log", Cause: sess.open.err()}
	f.What = fmt.Sprintf("command %q closed its stdout", c.cfg.Command)
	if ending := proc.Ending(exitTime); ending != "" {
		f.What = fmt.Sprintf("command %q %s", c.cfg.Command, ending)
	}
	if cause := proc.Cause(); cause != "" {
		f.What += "; its stderr says: " + cause
	}
	sess.end(f)
}

// connectSSE connects over the transport of protocol 2024-11-05, which no server of 2026-07-28
// offers any more: so it is not asked for that. life bounds the session, ctx the connecting.
func (c *connector) connectSSE(life, ctx context.Context) (*session, *fault.Fault) {
	wire, err := transport.DialSSE(ctx, life, c.http, c.cfg.Limits.Message)
	if err != nil {
		return nil, fault.OfConnect(c.cfg, err, c.redact)
	}
	sess := newSession(c.entry, c.lifecycle.stopping)
	conn := newStreamConn(sess, wire)
	conn.needs = &signInNeeds{sess, c.http}
	var watching sync.WaitGroup
	watching.Go(func() {
		<-conn.ended
		sess.end(&fault.Fault{What: "the connection ended: " + c.redact.Text(fault.Plain(sess.open.err())),
			Hint: "see the server's own log", Cause: sess.open.err()})
	})
	sess.shut = func(<-chan struct{}) {
		conn.release()
		watching.Wait()
	}
	sess.asked.follow(c.requestRule(), c.isolation, nil, false)
	if a := c.handshake(ctx, sess, true); a.err != nil {
		f := c.handshakeFault(ctx, sess, a)
		sess.shut(c.group.kill)
		return nil, f
	}
	return sess, nil
}

// connectHTTP initialises a session over Streamable HTTP.
func (c *connector) connectHTTP(ctx context.Context) (*session, *fault.Fault) {
	sess := newSession(c.entry, c.lifecycle.stopping)
	life := context.WithoutCancel(ctx)
	l := newHTTPLane(life, sess, c.http)
	sess.shut = func(kill <-chan struct{}) {
		l.close(life, kill)
		sess.end(&fault.Fault{What: "the session ended"})
	}
	if a := c.handshake(ctx, sess, c.skipsProbe()); a.err != nil {
		sess.shut(c.group.kill)
		return nil, c.handshakeFault(ctx, sess, a)
	}
	sess.shownID = c.redact.Text(sess.id)
	return sess, nil
}
