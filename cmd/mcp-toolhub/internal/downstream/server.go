// Package downstream is the MCP server that clients talk to: over stdio and Streamable HTTP, on every protocol revision
// from 2024-11-05 to 2026-07-28 at the same address.
//
// Two hands serve a client. The SDK answers initialize, server/discover and ping. What passes
// through the hub (tools, prompts, resources, completion, log messages, subscriptions) travels on lanes of the hub's own,
// from raw JSON to raw JSON, so that nothing is lost on the way. For tools/call a lane only reads a call off its wire,
// gives it to the pipeline (package invoke) and writes the outcome back; other requests go on to the one server that they
// concern. What belongs to no request waits in an outbox for the client's standing stream. Which tools a caller sees, and
// what happens to a call, is decided elsewhere.
package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream/internal/suspended"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/sessionid"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Surfaces tells what a caller sees. It is safe for concurrent use and quick: it is asked on every request.
type Surfaces interface {
	// Surface returns the surface of profile for the caller, or an error where there is no such profile. A caller without a
	// Door is nobody in particular: then it is asked for what servers can do, and not for tools.
	Surface(profile string, caller tool.Actor) (*tool.Surface, error)
}

// Deps are the parts that a Server works with.
type Deps struct {
	Surfaces Surfaces
	Pipeline *invoke.Pipeline
	Servers  Servers                    // nil: nothing but tools is served
	Statuses func() []tool.ServerStatus // for health and the servers command
	Problems func() []string            // what makes the hub itself unwell, for people; empty when all is well
	Warnings func() []string            // what of the config has no effect, for people; nil says nothing

	// Fresh tells what a server said of the list that a method reads, which is as surfaces show it at that moment; ok is
	// false where it has no such list. Nil: servers say nothing.
	Fresh func(server, method string) (f tool.Freshness, ok bool)

	// FirstLists waits until all servers that a surface shows have listed for the first time, or have failed, or have had
	// enough time for it. Nil: nobody is waited for.
	FirstLists func(context.Context, *tool.Surface)

	// SessionEnded is told of each session, by what tool.Actor.Session calls it, when nothing more can come of it. It
	// returns quickly. Nil: nobody is told.
	SessionEnded func(session string)

	// Refuse returns why a request besides tools/call, which the pipeline decides about, may not reach its server; nil lets it
	// pass. Where Refuse itself is nil, everything passes.
	Refuse func(context.Context, Forwarded) *tool.Failure

	Logger *slog.Logger

	// StateKey seals what clients carry: session ids, and what goes from one request of a call to the next.
	// seal.KeySize random bytes; nil stands for a key that lasts as long as the server.
	StateKey []byte

	// EndedSessions is the directory where sessions are recorded that ended for good. Where it is "", a session ends for good
	// with the server, or when it was idle for too long.
	EndedSessions string
}

// Server serves clients through any number of doors at once: it wires the components below and dispatches methods to them.
// Make one with New.
type Server struct {
	deps     Deps
	impl     *mcp.Implementation
	sessions *sessions
	ids      *sessionid.Book
	entering sync.Mutex     // held while a session is entered, or ended for good
	strays   atomic.Int64   // responses of clients that answered no open question
	calls    sync.WaitGroup // lane requests being served, at every door
	settings atomic.Pointer[settings]
	callers  callers

	surfaces      surfaces
	toolCalls     toolCalls
	forwarder     forwarder
	tasks         tasks
	suspensions   suspensions
	notifications serverNotifications
	listeners     listeners
	listenStreams listenStreams
	subscriptions subscriptions
	ownerships    ownerships
	levels        wantedLevels

	mu       sync.Mutex
	draining bool
}

// settings are what Apply can change, all at once. They are never written to.
type settings struct {
	Config
	profiles map[string]*profileServer
	first    *profileServer // of the default profile
}

// profileServer serves one profile: the SDK's server, and the door over HTTP.
type profileServer struct {
	name string
	sdk  *mcp.Server
	door *httpDoor
}

// New returns a server of the profiles, the first of which is the default one; direct views are among them, by their names
// (see DirectView). No door is open to it yet.
func New(cfg Config, profiles []string, deps Deps) (*Server, error) {
	if len(profiles) == 0 || deps.Surfaces == nil || deps.Pipeline == nil || deps.Logger == nil {
		return nil, errors.New("new downstream server: surfaces, profiles, pipeline and logger are all needed")
	}
	cfg = cfg.withDefaults()
	impl := &mcp.Implementation{Name: cfg.Name, Title: "MCP Toolhub", Version: cfg.Version}
	info, err := json.Marshal(impl)
	if err != nil {
		return nil, fmt.Errorf("describe server: %w", err)
	}
	if deps.Servers == nil {
		deps.Servers = noServers{}
	}
	ids, err := sessionid.Open(deps.StateKey, deps.EndedSessions)
	if err != nil {
		return nil, fmt.Errorf("new downstream server: %w", err)
	}
	table, err := suspended.New[*attempt](deps.StateKey)
	if err != nil {
		return nil, fmt.Errorf("new downstream server: %w", err)
	}
	s := &Server{deps: deps, impl: impl, sessions: newSessions(), ids: ids}
	s.wire(info, table)
	deps.Servers.OnNotification(s.notifications.receive)
	s.Apply(cfg, profiles)
	return s, nil
}

// wire introduces the components to each other. info is serverInfo as clients get it.
func (s *Server) wire(info json.RawMessage, table *suspended.Table[*attempt]) {
	d := &s.deps
	s.levels.tell = d.Servers.SetLogLevel
	s.surfaces = surfaces{deps: d, config: s.cfg, serverInfo: info}
	s.notifications = serverNotifications{deps: d, surfaces: &s.surfaces, listeners: &s.listeners, subscriptions: &s.subscriptions,
		ownerships: &s.ownerships}
	s.suspensions = suspensions{deps: d, config: s.cfg, serving: &s.calls, notifications: &s.notifications, table: table}
	s.toolCalls = toolCalls{deps: d, serverInfo: info, surfaces: &s.surfaces, notifications: &s.notifications,
		suspensions: &s.suspensions, ownerships: &s.ownerships}
	s.forwarder = forwarder{deps: d, serverInfo: info, surfaces: &s.surfaces, notifications: &s.notifications,
		suspensions: &s.suspensions, ownerships: &s.ownerships}
	s.tasks = tasks{deps: d, surfaces: &s.surfaces, forwarder: &s.forwarder, ownerships: &s.ownerships}
	s.subscriptions = subscriptions{deps: d, surfaces: &s.surfaces, forwarder: &s.forwarder}
	s.listenStreams = listenStreams{deps: d, serverInfo: info, surfaces: &s.surfaces, forwarder: &s.forwarder, listeners: &s.listeners,
		subscriptions: &s.subscriptions, tasks: &s.tasks}
}

// Changed tells the clients of the profiles that their lists have changed. Several calls in quick succession become one
// notification of each kind.
func (s *Server) Changed(changes ...Change) { s.listeners.changed(changes...) }

// Apply puts other settings into force, for requests from now on. Sessions and standing streams stay, but for
// those of a profile that is gone, and of a token that is gone or has become another one.
// The name and the version are those of the start.
func (s *Server) Apply(cfg Config, profiles []string) {
	cfg = cfg.withDefaults()
	next := &settings{Config: cfg, profiles: make(map[string]*profileServer, len(profiles))}
	var before map[string]*profileServer
	var auth AuthConfig
	if old := s.settings.Load(); old != nil {
		before, auth = old.profiles, old.Auth
	}
	for _, name := range profiles {
		ps := before[name]
		if ps == nil {
			ps = s.newProfile(name)
		}
		next.profiles[name] = ps
	}
	next.first = next.profiles[profiles[0]]
	s.settings.Store(next)
	s.sessions.bound(cfg.HTTP.MaxSessions, cfg.HTTP.SessionIdle)
	over := func(profile string, a tool.Actor) bool {
		return next.profiles[profile] == nil || a.Door == httpActor && !cfg.Auth.lets(a.Name, auth)
	}
	s.closeWhere(func(sess *session) bool { return over(sess.profile, sess.actor) })
	s.listeners.closeWhere(func(l *listener) bool { return over(l.profile, l.actor) })
}

func (s *Server) newProfile(name string) *profileServer {
	ps := &profileServer{name: name, sdk: mcp.NewServer(s.impl, &mcp.ServerOptions{
		Logger:       slog.New(slog.DiscardHandler), // it logs every message at info
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}},
	})}
	ps.sdk.AddReceivingMiddleware(s.surfaces.describe(name))
	ps.door = s.newHTTPDoor(ps)
	return ps
}

// cfg returns the configuration in force.
func (s *Server) cfg() Config { return s.settings.Load().Config }

func (c Config) withDefaults() Config {
	def := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	if c.Name == "" {
		c.Name = "mcp-toolhub"
	}
	def(&c.MaxMessageBytes, 64<<20)
	def(&c.HTTP.MaxBodyBytes, 4<<20)
	def((*int64)(&c.InputTimeout), int64(10*time.Minute))
	def((*int64)(&c.HTTP.SessionIdle), int64(30*time.Minute))
	def((*int64)(&c.HTTP.DrainTimeout), int64(10*time.Second))
	if c.HTTP.MaxSessions <= 0 {
		c.HTTP.MaxSessions = 1000
	}
	return c
}

// enter counts a lane request in, or reports that the server is draining.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.calls.Add(1)
	return true
}

// Drain stops taking calls, ends those that wait for their client's next request, waits until those being served have
// ended or ctx is done, and then ends every session.
func (s *Server) Drain(ctx context.Context) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	s.listeners.stop()
	s.levels.stop()
	ended := make(chan struct{})
	go func() {
		s.suspensions.table.Close(&tool.Failure{Class: tool.ClassCanceled, Message: "the hub is stopping: call again from the start in a moment"})
		s.calls.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		s.deps.Logger.Warn("calls are cut off: they did not end in time", "limit", s.cfg().HTTP.DrainTimeout.String())
	}
	s.closeWhere(func(*session) bool { return true })
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// DrainTimeout is how long calls in flight have at a stop.
func (s *Server) DrainTimeout() time.Duration { return s.cfg().HTTP.DrainTimeout }

func errDraining() *tool.RPCError {
	return &tool.RPCError{Code: tool.CodeInternalError, Message: "the hub is stopping: connect again in a moment"}
}
