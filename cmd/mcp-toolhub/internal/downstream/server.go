// Package downstream is the MCP server that clients talk to: over stdio and Streamable HTTP, on every protocol revision
// from 2024-11-05 to 2026-07-28 at the same address.
//
// Everything travels as raw JSON through the hub's own code, so that nothing is lost on the way;
// the SDK knows the types of what the hub says of itself. A tools/call goes to the pipeline
// (package invoke), other requests go on to the one server that they concern. Notifications that
// belong to no request wait in an outbox for the client's standing stream. Other packages decide
// which tools a caller sees, and what happens to a call.
//
// Server wires the components and dispatches methods to them:
//
//   - doors: stdioDoor, httpDoor and its sessions
//   - toolCalls serves tools/call; forwarder, tasks and surfaces serve other requests
//   - suspensions keeps calls of 2026-07-28 that wait for input (package suspended holds their table)
//   - listeners, subscriptions, listenStreams and serverNotifications tell clients what changes
//   - ownerships says whose the ids are that servers give
package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/time/rate"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream/internal/suspended"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/sessionid"
	"github.com/mcp-toolhub/mcp-toolhub/internal/spool"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Surfaces says which tools callers see. It is safe for concurrent use and quick: every request asks it.
type Surfaces interface {
	// Surface returns the surface of profile for the caller, or an error where there is no such
	// profile. A caller without a Door is nobody in particular: then it is asked for what servers
	// can do, and not for tools.
	Surface(profile string, caller tool.Actor) (*tool.Surface, error)

	// Fresh returns the cache hints of a server for the list that a method reads; ok is false where
	// it has no such list.
	Fresh(server, method string) (f tool.Freshness, ok bool)

	// FirstLists waits until all servers of a surface have listed once, have failed, or have had
	// enough time.
	FirstLists(context.Context, *tool.Surface)

	// ResourceURI returns the URI that stands for a resource of a server on every surface with several.
	ResourceURI(server, native string) string
}

// Status says how the hub and its servers are.
type Status interface {
	Servers() []tool.ServerStatus // for health and the servers command
	Problems() []string           // what makes the hub itself unwell, for people; empty when all is well
	Warnings() []string           // what of the config has no effect, for people
}

// Deps are the parts that a Server works with.
type Deps struct {
	Surfaces Surfaces
	Pipeline *invoke.Pipeline
	Servers  Servers
	Status   Status

	// Grants forgets what was granted for a session that has ended, by its tool.Actor.Session. It
	// returns quickly.
	Grants interface{ EndSession(session string) }

	// SignIns signs people in to servers. Nil: there are no pages for that.
	SignIns SignIns

	// Page is the page for people, which is served at /ui/ and lets browsers in by itself. Nil: there is none.
	Page http.Handler

	// Observer is told of each request besides tools/call, which the pipeline has observed, with the
	// _meta that goes on to servers. It returns the context in which the request is served; end is
	// called with the error that the client gets, or nil. Nil: nobody is told.
	Observer interface {
		Request(ctx context.Context, method string, meta json.RawMessage) (_ context.Context, end func(*tool.RPCError))
	}

	// Metrics answers with the metrics of the hub. Nil: there are none here.
	Metrics http.Handler

	// StoredResults reads what toolhub://results/ID stands for. Nil: nothing is stored.
	StoredResults StoredResults

	// Spool takes large results on their way to clients, so that slow ones hold up nobody. Nil: they stay in memory.
	Spool *spool.Dir

	// Events answers with a stream of the events of all callers, which ends when may returns false.
	Events interface {
		Serve(w http.ResponseWriter, r *http.Request, may func() bool)
	}

	Logger *slog.Logger

	// StateKey seals session ids and requestState, which clients carry: seal.KeySize random bytes.
	// Nil stands for a key that lasts as long as the server.
	StateKey []byte

	// EndedSessions is the directory where sessions are recorded that ended for good. Where it is
	// "", a session ends for good with the server, or when it was idle for too long.
	EndedSessions string
}

// Server serves clients through any number of doors at once: it wires the components below and
// dispatches methods to them. Make one with New.
type Server struct {
	parts
	refused  atomic.Int64   // requests without a valid token
	sayThat  rate.Sometimes // in the log
	strays   atomic.Int64   // responses of clients that answered no open question
	models   sync.Map       // the model that Codex has named last, by name of its caller
	callers  sync.Map       // *caller by name, of revisions without sessions: as many as there are tokens
	stopping atomic.Bool    // readiness says no

	mu       sync.Mutex
	draining bool
	held     map[string]int // bytes of requests under way, by tool.Actor.Ref of their caller
}

// parts are the components of a Server, and what all of them need. They know each other.
type parts struct {
	deps       Deps
	impl       *mcp.Implementation
	serverInfo json.RawMessage // impl as clients get it
	settings   atomic.Pointer[settings]
	calls      sync.WaitGroup // lane requests being served, at every door

	surfaces      surfaceReader
	toolCalls     toolCalls
	forwarder     forwarder
	tasks         taskRequests
	suspensions   suspensions
	notifications serverNotifications
	listeners     listeners
	listenStreams listenStreams
	subscriptions resourceSubscriptions
	ownerships    ownerships
	levels        wantedLevels
	sessions      sessions
}

// settings are everything that Apply replaces, all at once. They are never written to.
type settings struct {
	Config
	profiles map[string]*httpDoor
	first    *httpDoor // of the default profile
}

// New returns a server of the profiles. The first one is the default. Direct views are profiles,
// too (see DirectView). No door is open yet.
func New(cfg Config, profiles []string, deps Deps) (*Server, error) {
	if len(profiles) == 0 || deps.Surfaces == nil || deps.Pipeline == nil || deps.Servers == nil || deps.Logger == nil {
		return nil, errors.New("new downstream server: surfaces, profiles, pipeline, servers and logger are all needed")
	}
	cfg = cfg.withDefaults()
	impl := &mcp.Implementation{Name: cfg.Name, Title: "MCP Toolhub", Version: cfg.Version}
	info, err := json.Marshal(impl)
	if err != nil {
		return nil, fmt.Errorf("describe server: %w", err)
	}
	ids, err := sessionid.Open(deps.StateKey, deps.EndedSessions)
	if err != nil {
		return nil, fmt.Errorf("new downstream server: %w", err)
	}
	table, err := suspended.New[*attempt](deps.StateKey)
	if err != nil {
		return nil, fmt.Errorf("new downstream server: %w", err)
	}
	s := &Server{sayThat: rate.Sometimes{Interval: 10 * time.Second}}
	s.deps, s.impl, s.serverInfo, s.suspensions.table, s.sessions.ids = deps, impl, info, table, ids
	s.wire()
	deps.Servers.OnNotification(s.notifications.receive)
	s.Apply(cfg, profiles)
	return s, nil
}

// wire introduces the components to each other.
func (s *Server) wire() {
	s.surfaces.parts, s.toolCalls.parts, s.forwarder.parts, s.tasks.parts = &s.parts, &s.parts, &s.parts, &s.parts
	s.notifications.parts, s.listenStreams.parts, s.subscriptions.parts = &s.parts, &s.parts, &s.parts
	s.suspensions.parts, s.sessions.server, s.levels.servers = &s.parts, s, s.deps.Servers
}

// Elicited tells the client that was shown an address of the hub's own that what is done there is done.
func (s *Server) Elicited(id string) {
	s.notifications.receive(tool.Notification{Server: tool.HubItself, Method: tool.NoteElicited,
		Params: append(rawjson.AppendMember([]byte("{"), "elicitationId", rawjson.Quote(id)), '}')})
}

// Changed tells the clients of the profiles that their lists have changed.
func (s *Server) Changed(changes ...Change) { s.listeners.changed(changes...) }

// Apply puts other settings into force, for requests from now on. Sessions and standing streams
// stay, but for those of a profile that is gone, and of a token that is gone, has become another
// one, or may not open their profile any more. The name and the version are those of the start.
func (s *Server) Apply(cfg Config, profiles []string) {
	cfg = cfg.withDefaults()
	next := &settings{Config: cfg, profiles: make(map[string]*httpDoor, len(profiles))}
	var before map[string]*httpDoor
	var auth AuthConfig
	if old := s.settings.Load(); old != nil {
		before, auth = old.profiles, old.Auth
	}
	for _, name := range profiles {
		ps := before[name]
		if ps == nil {
			ps = &httpDoor{server: s, profile: name}
		}
		next.profiles[name] = ps
	}
	next.first = next.profiles[profiles[0]]
	s.settings.Store(next)
	s.sessions.bound(cfg.HTTP.MaxSessions, cfg.HTTP.SessionIdle)
	over := func(profile string, a tool.Actor) bool {
		return next.profiles[profile] == nil || a.Door == httpActor &&
			!(cfg.Auth.lets(a.Name, auth) && cfg.Auth.opens(a.Name, profile))
	}
	s.sessions.closeWhere(func(sess *httpSession) bool { return over(sess.profile, sess.actor) })
	s.listeners.closeWhere(func(l *listener) bool { return over(l.profile, l.actor) })
}

// cfg returns the configuration in force.
func (p *parts) cfg() *Config { return &p.settings.Load().Config }

// maxHeld bounds the bytes of one caller's requests that have not been answered. A single larger
// one is let in.
const maxHeld = 64 << 20

// enter counts a lane request of size bytes in, or says why it is refused. exit must follow where it is not.
func (s *Server) enter(from tool.Actor, size int) *tool.RPCError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return errDraining()
	}
	key := from.Ref()
	if held := s.held[key]; held > 0 && held+size > maxHeld {
		return &tool.RPCError{Code: tool.CodeInternalError,
			Message: fmt.Sprintf("your calls that wait or run hold %d MiB of arguments "+
				"already, of %d MiB at most: nothing ran; call again once some of them have ended", held>>20,
				maxHeld>>20)}
	}
	set(&s.held, key, s.held[key]+size)
	s.calls.Add(1)
	return nil
}

// exit ends what enter has begun.
func (s *Server) exit(from tool.Actor, size int) {
	s.calls.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	key := from.Ref()
	if s.held[key] -= size; s.held[key] == 0 {
		delete(s.held, key)
	}
}

// AnnounceStop makes readiness say 503, and waits for the drain delay, or until ctx is done. Calls
// are served on meanwhile, so that a proxy has time to send new ones elsewhere.
func (s *Server) AnnounceStop(ctx context.Context) {
	s.stopping.Store(true)
	delay := s.cfg().HTTP.drainDelay()
	if delay == 0 {
		return
	}
	s.deps.Logger.Info("stopping: calls are served for a while, and /health/ready says 503", "drain_delay",
		delay.String())
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
}

// Drain stops taking calls, ends those that wait for their client's next request, waits until those being served have
// ended or ctx is done, and then ends every session.
func (s *Server) Drain(ctx context.Context) {
	s.stopping.Store(true)
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.listeners.stop()
	s.levels.stop()
	ended := finished(func() {
		s.suspensions.table.Close(HubStops())
		s.calls.Wait()
	})
	select {
	case <-ended:
	case <-ctx.Done():
		s.deps.Logger.Warn("calls are cut off: they did not end in time", "limit", s.cfg().HTTP.DrainTimeout.String())
	}
	s.sessions.closeWhere(func(*httpSession) bool { return true })
}

// finished runs f, and returns a channel that is closed when f has returned.
func finished(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

// set sets m[key] to value, and makes m where it is nil.
func set[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = make(map[K]V)
	}
	(*m)[key] = value
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// DrainTimeout returns the time that calls in flight have at a stop.
func (s *Server) DrainTimeout() time.Duration { return s.cfg().HTTP.DrainTimeout }

func errDraining() *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeInternalError, Message: "the hub is stopping: connect again in a moment"}
}

// Servers leads to prompts, resources, notifications and other things of servers besides tools. It
// is safe for concurrent use. Errors of its methods are *tool.RPCError where a server has answered
// with one, or *tool.Failure.
type Servers interface {
	// Forward sends a request on to its server and returns the server's answer.
	Forward(ctx context.Context, r *tool.Request) (tool.Reply, error)

	// Method returns a method of a server besides tools/call as a tool, for permission and records.
	Method(server, method string, known bool) *tool.Tool

	// Personal returns the servers that list resources to each caller for itself.
	Personal() []string

	// Notify sends a notification on, and returns when the server has it or will not.
	Notify(ctx context.Context, r *tool.Request) error

	// Listen keeps a subscriptions/listen open at a server until ctx ends or the server refuses it,
	// which is the error. Each time that it is opened, agreed gets what the server agrees to; said
	// gets the notifications.
	Listen(ctx context.Context, r *tool.Request, agreed func(notifications json.RawMessage),
		said func(tool.Notification)) error

	// Subscribe makes a server tell of changes of a resource until Unsubscribe, over reconnects. Both are counted.
	Subscribe(ctx context.Context, server, uri string, who tool.Session, says tool.Hop) error
	Unsubscribe(ctx context.Context, server, uri string, who tool.Session) error

	// Joined says that a session has begun, and what its client says of itself.
	Joined(who tool.Session, says tool.Hop)

	// RootsChanged tells the servers that keep the roots of a session's client that these have
	// changed. It does not wait for them.
	RootsChanged(who tool.Session, params json.RawMessage)

	// SetLogLevel tells the most talkative level that any client wants; "" for none. It waits a moment for servers.
	SetLogLevel(level string)

	// OnNotification makes f take the notifications that belong to no call: log messages and
	// changes of resources. It is called before the servers are started; f does not block.
	OnNotification(f func(tool.Notification))
}

// direct reports whether a profile is the view of a single server under its native names.
func direct(profile string) bool { return strings.HasPrefix(profile, directPrefix) }

// serveLane answers a request.
func (s *Server) serveLane(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) {
	serve := s.handler(p, m.Method)
	if serve == nil {
		r.refuse(notServed(m.Method))
		return
	}
	p.hop.Revision, p.hop.Direct = p.actor.Client.ProtocolVersion, direct(p.profile)
	if p.actor.Client.Is(tool.Codex) {
		s.takeModel(p)
	}
	s.levels.ask(p)
	if s.deps.Observer != nil && m.Method != tool.MethodToolsCall {
		observed := &observedReplier{replier: r}
		var end func(*tool.RPCError)
		ctx, end = s.deps.Observer.Request(ctx, m.Method, p.meta.onward)
		defer func() { end(observed.refused) }()
		r = observed
	}
	if refusal := serve(ctx, p, m, r); refusal != nil {
		r.refuse(refusal)
	}
}

// metaCodexTurn is the key under which Codex describes the turn that a call belongs to.
const metaCodexTurn = "x-codex-turn-metadata"

// takeModel notes the model that Codex names. It lists tools before its first call, and names no
// model there: so the one that its person has used last counts.
func (s *Server) takeModel(p *peer) {
	client := &p.actor.Client
	turn, _ := rawjson.Get(p.meta.onward, metaCodexTurn)
	if text, ok := rawjson.String(turn); ok {
		turn = []byte(text)
	}
	if client.Model, _ = rawjson.GetString(turn, "model"); client.Model != "" {
		s.models.Store(p.actor.Name, client.Model)
	} else if last, ok := s.models.Load(p.actor.Name); ok {
		client.Model = last.(string)
	}
}

// observedReplier keeps the error that a client gets.
type observedReplier struct {
	replier
	refused *tool.RPCError
}

func (o *observedReplier) refuse(err *tool.RPCError) {
	o.refused = err
	o.replier.refuse(err)
}

// handler serves the requests of one method. It answers r, or returns why it refuses the request.
type handler func(ctx context.Context, p *peer, m *jsonrpc.Message, r replier) *tool.RPCError

// handler returns what serves a method on the peer's revision of the protocol; nil where nothing does.
func (s *Server) handler(p *peer, method string) handler {
	switch method {
	case tool.MethodToolsCall:
		return s.toolCalls.serve
	case tool.MethodToolsList, tool.MethodPromptsList, tool.MethodResourcesList, tool.MethodTemplatesList:
		return s.surfaces.list
	case tool.MethodPromptsGet:
		return s.forwarder.getPrompt
	case tool.MethodResourcesRead:
		return s.forwarder.readResource
	case tool.MethodComplete:
		return s.forwarder.complete
	case tool.MethodDiscover:
		return s.discover
	case tool.MethodPing:
		return s.ping
	}
	switch {
	case isTaskMethod(method):
		return s.tasks.handler(p, method)
	case direct(p.profile) && !isKnownRequest(method) && !strings.HasPrefix(method, notePrefix):
		// On other surfaces nobody could say which server is meant. A notification with an id is none
		// that the hub does not know: there are servers that heed a cancellation all the same.
		return s.forwarder.pass
	case p.modern && method == tool.MethodListen:
		return s.listenStreams.serve
	case p.modern: // subscriptions/listen and a level in each request have taken the place of these
	case method == tool.MethodSubscribe:
		return s.subscriptions.subscribe
	case method == tool.MethodUnsubscribe:
		return s.subscriptions.unsubscribe
	case method == tool.MethodSetLevel:
		return s.levels.set
	}
	return nil
}

// isKnownRequest reports whether the hub knows requests of method, of clients or of servers.
func isKnownRequest(method string) bool {
	switch method {
	case tool.MethodToolsCall, tool.MethodToolsList, tool.MethodPromptsList, tool.MethodPromptsGet,
		tool.MethodResourcesList, tool.MethodTemplatesList, tool.MethodResourcesRead, tool.MethodSubscribe,
		tool.MethodUnsubscribe, tool.MethodComplete, tool.MethodSetLevel, tool.MethodListen, tool.MethodInitialize,
		tool.MethodDiscover, tool.MethodPing:
		return true
	}
	return isTaskMethod(method) || tool.IsServerRequest(method)
}

// notePrefix begins the methods of the protocol's notifications.
const notePrefix = "notifications/"

// isCustomNote reports whether a message is a notification that is passed on because the hub does not
// know it, as requests of direct views are. A known request without an id is not: some servers would
// carry it out, past the pipeline. One that is not passed on is accepted and ignored: a client that
// was refused one over HTTP would give up its connection.
func isCustomNote(profile string, m *jsonrpc.Message) bool {
	if !direct(profile) || m.ID != nil || m.Method == "" || isKnownRequest(m.Method) {
		return false
	}
	switch m.Method {
	case tool.NoteInitialized, tool.NoteCancelled, tool.NoteProgress, tool.NoteRootsChanged:
		return false
	}
	return true
}

// join makes a session one that is told of changes, until leave is called.
func (s *Server) join(profile string, a tool.Actor, c *caller) {
	s.listeners.add(&listener{profile: profile, actor: a, caller: c, out: c.out, wants: Change{Tools: true,
		Prompts: true, Resources: true}})
	if c.session.IsOver() { // leave may have been called before
		s.leave(c)
	}
}

// leave drops what is kept for a session that has ended.
func (s *Server) leave(c *caller) {
	s.listeners.closeWhere(func(l *listener) bool { return l.caller == c })
	s.levels.drop(c.session.Key)
	s.ownerships.drop(c.session.Key)
}
