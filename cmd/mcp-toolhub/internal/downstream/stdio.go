package downstream

import (
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
	actor   tool.Actor
	caller  *caller // of the one client, on every revision

	writing sync.Mutex
	out     io.Writer
	broken  bool // a write has failed: the client is gone

	lanes    sync.WaitGroup // what is in waiting, or runs
	waiting  chan func()    // requests and notifications that have not begun, in the order of the wire
	places   chan struct{}  // has one element for each request that is being served
	line     tool.Line
	greeted  chan struct{} // closed when initialize was answered
	inputEnd chan struct{} // closed when the client has sent its last message

	// What initialize has said. The reader of messages sets it, others read it once greeted is closed.
	client       tool.Client
	capabilities json.RawMessage
	initialized  bool // the client is answered, or about to be
	joined       sync.Once
}

const (
	// maxServed bounds how many calls of a client on a pipe are served at the same time, up to when
	// the client has the answer. Others wait; what the client says besides (answers, cancellations)
	// does not.
	maxServed = 128

	// maxNotes bounds what may wait when a notification comes that is to be passed on.
	maxNotes = 1000

	// passOnWithin bounds how long what follows such a notification waits for it.
	passOnWithin = 10 * time.Second
)

// Stdio says whom ServeStdio serves.
type Stdio struct {
	Profile string
	Moved   bool       // another hub may have served the client before, and asked it something
	Actor   tool.Actor // zero: the user who started the hub
}

// ServeStdio serves the client on in and out until in ends or ctx is done. When in ends, the calls
// that were read are answered first. A client that closes its end is no error.
func (s *Server) ServeStdio(ctx context.Context, in io.Reader, out io.Writer, of Stdio) error {
	if err := s.CheckProfile(of.Profile); err != nil {
		return fmt.Errorf("serve stdio: %w", err)
	}
	if of.Actor == (tool.Actor{}) {
		of.Actor = tool.Actor{Name: tool.Local, Door: "stdio"}
	}
	gone := make(chan struct{})
	d := &stdioDoor{server: s, profile: of.Profile, actor: of.Actor,
		out: out, greeted: make(chan struct{}), inputEnd: make(chan struct{}), places: make(chan struct{}, maxServed),
		waiting: make(chan func(), maxNotes+maxInflight)}
	session := tool.Session{Key: "stdio/" + rand.Text(), Name: sessionName(of.Actor, ""), Person: tool.Local,
		Ended: gone, Client: d}
	d.caller = &caller{session: session, out: newOutbox(nil), view: of.Profile,
		questions: questions{series: questionPrefix}}
	if of.Moved {
		d.caller.questions.series += rand.Text() + "-"
	}
	defer s.leave(d.caller)
	defer close(gone)
	defer s.deps.Grants.EndSession(session.Key)
	hub := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(hub))
	defer cancel(nil)
	defer context.AfterFunc(hub, func() { cancel(HubStops()) })()
	ended := make(chan error, 1)
	go func() { ended <- d.readAll(ctx, in) }()
	var err error
	go d.beginAll()
	var telling sync.WaitGroup
	telling.Go(func() { d.tell(ctx) })
	select {
	case err = <-ended:
		cause := goneClient()
		if errors.Is(err, os.ErrDeadlineExceeded) { // the client goes on at another hub
			cause = HubStops()
		}
		d.caller.questions.end(cause)
		if d.caller.inflight.isAny() && jsonrpc.IsUnread(out) {
			d.caller.inflight.cancelAll(cause)
		}
		d.finish(ctx)
	case <-ctx.Done():
	}
	cancel(goneClient())
	s.suspensions.endOf(session.Key, causeOf(ctx, goneClient()))
	select {
	case <-finished(func() {
		d.lanes.Wait() // calls that were cut off answer so
		telling.Wait()
	}):
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

// Ask puts questions of a server to the client outside of its requests.
func (d *stdioDoor) Ask(ctx context.Context, server string, questions []tool.Question) ([]tool.Answer, error) {
	<-d.greeted // soon: the servers were told of the client by initialize
	p, _ := d.peer(&jsonrpc.Message{})
	during := &attempt{peer: p, reply: &stdioReplier{door: d}, server: server,
		notes: &callNotes{parts: &d.server.parts}}
	return during.askOnStream(ctx, questions)
}

// tell writes the notifications of the outbox, behind the answer to initialize.
func (d *stdioDoor) tell(ctx context.Context) {
	select {
	case <-d.greeted:
	case <-ctx.Done():
	}
	for {
		select {
		case <-d.caller.out.wake:
			d.caller.out.drain(func(method string, params json.RawMessage) {
				d.write(whole(jsonrpc.NotificationText(method, params)))
			}, ctx.Done())
		case <-ctx.Done():
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
	d.write(whole(jsonrpc.ErrorText(id, d.server.tooLarge(int64(large.Limit)))))
}

// receive takes in one line: a message, or on the revisions that allow it a batch of them.
func (d *stdioDoor) receive(ctx context.Context, line []byte) {
	if line[0] == '[' && rawjson.Valid(line) {
		d.receiveBatch(ctx, line)
		return
	}
	m := jsonrpc.Parse(line)
	if m.Fault != nil && !isCall(m) {
		d.write(whole(jsonrpc.ErrorText(m.ID, m.Fault)))
		return
	}
	d.dispatch(ctx, m, d)
}

// responses takes the response to a request; one without parts is the response to a cancelled one.
// It reports whether that was written.
type responses interface {
	write(text pieces) (written bool)
}

// write writes a message on a line, unless the client is gone.
func (d *stdioDoor) write(text pieces) (written bool) {
	if text.parts == nil {
		return false
	}
	text, err := text.line()
	if err != nil {
		return false
	}
	text = text.framed(nil, "\n").toDisk()
	defer text.file.Close()
	d.writing.Lock()
	defer d.writing.Unlock()
	if !d.broken && text.writeTo(d.out) != nil {
		d.broken = true
		d.caller.inflight.cancelAll(goneClient())
	}
	return !d.broken
}

// dispatch serves a message. reply gets the response.
func (d *stdioDoor) dispatch(ctx context.Context, m *jsonrpc.Message, reply responses) {
	refuse := func(why *tool.RPCError) { reply.write(whole(jsonrpc.ErrorText(m.ID, why))) }
	switch {
	case m.IsRequest() && m.Method == tool.MethodInitialize:
		d.initialize(ctx, m, reply)
	case m.IsRequest():
		p, refusal := d.peer(m)
		switch {
		case refusal == nil:
		case !isCall(m):
			refuse(refusal)
			return
		case m.Fault == nil: // which comes first
			m.Fault = refusal
		}
		if refusal := d.server.enter(p.actor, len(m.Text)); refusal != nil {
			refuse(refusal)
			return
		}
		d.join(p.actor.Client, p.hop)
		// Before the next line is read: it may cancel this call.
		opened, call, refusal := d.caller.inflight.add(ctx, m.ID)
		if refusal != nil {
			d.server.exit(p.actor, len(m.Text))
			refuse(refusal)
			return
		}
		d.serve(opened, p, m, &stdioReplier{door: d, id: m.ID, call: call, reply: reply})
	case isCustomNote(d.profile, m):
		d.passNote(ctx, m)
	default:
		d.server.heed(d.caller, m)
	}
}

// serve answers a request on a goroutine of its own, once there is a place for it. The calls of a
// client get their places in the order in which it wrote them: one that waits for those before it,
// to keep their order, must not have the place that they need.
func (d *stdioDoor) serve(ctx context.Context, p *peer, m *jsonrpc.Message, r *stdioReplier) {
	d.lanes.Add(1)
	d.waiting <- func() {
		d.places <- struct{}{}
		if isCall(m) {
			p.arrival = new(tool.Arrival)
			d.line.Join(p.arrival)
		}
		go func() {
			d.server.serveLane(ctx, p, m, r)
			p.arrival.Leave()
			r.call.end()
			d.server.exit(p.actor, len(m.Text))
			<-d.places
			d.lanes.Done()
		}()
	}
}

// beginAll begins what has come, as long as the client is served.
func (d *stdioDoor) beginAll() {
	for {
		select {
		case begin := <-d.waiting:
			begin()
		case <-d.caller.session.Ended:
			return
		}
	}
}

// errInitializedTwice says that what is initialized already is not initialized again.
func errInitializedTwice(what, instead string) *tool.RPCError {
	return jsonrpc.InvalidRequest(fmt.Sprintf("this %s is initialized already: %s", what, instead))
}

// passNote sends a notification on that the hub does not know, in the order of the wire.
func (d *stdioDoor) passNote(ctx context.Context, m *jsonrpc.Message) {
	p, refusal := d.peer(m)
	if !d.initialized { // notifications do not say of which revision they are
		p.modern, p.actor.Client.ProtocolVersion, refusal = true, modernVersion, nil
	}
	if refusal != nil {
		return
	}
	if len(d.waiting) >= maxNotes {
		d.server.deps.Logger.Warn("a client's notification was dropped: the server has not taken in those before it",
			"waiting", maxNotes, "method", clip(m.Method))
		return
	}
	if d.server.enter(p.actor, 0) != nil {
		return
	}
	d.lanes.Add(1)
	d.waiting <- func() {
		passed := finished(func() {
			d.server.forwarder.passNote(ctx, p, m)
			d.server.exit(p.actor, 0)
			d.lanes.Done()
		})
		select {
		case <-passed:
		case <-time.After(passOnWithin):
		}
	}
}

// peer returns the sender of a request on this connection.
func (d *stdioDoor) peer(m *jsonrpc.Message) (*peer, *tool.RPCError) {
	p := &peer{profile: d.profile, actor: d.actor, session: d.caller.session, caller: d.caller, quit: d.inputEnd}
	p.actor.Session = d.caller.session.Key
	p.meta.read(m.Object)
	if p.meta.version >= modernVersion {
		return p, modernPeer(p)
	}
	if !d.initialized && m.Method != tool.MethodPing {
		return p, jsonrpc.InvalidRequest(fmt.Sprintf("%q before initialize: up to protocol 2025-11-25 send "+
			"initialize first; from %s on write "+
			"%q and %q into params._meta of each request", m.Method, modernVersion, mcp.MetaKeyProtocolVersion,
			mcp.MetaKeyClientCapabilities))
	}
	p.actor.Client, p.hop.ClientCapabilities = d.client, d.capabilities
	return p, nil
}

// initialize answers initialize. The client is told of changes from then on, but behind the answer.
func (d *stdioDoor) initialize(ctx context.Context, m *jsonrpc.Message, reply responses) {
	if d.initialized {
		reply.write(whole(jsonrpc.ErrorText(m.ID, errInitializedTwice("connection",
			"go on with it, or start the hub anew"))))
		return
	}
	client, result, refusal := d.server.initialize(ctx, d.profile, m)
	if refusal != nil {
		reply.write(whole(jsonrpc.ErrorText(m.ID, refusal)))
		return
	}
	d.join(client, tool.Hop{ClientCapabilities: capabilitiesOf(m)})
	d.client, d.capabilities, d.initialized = client, capabilitiesOf(m), true
	actor := d.actor
	actor.Session, actor.Client = d.caller.session.Key, client
	d.server.join(d.profile, actor, d.caller)
	reply.write(answerText(m.ID, whole(result)))
	close(d.greeted)
}

// join tells servers of the session, once.
func (d *stdioDoor) join(client tool.Client, says tool.Hop) {
	says.Revision, says.Direct = client.ProtocolVersion, direct(d.profile)
	d.joined.Do(func() { d.server.deps.Servers.Joined(d.caller.session, says) })
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

// stdioReplier answers one lane request.
type stdioReplier struct {
	door  *stdioDoor
	id    json.RawMessage
	call  *inflightCall // ends before the client has the answer: it may use the id again then
	reply responses
}

// end writes the response. One to a request that the client has cancelled has no parts: "The receiver of
// a cancellation SHOULD NOT send a response for the cancelled request."
func (r *stdioReplier) end(text pieces) (written bool) {
	if r.call.end() {
		text = pieces{}
	}
	return r.reply.write(text)
}

func (r *stdioReplier) notify(method string, params json.RawMessage) {
	r.door.write(whole(jsonrpc.NotificationText(method, params)))
}

func (r *stdioReplier) request(id json.RawMessage, method string, params json.RawMessage) bool {
	return r.door.write(whole(jsonrpc.RequestText(id, method, params)))
}

func (r *stdioReplier) answer(result pieces) (written bool) { return r.end(answerText(r.id, result)) }

func (r *stdioReplier) refuse(err *tool.RPCError) { r.end(whole(jsonrpc.ErrorText(r.id, err))) }
