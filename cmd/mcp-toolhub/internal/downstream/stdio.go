package downstream

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// stdioDoor serves one client on a pair of pipes.
type stdioDoor struct {
	server  *Server
	profile string
	session tool.Session // of the one client, on every revision
	caller  *caller

	out     *lineWriter
	single  func(pieces) (written bool) // write, made once
	backlog *backlog
	closed  chan struct{} // when the door is closed, or the client cannot be written to
	close   func()        // closes that

	inflight  inflight
	questions questions
	lanes     sync.WaitGroup // lane requests of this client
	workers   workers        // serve them
	sequel    sequel
	line      tool.Line
	inputEnd  chan struct{} // closed when the client has sent its last message

	mu           sync.Mutex
	client       tool.Client     // of the initialize handshake
	capabilities json.RawMessage // likewise
	initialized  bool            // the client has been answered
	leave        func()          // ends what initialize has begun; nil before it
}

// ServeStdio serves the client on in and out, with the surface of profile, until in ends or ctx is
// done. When in ends, the calls that were read are answered first. A client that closes its end is
// no error. moved says that another hub may have served the client before, and asked it something.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, profile string, moved bool) error {
	set := s.settings.Load()
	if set.profiles[profile] == nil {
		return fmt.Errorf("serve stdio: %w", set.unknown(profile))
	}
	gone := make(chan struct{})
	defer close(gone)
	session := tool.Session{Key: "stdio/" + rand.Text(), Name: sessionName(stdioActor(), ""), Person: tool.Local,
		Ended: gone}
	d := &stdioDoor{server: s, profile: profile, session: session,
		caller:  &caller{session: session, out: newOutbox(nil), view: profile},
		backlog: newBacklog(), inputEnd: make(chan struct{}), workers: newWorkers(), closed: make(chan struct{})}
	d.close = sync.OnceFunc(func() { close(d.closed) })
	if moved {
		d.questions.series = rand.Text() + "-"
	}
	d.single = d.write
	d.out = newLineWriter(out, d.backlog, func() {
		d.inflight.cancelAll(goneClient())
		d.close()
	})
	defer s.sessionEnded(session.Key)
	hub := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(hub))
	defer cancel(nil)
	defer context.AfterFunc(hub, func() { cancel(HubStops()) })()
	defer d.part()
	ended := make(chan error, 1)
	go func() { ended <- d.readAll(ctx, in) }()
	var err error
	var telling sync.WaitGroup
	telling.Go(d.tell)
	select {
	case err = <-ended:
		cause := goneClient()
		if errors.Is(err, os.ErrDeadlineExceeded) { // the client goes on at another hub
			cause = HubStops()
		}
		d.questions.end(cause)
		if d.inflight.isAny() && jsonrpc.IsUnread(out) {
			d.inflight.cancelAll(cause)
		}
		d.finish(ctx)
	case <-ctx.Done():
	}
	cancel(goneClient())
	s.suspensions.endOf(session.Key, causeOf(ctx))
	d.settle()
	d.close()
	select {
	case <-finished(telling.Wait):
	case <-time.After(closeWithin): // the client does not read
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("serve stdio: %w", err)
	}
	return nil
}

// CheckProfile returns an error that names all profiles, or servers, unless there is the one that
// ServeStdio is to serve.
func (s *Server) CheckProfile(profile string) error {
	if set := s.settings.Load(); set.profiles[profile] == nil {
		return set.unknown(profile)
	}
	return nil
}

// unknown returns the error for a profile that does not exist. It names those that do: profiles, or
// servers for a direct view.
func (s *settings) unknown(profile string) error {
	wanted, direct := strings.CutPrefix(profile, directPrefix)
	var known []string
	for _, name := range slices.Sorted(maps.Keys(s.profiles)) {
		if rest, is := strings.CutPrefix(name, directPrefix); is == direct {
			known = append(known, rest)
		}
	}
	if direct {
		return fmt.Errorf("no server %q in the config: name one of %q", wanted, known)
	}
	return fmt.Errorf("no profile %q in the config: name one of %q", wanted, known)
}

// part ends what initialize began.
func (d *stdioDoor) part() {
	d.mu.Lock()
	leave := d.leave
	d.leave = func() {}
	d.mu.Unlock()
	if leave != nil {
		leave()
	}
}

// tell writes the notifications of the outbox.
func (d *stdioDoor) tell() {
	for {
		select {
		case <-d.caller.out.wake:
			d.caller.out.drain(func(method string, params json.RawMessage) {
				_ = d.out.line(jsonrpc.NotificationText(method, params)) // a client that is gone is noticed by the door
			}, d.closed)
		case <-d.closed:
			return
		}
	}
}

// closeWithin bounds the time that a session takes to end whose client does not read.
const closeWithin = 2 * time.Second

// readAll reads messages until the input ends.
func (d *stdioDoor) readAll(ctx context.Context, in io.Reader) error {
	// The limit in force when the line comes counts, so it is asked for each time.
	r := jsonrpc.NewLineReader(in, func() int { return int(d.server.cfg().MaxMessageBytes) }, nil)
	for {
		d.backlog.wait(ctx.Done(), d.closed)
		line, err := r.Next()
		if large := (*jsonrpc.TooLarge)(nil); errors.As(err, &large) {
			d.refuseLong(large)
			continue
		}
		if err != nil {
			return err
		}
		d.receive(ctx, line.Text)
		if r.Buffered() == 0 {
			// a read may block this thread: what was received is not to wait for another one to
			// wake up
			runtime.Gosched()
		}
	}
}

// refuseLong answers a message that was too large, so that nobody waits for it.
func (d *stdioDoor) refuseLong(large *jsonrpc.TooLarge) {
	id, _ := large.About.Get("id")
	if _, request := large.About.Get("method"); !request || !jsonrpc.IsID(id) {
		id = nil
	}
	d.server.deps.Logger.Warn("a client's message was refused: it is over a limit", "limit",
		"hub.limits.client_message",
		"bytes", large.Limit)
	_ = d.out.line(jsonrpc.ErrorText(id,
		jsonrpc.InvalidRequest(fmt.Sprintf("the message has more than %d bytes (hub.limits.client_message): "+
			"send less, or raise that in the hub's config", large.Limit))))
}

// receive takes in one line: a message, or on the revisions that allow it a batch of them.
func (d *stdioDoor) receive(ctx context.Context, line []byte) {
	if line[0] == '[' && rawjson.Valid(line) {
		d.receiveBatch(ctx, line)
		return
	}
	m, refusal := parse(line)
	if refusal != nil {
		_ = d.out.line(jsonrpc.ErrorText(m.ID, refusal))
		return
	}
	d.dispatch(ctx, m, d.single)
}

// write sends the response to a single request; one without parts is the response to a cancelled one.
func (d *stdioDoor) write(text pieces) (written bool) {
	return text.parts != nil && d.out.write(text) == nil
}

// dispatch serves a message. reply gets the response.
func (d *stdioDoor) dispatch(ctx context.Context, m *jsonrpc.Message, reply func(pieces) (written bool)) {
	switch {
	case m.IsRequest() && m.Method == methodInitialize:
		d.initialize(ctx, m, reply)
	case m.IsRequest():
		p, refusal := d.peer(m)
		switch {
		case refusal == nil:
		case !isCall(m):
			reply(whole(jsonrpc.ErrorText(m.ID, refusal)))
			return
		case m.Fault == nil: // which comes first
			m.Fault = refusal
		}
		if refusal := d.server.enter(p.actor, len(m.Text)); refusal != nil {
			reply(whole(jsonrpc.ErrorText(m.ID, refusal)))
			return
		}
		// Before the next line is read: it may cancel this call.
		opened, done, refusal := d.inflight.add(ctx, m.ID)
		if refusal != nil {
			d.server.exit(p.actor, len(m.Text))
			reply(whole(jsonrpc.ErrorText(m.ID, refusal)))
			return
		}
		d.serve(ctx, opened, p, m, &stdioReplier{door: d, id: m.ID, size: len(m.Text), done: done, reply: reply})
	case m.Method == noteCancelled && m.ID == nil && d.inflight.cancel(m.Params):
	case m.Method == noteRootsChanged && m.ID == nil:
		d.server.deps.Servers.RootsChanged(ctx, d.session, m.Params)
	case isCustomNote(d.profile, m):
		d.passNote(ctx, m)
	case m.IsResponse():
		d.server.takeResponse(&d.questions, m)
	}
}

// serve answers a request on a goroutine of its own. called is the context of the request, done
// ends it, and frees its id.
func (d *stdioDoor) serve(ctx, called context.Context, p *peer, m *jsonrpc.Message, r *stdioReplier) {
	behind := d.sequel.before()
	if isCall(m) {
		p.arrival = &r.arrival
		d.line.Join(p.arrival)
	}
	d.backlog.queue(&r.turn)
	d.lanes.Add(1)
	d.workers.run(ctx, func() {
		defer r.leave()
		behind()
		r.turn.wait(called)
		d.server.serveLane(called, p, m, r)
	})
}

// errInitializedTwice says that what is initialized already is not initialized again.
func errInitializedTwice(what, instead string) *tool.RPCError {
	return jsonrpc.InvalidRequest(fmt.Sprintf("this %s is initialized already: %s", what, instead))
}

// passNote sends a notification on that the hub does not know, in the order of the wire.
func (d *stdioDoor) passNote(ctx context.Context, m *jsonrpc.Message) {
	p, refusal := d.peer(m)
	d.mu.Lock()
	stateless := !d.initialized
	d.mu.Unlock()
	if stateless { // notifications do not say of which revision they are
		p.modern, p.actor.Client.ProtocolVersion, refusal = true, modernVersion, nil
	}
	if refusal != nil || d.server.enter(p.actor, 0) != nil {
		return
	}
	m.Params = bytes.Clone(m.Params)
	d.lanes.Add(1)
	taken := d.sequel.after(func() {
		defer d.lanes.Done()
		defer d.server.exit(p.actor, 0)
		d.server.forwarder.passNote(ctx, p, m)
	})
	if !taken {
		d.lanes.Done()
		d.server.exit(p.actor, 0)
		d.server.deps.Logger.Warn("a client's notification was dropped: the server has not taken in those before it",
			"waiting", maxSequel,
			"method", clip(m.Method))
	}
}

// stdioActor returns the user who started the hub.
func stdioActor() tool.Actor { return tool.Actor{Name: tool.Local, Door: "stdio"} }

// peer returns the sender of a request on this connection.
func (d *stdioDoor) peer(m *jsonrpc.Message) (*peer, *tool.RPCError) {
	p := &peer{profile: d.profile, actor: stdioActor(), session: d.session, caller: d.caller, quit: d.inputEnd}
	p.actor.Session = d.session.Key
	p.meta.read(m.Object)
	if p.meta.version >= modernVersion {
		return p, modernPeer(p)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.initialized && m.Method != methodPing {
		return p, jsonrpc.InvalidRequest(fmt.Sprintf("%q before initialize: up to protocol 2025-11-25 send "+
			"initialize first; from %s on write "+
			"%q and %q into params._meta of each request", m.Method, modernVersion, mcp.MetaKeyProtocolVersion,
			mcp.MetaKeyClientCapabilities))
	}
	p.actor.Client, p.hop.ClientCapabilities, p.questions = d.client, d.capabilities, &d.questions
	return p, nil
}

// initialize answers initialize. The client is told of changes from then on, but behind the answer.
func (d *stdioDoor) initialize(ctx context.Context, m *jsonrpc.Message, reply func(pieces) (written bool)) {
	d.mu.Lock()
	again := d.initialized
	d.mu.Unlock()
	if again {
		reply(whole(jsonrpc.ErrorText(m.ID, errInitializedTwice("connection", "go on with it, or start the hub anew"))))
		return
	}
	client, result, refusal := d.server.initialize(ctx, d.profile, m)
	if refusal != nil {
		reply(whole(jsonrpc.ErrorText(m.ID, refusal)))
		return
	}
	d.mu.Lock()
	d.client, d.capabilities, d.initialized = client, capabilitiesOf(m), true
	if d.leave == nil {
		d.caller.out.hold()
		defer d.caller.out.release()
		actor := stdioActor()
		actor.Session, actor.Client = d.session.Key, d.client
		d.leave = d.server.join(d.profile, actor, d.caller)
	}
	d.mu.Unlock()
	reply(answerText(m.ID, whole(result)))
}

// finish waits until everything that was read has been answered, or ctx is done.
func (d *stdioDoor) finish(ctx context.Context) {
	close(d.inputEnd)
	limit, cancel := context.WithTimeout(ctx, d.server.cfg().HTTP.DrainTimeout)
	defer cancel()
	select {
	case <-finished(d.lanes.Wait):
	case <-limit.Done(): // its calls are cut off
	}
}

// settle waits until calls that were cut off have answered so. No more of them begin: the input or
// the hub is at its end.
func (d *stdioDoor) settle() {
	select {
	case <-finished(func() {
		d.lanes.Wait()
		d.out.flush()
	}):
	case <-time.After(closeWithin): // the client does not read
	}
}

// stdioReplier answers one lane request.
type stdioReplier struct {
	door  *stdioDoor
	id    json.RawMessage
	size  int    // of the request, in bytes
	done  func() // ends the request: the client may use the id again once it has the answer
	reply func(pieces) (written bool)
	turn  turn

	arrival tool.Arrival
	left    bool
}

// leave implements replier. It may be called again.
func (r *stdioReplier) leave() {
	if r.left {
		return
	}
	r.left = true
	r.arrival.Leave()
	r.door.backlog.over(&r.turn)
	r.done()
	r.door.server.exit(stdioActor(), r.size)
	r.door.lanes.Done()
}

func (r *stdioReplier) end(text pieces) (written bool) {
	r.done()
	return r.reply(text)
}

func (r *stdioReplier) notify(method string, params json.RawMessage) {
	_ = r.door.out.line(jsonrpc.NotificationText(method, params)) // a client that is gone is noticed by the door
}

func (r *stdioReplier) request(id json.RawMessage, method string, params json.RawMessage) bool {
	return r.door.out.line(jsonrpc.RequestText(id, method, params)) == nil
}

func (r *stdioReplier) abandon(ctx context.Context) bool {
	if !errors.Is(context.Cause(ctx), errWithdrawn) {
		return false
	}
	r.end(pieces{})
	return true
}

func (r *stdioReplier) answer(result pieces) (written bool) { return r.end(answerText(r.id, result)) }

func (r *stdioReplier) refuse(err *tool.RPCError) { r.end(whole(jsonrpc.ErrorText(r.id, err))) }
