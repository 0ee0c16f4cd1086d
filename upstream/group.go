// Package upstream connects to MCP servers, keeps them alive, lists their tools and calls them.
//
// A Group holds all servers of a configuration. Each is a state machine of its own, driven by one
// goroutine: starting, ready, backoff, needs_auth, needs_setup, stopped. Nothing that one server
// does, or fails to do, makes another wait. A server with state can have a connection for each
// client session, instead of one for all: see isolation.
//
// What goes to a server and comes back travels on a lane: raw JSON with the hub's own ids and progress
// tokens, over a pipe or an HTTP session. See lane. So calls, lists and all that clients ask of a
// server do not change by a single byte on their way. The SDK gives the types of the handshake.
//
// What tools are called downstream, who may call them and what is recorded of a call is left to others.
package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/budget"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/child"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/lists"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// coalesce is the time in which changes are collected before listeners are told.
const coalesce = 20 * time.Millisecond

// retireWithin bounds the calls in flight to a server that Apply takes out.
const retireWithin = 30 * time.Second

// Group is a set of upstream servers. Its methods are safe for concurrent use.
type Group struct {
	logger   *slog.Logger
	slots    *child.Slots
	launcher *child.Launcher
	memory   *budget.Budget // for large messages
	dirty    chan struct{}
	kill     chan struct{} // closed when stopping must be brisk
	running  sync.WaitGroup
	roster   atomic.Pointer[roster]
	changes  atomic.Int64
	ids      sync.Map // by id of a server: *atomic.Int64, its requests so far

	// Those of NewGroup, which Apply does not change.
	version  string
	catalogs Catalogs                                                           // nil where nothing is cached
	signIns  *signin.Store                                                      // nil where nobody signs in
	observe  func(ctx context.Context, server, method string) (end func(error)) // nil for nobody

	subscriptions *clientSubscriptions

	restating     sync.Mutex
	serverChanges map[ServerChange]struct{} // taken by ServerChanges

	mu sync.Mutex
	// by id: closed when the last server of that id, and those before it, have ended
	ends           map[string]<-chan struct{}
	listeners      []func()
	onNotification []func(tool.Notification) // not changed after Start
	within         withinFunc                // makes the context of a server; nil until started
	cancel         context.CancelFunc        // ends the contexts of all servers
	closed         bool
	killed         bool
}

// roster is the servers at one moment. It is never changed.
type roster struct {
	servers []*server // in the order of the configuration
	byID    map[string]*server
}

// NewGroup makes a group of cfg's servers. It starts nothing. An error says which entry is wrong.
func NewGroup(cfg Config, logger *slog.Logger) (*Group, error) {
	cfg = cfg.withDefaults()
	g := &Group{
		logger:   logger,
		memory:   budget.New(cfg.Memory),
		slots:    child.NewSlots(cfg.StartParallel),
		launcher: child.NewLauncher(cfg.Self, cfg.Origin, logger),
		version:  cmp.Or(cfg.Version, "0"), catalogs: cfg.Catalogs, signIns: cfg.SignIns, observe: cfg.Observe,
		subscriptions: newClientSubscriptions(),
		ends:          make(map[string]<-chan struct{}),
		dirty:         make(chan struct{}, 1), serverChanges: make(map[ServerChange]struct{}),
		kill: make(chan struct{}),
	}
	r, err := g.enrol(cfg, nil)
	if err != nil {
		return nil, err
	}
	g.roster.Store(r)
	return g, nil
}

// enrol makes the roster of cfg. A server whose entry is the same as in old stays; another one of the same id inherits
// what was listed.
func (g *Group) enrol(cfg Config, old *roster) (*roster, error) {
	r := &roster{byID: make(map[string]*server, len(cfg.Servers))}
	var faults []error
	var recalling sync.WaitGroup
	defer recalling.Wait()
	places := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, sc := range cfg.Servers {
		sc = sc.WithDefaults()
		if g.signIns != nil && sc.SignsIn() {
			sc.SignIn = g.signIns.Mark(sc)
		}
		if r.byID[sc.ID] != nil {
			faults = append(faults, fmt.Errorf("add server %q: the id is used twice: rename one", sc.ID))
			continue
		}
		var before *server
		if old != nil {
			before = old.byID[sc.ID]
		}
		s := before
		if before == nil || !reflect.DeepEqual(before.cfg, sc) {
			var err error
			if s, err = g.newServer(cfg, sc, before); err != nil {
				faults = append(faults, fmt.Errorf("add server %q: %w", sc.ID, err))
				continue
			}
			var old *catalog
			if before != nil {
				old = before.catalog
			}
			recalling.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				s.catalog.recall(old)
			})
		}
		r.servers = append(r.servers, s)
		r.byID[sc.ID] = s
	}
	return r, errors.Join(faults...)
}

// newServer makes a server that has not been started, without what was listed before. before is the
// one that it replaces, or nil.
func (g *Group) newServer(cfg Config, sc ServerConfig, before *server) (*server, error) {
	ids, _ := g.ids.LoadOrStore(sc.ID, new(atomic.Int64))
	redact := sc.Entry().Redactor()
	e := &entry{
		cfg: sc, group: g, ids: ids.(*atomic.Int64), memory: g.memory.Share(), losses: new(atomic.Int64),
		log: slog.New(redact.Handler(g.logger.With("server", sc.ID).Handler())), redact: redact,
		firstWithin: cfg.FirstListWithin,
		retry:       retry{min: cfg.RetryMin, max: cfg.RetryMax, budget: cfg.RetryBudget, rest: cfg.RetryRest},
	}
	var own *people
	if sc.OAuth.PerCaller {
		own = newPeople(sc, g.signIns)
	}
	if g.signIns != nil && sc.SignsIn() {
		e.tokens = g.signIns.Source(sc)
		redact.Live = e.tokens.Secrets
		if own != nil {
			redact.Live = own.secrets
		}
	}
	e.catalog = &catalog{entry: e}
	s, err := newServer(e, tool.ServerStopped)
	if err != nil {
		return nil, err
	}
	s.slots = g.slots
	if before != nil {
		s.lifecycle.up, _ = before.lifecycle.outlook() // it still works
	}
	if sc.Isolated || own != nil {
		e.use, s.isolation = useListing, newIsolation(s, own)
	} else if sc.Transport != StreamableHTTP && !sc.Shared {
		s.isolation = newIsolation(s, nil)
	}
	s.connector.isolation = s.isolation
	return s, nil
}

// changed notes that a catalog or a state is another than before.
func (g *Group) changed() {
	g.changes.Add(1)
	wait.Signal(g.dirty)
}

// Memory is the memory for large messages.
func (g *Group) Memory() *budget.Budget { return g.memory }

// Changes counts the changes so far: as long as it is the same, so are all catalogs and states.
func (g *Group) Changes() int64 { return g.changes.Load() }

// restate notes that a server has told person, or all where that is "", of a change of kind k.
func (g *Group) restate(server, person string, k lists.Kind) {
	g.restating.Lock()
	defer g.restating.Unlock()
	g.serverChanges[ServerChange{server, person, k == lists.ToolKind, k == lists.PromptKind,
		k == lists.ResourceKind}] = struct{}{}
	wait.Signal(g.dirty)
}

// ServerChange names a list that a server called changed. The hub's copies can be equal all the
// same. A client of that server alone is told anyway, because a server can mean more by it than its
// lists show.
type ServerChange struct {
	Server                    string
	Person                    string // whom it told, where each caller signs in; "" is all
	Tools, Prompts, Resources bool
}

// ServerChanges returns what servers have told of since the last time. Listeners of OnChange are called for it as well.
func (g *Group) ServerChanges() []ServerChange {
	g.restating.Lock()
	defer g.restating.Unlock()
	all := slices.Collect(maps.Keys(g.serverChanges))
	clear(g.serverChanges)
	return all
}

// OnChange registers f to be called, from one goroutine, soon after a catalog or a state has changed; changes that
// follow each other closely are told once. f must return quickly. It is called before Start.
func (g *Group) OnChange(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listeners = append(g.listeners, f)
}

// Start begins to start all servers that are not disabled and returns at once. They stop when ctx ends or Close is
// called. A group is started once.
func (g *Group) Start(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cancel != nil || g.closed {
		return
	}
	ctx, g.cancel = context.WithCancel(ctx)
	g.within = func() (context.Context, context.CancelFunc) { return context.WithCancel(ctx) }
	for _, s := range g.roster.Load().servers {
		g.start(s)
	}
	listeners := g.listeners
	g.running.Go(func() { g.tell(ctx, listeners) })
}

// start lets a server run, after the one that it replaces has ended. g.mu is held.
func (g *Group) start(s *server) {
	after := g.ends[s.cfg.ID]
	g.ends[s.cfg.ID] = s.over
	if after == nil {
		none := make(chan struct{})
		close(none)
		after = none
	}
	s.lifecycle.begin(after)
	if s.cfg.IsOff() {
		if f := missing(s.cfg); f != nil && !s.cfg.Disabled {
			s.lifecycle.setState(tool.ServerNeedsSetup, nil, f, time.Time{})
		}
		s.lifecycle.settle()
		g.running.Go(func() {
			<-after
			close(s.over)
		})
		return
	}
	ctx, stop := g.within()
	s.stop = stop
	if s.isolation != nil {
		s.isolation.begin(ctx)
	}
	if s.cfg.Lazy && s.catalog.isKnown() {
		s.lifecycle.sleep(nil) // from now on calls wake it
	} else {
		s.lifecycle.starting(nil) // from now on calls wait for it
	}
	g.running.Go(func() {
		defer close(s.over)
		defer func() { <-after }() // over means that those before it are over, too
		defer stop()
		select {
		case <-after:
		case <-ctx.Done():
		}
		s.keepAlive(ctx)
		if s.isolation != nil {
			s.isolation.close()
		}
	})
}

// Apply makes the group one of cfg's servers. Servers whose entry has not changed go on
// undisturbed; one whose entry has changed is started anew when the calls to it have ended, and
// keeps its tools listed meanwhile. An error says which entry is wrong, and nothing has changed
// then. Version, Self, StartParallel, SignIns, Catalogs and Observe stay those of NewGroup; how
// failed servers are tried again changes for those that are started anew.
func (g *Group) Apply(cfg Config) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errors.New("apply servers: the group is closed")
	}
	old := g.roster.Load()
	next, err := g.enrol(cfg.withDefaults(), old)
	if err != nil {
		return err
	}
	g.memory.Resize(cfg.Memory)
	for _, s := range next.servers {
		if old.byID[s.cfg.ID] != s && g.within != nil {
			g.start(s)
		}
	}
	g.roster.Store(next) // now that calls can wait for the new servers, and before the old ones turn calls away
	for id, before := range old.byID {
		switch {
		case next.byID[id] == before:
			if before.isolation != nil {
				before.isolation.followSignIns()
			}
		case g.within == nil:
			before.lifecycle.settle()
		case !before.cfg.IsOff():
			g.running.Go(before.retire)
		}
	}
	g.changed()
	return nil
}

// tell calls the listeners after changes.
func (g *Group) tell(ctx context.Context, listeners []func()) {
	for {
		select {
		case <-g.dirty:
		case <-ctx.Done():
			return
		}
		timer := time.NewTimer(coalesce)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		select {
		case <-g.dirty: // came in meanwhile: told now
		default:
		}
		for _, f := range listeners {
			f()
		}
	}
}

// Close stops all servers and returns when every process, connection and goroutine of the group is gone. Until ctx ends
// children may finish in good order; after that they are killed, and Close returns ctx's error. Calls in flight fail.
// Twice is harmless.
func (g *Group) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	if g.cancel != nil {
		g.cancel()
	}
	g.mu.Unlock()
	g.memory.Close()
	done := make(chan struct{})
	go func() {
		g.running.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
		g.mu.Lock()
		if !g.killed {
			g.killed = true
			close(g.kill)
		}
		g.mu.Unlock()
		<-done
	}
	return errors.Join(err, g.launcher.Close())
}

// Execute calls the tool of x on its server and returns what the server answered. The error is a
// *tool.RPCError, which the server itself returned, or a *tool.Failure. What its Error says is fit
// to be shown. A call that may have been executed is never sent again. When ctx ends, the server is
// told and Execute returns at once.
func (g *Group) Execute(ctx context.Context, x *tool.Execution) (tool.Reply, error) {
	r := &clientRequest{call: x, Request: tool.Request{
		Server: x.Tool.Server, Method: tool.MethodToolsCall, Name: x.Tool.Native, Params: x.Params, Meta: x.Meta,
		Hop: x.Hop, Session: x.Session,
		Ask: x.Ask, InputByRetry: x.InputByRetry, Notify: x.Notify, Progress: x.Progress,
	}}
	err := g.dispatch(ctx, r)
	return r.reply, err
}

// dispatch hands x to its server.
func (g *Group) dispatch(ctx context.Context, x *clientRequest) error {
	for {
		x.reply = tool.Reply{}
		s := g.roster.Load().byID[x.Server]
		if s == nil {
			return &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "unknown_server",
				Message: fmt.Sprintf("there is no server %q: list again what there is", x.Server)}
		}
		switch err := s.execute(ctx, x); {
		case err == nil:
			return nil
		case !errors.Is(err, errRetired):
			return redacted(s.redact, err)
		}
		// Nothing was sent. The roster does not hold s any more: what Apply has put in its place takes the call.
	}
}

// Catalogs returns what each server offers, in the order of the configuration. A server that fails keeps its last
// catalog.
func (g *Group) Catalogs() []tool.Catalog {
	servers := g.roster.Load().servers
	out := make([]tool.Catalog, len(servers))
	for i, s := range servers {
		_, needs := s.lifecycle.outlook()
		out[i] = s.catalog.snapshot(needs)
	}
	return out
}

// Statuses returns the state of each server, in the order of the configuration.
func (g *Group) Statuses() []tool.ServerStatus {
	servers := g.roster.Load().servers
	out := make([]tool.ServerStatus, len(servers))
	for i, s := range servers {
		out[i] = s.status()
	}
	return out
}

// WaitReady waits until every server that is not disabled was ready or has failed once.
func (g *Group) WaitReady(ctx context.Context) error {
	for _, s := range g.roster.Load().servers {
		select {
		case <-s.lifecycle.settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// AwaitFirstLists waits until each of the servers with these ids has listed for the first time, or
// has failed. It waits for a server until Config.FirstListWithin, or within where one is given that
// is longer, after that was started. It does not wait for a server that is lazy or disabled, or
// whose tools are known from an earlier start.
//
// recent reports whether one of the servers was started within that time: then its list may have
// come since OnChange was last told.
func (g *Group) AwaitFirstLists(ctx context.Context, ids []string, within ...time.Duration) (recent bool) {
	all, most := g.roster.Load().byID, slices.Max(append(within, 0))
	for _, id := range ids {
		if s := all[id]; s != nil && s.awaitFirstList(ctx, most) {
			recent = true
		}
	}
	return recent
}

// Freshness returns what a server said, when it listed it last, of the list that method reads. It
// says nothing of a list that is not up to date, such as that of a server which is down. ok is
// false where the server has no such list. What Catalogs shows is as new as that once Changes has
// not changed since.
func (g *Group) Freshness(server, method string) (f tool.Freshness, ok bool) {
	s, l, known := g.roster.Load().byID[server], lists.List(0), false
	if l, known = lists.Of(method); s == nil || !known {
		return f, true
	}
	return s.catalog.freshness(l, s.lifecycle.isCurrent())
}

// OnNotification registers f to be told what servers say on their own: changes of what was
// subscribed to, and all else that is no affair of the connection itself, unless it belongs to a
// call and went to its Notify. Those of one stream come in order and one at a time, those of several
// concurrently. f does not block: what waits for a client that does not read is f's to bound. Of
// Params, the keys of _meta that belong to the hop are left out. It is called before Start.
func (g *Group) OnNotification(f func(tool.Notification)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.onNotification = append(g.onNotification, f)
}

// notify hands a notification to whoever listens. It is called once the group has been started.
func (g *Group) notify(n tool.Notification) {
	for _, f := range g.onNotification {
		f(n)
	}
}
