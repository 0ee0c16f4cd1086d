// Package upstream connects to MCP servers, keeps them alive, lists their tools and calls them.
//
// A Group holds all servers of a configuration. Each is a state machine of its own, driven by one goroutine: starting,
// ready, backoff, needs_auth, stopped. Nothing that one server does, or fails to do, makes another wait.
//
// The SDK's client does what it does well: initialize and discover, versions, pings, sessions. What must not change by
// a single byte on its way, tools/call and tools/list, travels beside it on a lane: raw JSON with the hub's own ids and
// progress tokens, over the same pipe or the same HTTP session. See lane.
//
// What tools are called downstream, who may call them and what is recorded of a call is left to others.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// coalesce is how long changes are collected before they are told.
const coalesce = 20 * time.Millisecond

// Group is a set of upstream servers. Its methods are safe for concurrent use.
type Group struct {
	servers []*server // in the order of the configuration
	byID    map[string]*server
	dirty   chan struct{}
	kill    chan struct{} // closed when stopping must be brisk
	running sync.WaitGroup

	mu        sync.Mutex
	listeners []func()
	cancel    context.CancelFunc // nil until started
	closed    bool
	killed    bool
}

// NewGroup makes a group of cfg's servers. It starts nothing. An error says which entry is wrong.
func NewGroup(cfg Config, logger *slog.Logger) (*Group, error) {
	cfg = cfg.withDefaults()
	g := &Group{
		byID:  make(map[string]*server, len(cfg.Servers)),
		dirty: make(chan struct{}, 1),
		kill:  make(chan struct{}),
	}
	slots := make(chan struct{}, cfg.StartParallel)
	var faults []error
	for _, sc := range cfg.Servers {
		s := &server{
			cfg: sc, timeouts: sc.Timeouts.withDefaults(), hubVersion: orText(cfg.Version, "0"), self: cfg.Self,
			retryMin: cfg.RetryMin, retryMax: cfg.RetryMax,
			log: logger.With("server", sc.ID), redact: newRedactor(sc),
			slots: slots, kill: g.kill, onChange: func() { poke(g.dirty) },
			settled: make(chan struct{}), moved: make(chan struct{}),
			stopping: make(chan struct{}), drained: make(chan struct{}),
			state: tool.ServerStopped, since: time.Now(),
		}
		if g.byID[sc.ID] != nil {
			faults = append(faults, fmt.Errorf("add server %q: the id is used twice: rename one", sc.ID))
			continue
		}
		switch sc.Transport {
		case StreamableHTTP, SSE:
			var err error
			if s.http, err = newHTTPServer(sc); err != nil {
				faults = append(faults, fmt.Errorf("add server %q: %w", sc.ID, err))
			}
		case Stdio:
		default:
			faults = append(faults, fmt.Errorf("add server %q: unknown transport %q: use stdio, http or sse", sc.ID, sc.Transport))
		}
		g.servers = append(g.servers, s)
		g.byID[sc.ID] = s
	}
	return g, errors.Join(faults...)
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
	listeners := g.listeners
	for _, s := range g.servers {
		if s.cfg.Disabled {
			s.settle()
			continue
		}
		s.become(tool.ServerStarting, nil, nil, time.Time{}) // a call that comes now is to wait
		g.running.Go(func() { s.run(ctx) })
	}
	g.running.Go(func() { g.tell(ctx, listeners) })
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
	return err
}

// Execute calls the tool of x on its server and returns what the server answered. The error is a *tool.RPCError, which
// the server itself returned, or a *tool.Failure. A call that may have been executed is never sent again. When ctx ends,
// the server is told and Execute returns at once.
func (g *Group) Execute(ctx context.Context, x *tool.Execution) (tool.Reply, error) {
	s := g.byID[x.Tool.Server]
	if s == nil {
		return tool.Reply{}, &tool.Failure{Class: tool.ClassDependencyUnavailable, Code: "unknown_server",
			Message: fmt.Sprintf("there is no server %q: list the tools again", x.Tool.Server)}
	}
	return s.execute(ctx, x)
}

// Catalogs returns what each server offers, in the order of the configuration. A server that fails keeps its last
// catalog.
func (g *Group) Catalogs() []tool.Catalog {
	out := make([]tool.Catalog, len(g.servers))
	for i, s := range g.servers {
		out[i] = s.catalog()
	}
	return out
}

// Statuses returns the state of each server, in the order of the configuration.
func (g *Group) Statuses() []tool.ServerStatus {
	out := make([]tool.ServerStatus, len(g.servers))
	for i, s := range g.servers {
		out[i] = s.status()
	}
	return out
}

// WaitReady waits until every server that is not disabled was ready or has failed once.
func (g *Group) WaitReady(ctx context.Context) error {
	for _, s := range g.servers {
		select {
		case <-s.settled:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
