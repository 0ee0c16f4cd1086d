package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	sdkrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
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
	notifications *notifications
	hubVersion    string
	launcher      *child.Launcher
	http          *transport.HTTP // nil for stdio
	kill          <-chan struct{} // closed when stopping must be brisk
	onStart       func(pid int)   // a child was started

	generation
	olderNext bool // the attempt failed with server/discover unanswered
}

// generation records which revision a server has shown to speak.
type generation struct {
	older       bool // a revision before 2026-07-28
	slowProbe   bool // it does not answer server/discover, which takes long to find out
	inferred    bool // other connections know
	endsOnProbe bool // it ends when it is asked server/discover
}

// connect starts or reaches the server and initialises a session, within the connect timeout. Only run calls it.
func (c *connector) connect(ctx context.Context) (*session, *fault.Fault) {
	limited, cancel := context.WithTimeout(ctx, c.cfg.Timeouts.Connect)
	defer cancel()
	if c.tokens != nil {
		if _, err := c.tokens.Token(limited); err != nil {
			return nil, fault.OfToken(c.cfg, err, c.redact)
		}
	}
	var sess *session
	var f *fault.Fault
	switch c.cfg.Transport {
	case StreamableHTTP:
		sess, f = c.connectHTTP(limited)
	case SSE:
		sess, f = c.connectSSE(ctx, limited)
	default:
		sess, f = c.connectStdio(limited)
	}
	if f != nil {
		if ctx.Err() == nil && limited.Err() != nil && !f.Auth {
			f = &fault.Fault{
				What: fmt.Sprintf("no answer to initialize within %s", c.cfg.Timeouts.Connect),
				Hint: "check that it is an MCP server and that it can start; " +
					"if it is only slow, raise timeout of its entry",
				Cause: f,
			}
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

// skipsProbe reports whether server/discover is not sent. A server that answers it at once is asked
// at each reconnect: it may have become one of the other generation. One that does not answer costs
// seconds, and is asked again when it fails as an older one. The first connection of a session
// knows from others.
func (c *connector) skipsProbe() bool { return c.older && (c.slowProbe || c.inferred) }

// handshake initialises a session over a stream.
func (c *connector) handshake(
	ctx context.Context, sess *session, conn *streamConn, older bool,
) (*mcp.ClientSession, error) {
	conn.asked.follow(c.requestRule()) // some servers ask as soon as they are initialised
	stop := context.AfterFunc(ctx, func() { conn.shut(context.Cause(ctx)) })
	sdk, err := c.initialize(ctx, conn, older, &conn.declared)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return sdk, err
	}
	sess.established(sdk, &conn.declared, c.hubVersion, c.redact)
	sess.undiscovered = conn.probe.isUnanswered()
	conn.hop = sess.hop
	c.useLane(sess, conn)
	return sdk, nil
}

// initialize lets the SDK do its part over transport: the version, and who the two sides are. said is what the server
// answers there. With an error there may be a session, which is to be closed.
func (c *connector) initialize(
	ctx context.Context, transport mcp.Transport, older bool, said *transport.Declared,
) (*mcp.ClientSession, error) {
	client := mcp.NewClient(
		&mcp.Implementation{Name: HubCommand, Version: c.hubVersion},
		&mcp.ClientOptions{
			Logger:         slog.New(slog.DiscardHandler), // what it logs may quote messages
			Capabilities:   c.offers(),
			MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
		})
	client.AddReceivingMiddleware(refuseServerRequests)
	client.AddSendingMiddleware(c.observeHandshake)
	var opts mcp.ClientSessionOptions
	if older {
		opts.ProtocolVersion = hop.NewestWithSession
	}
	sdk, err := client.Connect(ctx, transport, &opts)
	if err == nil {
		err = said.Fault()
	}
	return sdk, err
}

// observeHandshake is a sending middleware for the SDK's client, which tells who observes of
// initialize and server/discover.
func (c *connector) observeHandshake(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if strings.HasPrefix(method, "notifications/") {
			return next(ctx, method, req)
		}
		end := c.asks(ctx, method)
		res, err := next(ctx, method, req)
		if rpc := (*sdkrpc.Error)(nil); errors.As(err, &rpc) {
			end(&tool.RPCError{Code: rpc.Code, Message: rpc.Message})
		} else {
			end(err)
		}
		return res, err
	}
}

// connectStdio starts a child. Some servers of older revisions end when the first message is not initialize; they are
// started again and spared the question.
func (c *connector) connectStdio(ctx context.Context) (*session, *fault.Fault) {
	older := c.skipsProbe() || c.endsOnProbe
	sess, probed, f := c.startChild(ctx, older)
	c.olderNext = probed
	if f == nil || older || !probed || ctx.Err() != nil {
		return sess, f
	}
	sess, _, again := c.startChild(ctx, true)
	if again != nil {
		return nil, f
	}
	c.endsOnProbe = true
	return sess, nil
}

// startChild starts one child and initialises it. probed reports that it failed after server/discover was sent.
func (c *connector) startChild(ctx context.Context, older bool) (sess *session, probed bool, f *fault.Fault) {
	proc, f := c.launcher.Start(c.cfg, c.log, c.redact)
	if f != nil {
		return nil, false, f
	}
	sess = newSession()
	sess.pid = proc.PID()
	c.onStart(sess.pid)
	lines := transport.NewLines(proc.Stdin, proc.Stdout, c.cfg.Limits.Message, c.memory)
	conn := newStreamConn(lines, c.probeTime(), c.notifications.handler(sess), c.log, c.redact)
	sess.cut = conn.ended
	var watching sync.WaitGroup
	watching.Go(func() { c.watchChild(sess, conn, proc, lines.Broken) })
	sess.shut = func(kill <-chan struct{}) {
		conn.shut(transport.ErrClosed)
		proc.Stop(kill)
		conn.release()
		watching.Wait()
	}
	sdk, err := c.handshake(ctx, sess, conn, older)
	if err != nil {
		probed = conn.probe.asked()
		f = c.initializeFault(ctx, sess, &conn.declared, err)
		sess.shut(c.kill)
		return nil, probed, f
	}
	shut := sess.shut
	sess.shut = func(kill <-chan struct{}) {
		shut(kill)
		_ = sdk.Close() // the connection is closed: this ends the SDK's own goroutines
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
	f := &fault.Fault{Hint: "see the server's messages in the log", Cause: conn.err()}
	f.What = fmt.Sprintf("command %q closed its stdout", c.cfg.Command)
	if ending := proc.Ending(exitTime); ending != "" {
		f.What = fmt.Sprintf("command %q %s", c.cfg.Command, ending)
	}
	if cause := proc.Cause(); cause != "" {
		f.What += "; its stderr says: " + cause
	}
	sess.end(f)
}

// initializeFault explains why initialize failed, with what the server has said, or the child or
// the connection in the end.
func (c *connector) initializeFault(
	ctx context.Context, sess *session, said *transport.Declared, err error,
) *fault.Fault {
	var rpc *sdkrpc.Error
	if errors.As(err, &rpc) && rpc.Code == transport.CodeOversize {
		return (&transport.Oversize{Limit: c.cfg.Limits.Message}).Fault("initialize")
	}
	if errors.As(err, &rpc) {
		return &fault.Fault{
			What:  fmt.Sprintf("initialize was refused: %s (JSON-RPC error %d)", c.redact.Text(rpc.Message), rpc.Code),
			Hint:  "check that the server speaks a protocol version between 2024-11-05 and 2026-07-28",
			Cause: err,
		}
	}
	// that the child ends as well is what the SDK made of it
	if ctx.Err() == nil && said.IsAnswered() && !isBroken(err) {
		return c.unusableFault(err)
	}
	if ctx.Err() == nil && wait.For(ctx.Done(), sess.ended, reasonWithin) {
		f := *sess.reason
		f.What += " (before it answered initialize)"
		f.Hint = "run the command by hand to see why"
		if c.cfg.Transport == SSE {
			f.Hint = "check that the server runs and that url is right"
		}
		return &f
	}
	return &fault.Fault{
		What:  "initialize failed: " + c.redact.Text(fault.Plain(err)),
		Hint:  "check that it is an MCP server",
		Cause: err,
	}
}

// unusableFault explains that a server has answered initialize with something that the SDK refuses.
func (c *connector) unusableFault(err error) *fault.Fault {
	return &fault.Fault{
		What: "the answer to initialize cannot be used: " + c.redact.Text(fault.Plain(err)),
		Hint: "check that the server speaks a protocol version between 2024-11-05 and 2026-07-28, or report this to " +
			"whoever maintains it",
		Cause: err,
	}
}

// isBroken reports whether err says that a connection has ended.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, mcp.ErrConnectionClosed) ||
		errors.Is(err, transport.ErrClosed)
}

// connectSSE connects over the transport of protocol 2024-11-05, which no server of 2026-07-28
// offers any more: so it is not asked for that. life bounds the session, ctx the connecting.
func (c *connector) connectSSE(life, ctx context.Context) (*session, *fault.Fault) {
	wire, err := transport.DialSSE(ctx, life, c.http, c.cfg.Limits.Message)
	if err != nil {
		return nil, fault.OfConnect(c.cfg, err, c.redact)
	}
	sess := newSession()
	conn := newStreamConn(wire, c.probeTime(), c.notifications.handler(sess), c.log, c.redact)
	conn.needs = &signInNeeds{c.http, c.cfg, sess.end}
	var watching sync.WaitGroup
	watching.Go(func() {
		<-conn.ended
		sess.end(&fault.Fault{What: "the connection ended: " + c.redact.Text(fault.Plain(conn.err())),
			Hint: "see the server's own log", Cause: conn.err()})
	})
	sdk, err := c.handshake(ctx, sess, conn, true)
	sess.shut = func(<-chan struct{}) {
		conn.release()
		watching.Wait()
		if sdk != nil {
			_ = sdk.Close()
		}
	}
	if err != nil {
		var status *fault.StatusError
		f := c.initializeFault(ctx, sess, &conn.declared, err)
		if errors.As(err, &status) {
			f = fault.OfConnect(c.cfg, err, c.redact)
		}
		sess.shut(c.kill)
		return nil, f
	}
	return sess, nil
}

// connectHTTP initialises a session over Streamable HTTP.
func (c *connector) connectHTTP(ctx context.Context) (*session, *fault.Fault) {
	control := transport.NewControl(c.http.Pool, c.probeTime(), c.cfg.Limits.Message)
	client := c.http.Client(control)
	stop := context.AfterFunc(ctx, control.Abort)
	sdk, err := c.initialize(ctx, &mcp.StreamableClientTransport{
		Endpoint:   c.http.URL.String(),
		HTTPClient: client,
		// The lane listens itself: the SDK gives the whole session up after a few streams that were cut.
		DisableStandaloneSSE: true,
	}, c.skipsProbe(), control.Declared())
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		f := c.httpFault(ctx, control, err)
		control.Abort()
		if sdk != nil {
			transport.CloseSDK(sdk, c.kill, control.Abort)
		}
		return nil, f
	}
	sess := newSession()
	sess.established(sdk, control.Settle(), c.hubVersion, c.redact)
	sess.undiscovered = control.Unanswered.Load()
	l := &httpLane{
		signInNeeds: signInNeeds{c.http, c.cfg, sess.end}, calls: c.http.Client(c.http.Pool), control: client,
		session: sess.id, version: sess.version, hop: sess.hop, log: c.log, limit: c.cfg.Limits.Message,
		notifications: c.notifications.handler(sess), onSuspect: sess.suspected,
	}
	life := context.WithoutCancel(ctx)
	l.asked = newServerRequests(func(body []byte) { l.respond(life, body) })
	c.useLane(sess, l)
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := sdk.Wait(); err != nil {
			sess.end(&fault.Fault{What: "the session ended: " + c.redact.Text(fault.Plain(err)), Cause: err})
		}
		sess.end(&fault.Fault{What: "the session ended"})
	})
	sess.shut = func(kill <-chan struct{}) {
		transport.CloseSDK(sdk, kill, control.Abort)
		watching.Wait()
		l.background.Wait()
	}
	return sess, nil
}

// httpFault explains why a session over HTTP could not be initialised.
func (c *connector) httpFault(ctx context.Context, control *transport.Control, err error) *fault.Fault {
	last := control.LastAnswer()
	if large := control.Oversize(); large != nil {
		return large.Fault("initialize")
	}
	var rpc *sdkrpc.Error
	refused := errors.As(err, &rpc) && rpc.Code != rejectedByTransport
	if ctx.Err() == nil && last.Status >= 400 {
		f := fault.OfStatus(c.cfg, last.Status, last.Retry, err)
		if refused && !f.Auth {
			f.What += ": " + c.redact.Text(rpc.Message)
		}
		return f
	}
	if ctx.Err() == nil && last.Foreign() {
		return &fault.Fault{
			What: fmt.Sprintf("%s answered with content type %q instead of JSON", secret.URL(c.cfg.URL),
				c.redact.Text(last.Media)),
			Hint:  "check that url is that of an MCP endpoint",
			Cause: err,
		}
	}
	if last.Status != 0 && refused {
		return c.initializeFault(ctx, newSession(), &transport.Declared{}, err)
	}
	if ctx.Err() == nil && control.Declared().IsAnswered() && !isBroken(err) && !errors.As(err, new(net.Error)) {
		return c.unusableFault(err)
	}
	return fault.OfConnect(c.cfg, err, c.redact)
}

// rejectedByTransport is the code that the SDK gives to requests that it could not send.
const rejectedByTransport = -32005
