package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/embed"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// hub is the whole of it, wired: what the config names, from upstream servers to the server that clients talk to.
type hub struct {
	logger   *slog.Logger
	group    *upstream.Group
	journal  *persist.Journal
	pipeline *invoke.Pipeline
	commands *command.Runner
	server   *downstream.Server
	loader   *deferred.Loader
	hubTools []*tool.HubTool
	meaning  *embed.Store // nil where no embeddings are configured
	started  time.Time
	style    string // of names, for clients that ask for none; "" where their profile says it

	// What a reload replaces.
	settings atomic.Pointer[config.Settings]
	bounds   atomic.Pointer[map[string]invoke.Limits] // of the settings, by server
	builtin  atomic.Pointer[builtins]
	names    atomic.Pointer[namespace.Namespace]
	permission

	configProblem atomic.Pointer[string] // why the config file as it stands now is not in force; nil where it is
	updating      sync.Mutex
	refreshed     atomic.Int64 // the group's count of changes up to which the surfaces are true
	starting      starting
}

// maxSchemas is how many compiled input schemas the hub keeps.
const maxSchemas = 20000

// newHub builds the hub of the settings. Nothing runs yet but the journal; close ends that too. table returns the table of
// the hub's own tools.
func newHub(s *config.Settings, logger *slog.Logger, table func(*hub) []*tool.HubTool) (_ *hub, err error) {
	h := &hub{logger: logger, started: time.Now()}
	h.hubTools = table(h)
	defer func() {
		if err != nil && h.meaning != nil {
			h.meaning.Close()
		}
	}()
	if err := openStateDir(s.StateDir, logger); err != nil {
		return nil, err
	}
	if s.Upstream.Self, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	h.commands = command.NewRunner(s.Upstream.Self, logger)
	own, err := h.newBuiltins(s)
	if err != nil {
		return nil, err
	}
	s.Upstream.Version, s.Downstream.Version = version(), version()
	if s.Upstream.Catalogs, err = persist.OpenCatalogs(filepath.Join(s.StateDir, "catalogs")); err != nil {
		return nil, err
	}
	if h.group, err = upstream.NewGroup(s.Upstream, logger); err != nil {
		return nil, err
	}
	names, err := namespace.New(s.Profiles)
	if err != nil {
		return nil, err
	}
	h.put(s, own)
	h.names.Store(names)
	if err := h.openPermission(s, own); err != nil {
		return nil, err
	}
	if h.journal, err = persist.Open(s.Journal, logger); err != nil {
		return nil, err
	}
	key, err := seal.LoadKey(filepath.Join(s.StateDir, stateKey))
	if err != nil {
		return nil, errors.Join(err, h.journal.Close())
	}
	if err := h.newLoader(s, key); err != nil {
		return nil, errors.Join(err, h.journal.Close())
	}
	h.pipeline, err = invoke.New(invoke.Options{
		Executors: map[string]invoke.Executor{tool.SourceMCP: h.group, code.Name: builtIn{h}, declarative.Name: builtIn{h}},
		Admit:     h.loader.Admit, CommandLine: func(words string) string { return commandLine(s.StateDir, words) },
		Gate: h.gate.Load, Approvals: h.approvals, QueueOpen: h.queueOpen, Present: h.present,
		Journal: h.journal, Schemas: schema.NewCache(maxSchemas), Limits: h.limits, Logger: logger,
	})
	if err != nil {
		return nil, errors.Join(err, h.journal.Close())
	}
	h.server, err = downstream.New(s.Downstream, h.views(), downstream.Deps{Surfaces: h, Pipeline: h.pipeline,
		Servers: h.group, Fresh: h.fresh, Statuses: h.statuses, Problems: h.problems, Warnings: h.strays, Logger: logger, StateKey: key,
		FirstLists: h.firstLists, EndedSessions: filepath.Join(s.StateDir, "sessions"), SessionEnded: h.grants.EndSession,
		Refuse: h.refuse})
	if err != nil {
		return nil, errors.Join(err, h.journal.Close())
	}
	h.group.OnChange(h.refresh)
	h.refresh()
	return h, nil
}

// The keys of what clients carry, in the state directory. Renaming the one to the other makes the hub make another key,
// while selection_refs of the old one stay good.
const (
	stateKey    = "state.key"
	previousKey = "state.key.previous"
)

// newLoader makes what holds tools back and finds them.
func (h *hub) newLoader(s *config.Settings, key []byte) error {
	keys := [][]byte{key}
	previous := filepath.Join(s.StateDir, previousKey)
	if _, err := os.Stat(previous); err == nil {
		old, err := seal.LoadKey(previous)
		if err != nil {
			return err
		}
		keys = append(keys, old)
	}
	var options search.Options
	if s.Embeddings.URL != "" {
		store, err := embed.New(context.Background(), s.Embeddings) // until close
		if err != nil {
			return err
		}
		h.meaning, options.Meaning = store, store
	}
	var err error
	h.loader, err = deferred.New(s.Deferred, deferred.Options{Keys: keys, Record: h.recordSurface, Search: options, HubTools: h.hubTools})
	return err
}

// recordSurface gives the journal a surface that has come about. The request that brought it about does not wait for that.
func (h *hub) recordSurface(records ...tool.Record) {
	if err := h.journal.Append(context.Background(), records...); err != nil {
		h.logger.Warn("a surface is not in the journal", "error", err)
	}
}

// Surface implements downstream.Surfaces.
func (h *hub) Surface(profile string, caller tool.Actor) (*tool.Surface, error) {
	client := caller.Client
	if client.Names == "" {
		client.Names = h.style
	}
	full, err := h.names.Load().Surface(profile, client)
	if err != nil {
		return nil, err
	}
	if caller.Door != "" {
		full = h.gate.Load().Surface(full, caller)
	}
	return h.loader.Surface(full, caller.Client), nil
}

// fresh is what a server said of one of its lists, if the surfaces are up to that list.
func (h *hub) fresh(server, method string) (tool.Freshness, bool) {
	f, ok := h.group.Freshness(server, method)
	if h.group.Changes() != h.refreshed.Load() {
		return tool.Freshness{}, ok
	}
	return f, ok
}

// limits are those of a server's entry.
func (h *hub) limits(server string) invoke.Limits { return (*h.bounds.Load())[server] }

// put makes the settings those that are in force.
func (h *hub) put(s *config.Settings, own *builtins) {
	bounds := make(map[string]invoke.Limits, len(s.Upstream.Servers))
	for _, sc := range s.Upstream.Servers {
		bounds[sc.ID] = invoke.Limits{MaxParallel: sc.MaxParallel, MaxQueued: sc.MaxQueued}
	}
	h.settings.Store(s)
	h.bounds.Store(&bounds)
	h.builtin.Store(own)
}

// profiles are the names of all profiles, the default one first.
func (h *hub) profiles() []string {
	names := []string{namespace.DefaultProfile}
	for _, p := range h.settings.Load().Profiles {
		if p.Name != namespace.DefaultProfile {
			names = append(names, p.Name)
		}
	}
	return names
}

// views are all that clients can be served: the profiles, the default one first, and a direct view of each server.
func (h *hub) views() []string {
	names := h.profiles()
	for _, server := range h.settings.Load().Upstream.Servers {
		if !server.Disabled {
			names = append(names, downstream.DirectView(server.ID))
		}
	}
	return names
}

// refresh brings the surfaces up to what the servers offer now, and tells the clients that see a difference.
func (h *hub) refresh() {
	h.updating.Lock()
	defer h.updating.Unlock()
	changes := h.group.Changes()
	catalogs := h.catalogs()
	h.offer(catalogs)
	held := h.loader.Update(catalogs)
	all := withLists(h.names.Load().Update(catalogs), held)
	for _, said := range h.group.Restated() { // who sees that one server alone is told what it says
		all = append(all, namespace.Change{Profile: downstream.DirectView(said.Server), Tools: said.Tools,
			Prompts: said.Prompts, Resources: said.Resources})
	}
	h.announce(all)
	h.refreshed.Store(changes)
	h.starting.more()
}

// firstLists waits until the servers that s shows have listed for the first time, and brings the surfaces up to that.
func (h *hub) firstLists(ctx context.Context, s *tool.Surface) {
	if s.Features == nil || !h.group.AwaitFirstLists(ctx, s.Features.Servers) {
		return
	}
	if h.group.Changes() != h.refreshed.Load() { // of which the group itself tells a moment later
		h.refresh()
	}
}

// withLists are changes and the lists of tools of those profiles.
func withLists(changes []namespace.Change, profiles []string) []namespace.Change {
	for _, profile := range profiles {
		at := slices.IndexFunc(changes, func(c namespace.Change) bool { return c.Profile == profile })
		if at < 0 {
			at = len(changes)
			changes = append(changes, namespace.Change{Profile: profile})
		}
		changes[at].Tools = true
	}
	return changes
}

// announce tells clients what has changed for them.
func (h *hub) announce(changes []namespace.Change) {
	all := make([]downstream.Change, 0, len(changes))
	for _, c := range changes {
		all = append(all, downstream.Change{Profile: c.Profile, Tools: c.Tools, Prompts: c.Prompts, Resources: c.Resources})
	}
	h.server.Changed(all...)
}

func (h *hub) catalogs() []tool.Catalog {
	return append(h.builtin.Load().catalogs(), h.group.Catalogs()...)
}

// statuses tells how the servers stand. Whoever reads there that one is ready finds its tools on the surfaces already.
func (h *hub) statuses() []tool.ServerStatus {
	var all []tool.ServerStatus
	for _, c := range h.builtin.Load().catalogs() {
		all = append(all, tool.ServerStatus{Server: c.Server, Transport: "builtin", State: tool.ServerReady, Since: h.started,
			ServerName: "mcp-toolhub", ServerVersion: version(), Tools: len(c.Tools), Excluded: c.Excluded})
	}
	all = append(all, h.group.Statuses()...)
	for i := range all {
		st, load := &all[i], h.pipeline.Load(all[i].Server)
		st.Calls, st.Errors, st.InFlight, st.Queued = load.Calls, load.Errors, load.Running, load.Queued
		st.QueuedMS = load.Waited.Milliseconds()
		st.LatencyP50MS, st.LatencyP95MS = milliseconds(load.P50), milliseconds(load.P95)
	}
	if h.group.Changes() == h.refreshed.Load() {
		return all
	}
	h.refresh() // after the look at the states: the group itself tells of changes a moment later
	return all
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// problems are what makes the hub itself unwell.
func (h *hub) problems() []string {
	var all []string
	if err := h.journal.Healthy(); err != nil {
		all = append(all, err.Error())
	}
	for _, problem := range []*atomic.Pointer[string]{&h.configProblem, &h.grantsProblem} {
		if p := problem.Load(); p != nil {
			all = append(all, *p)
		}
	}
	return all
}

// close stops the servers and then the journal. kill cuts the polite part short.
func (h *hub) close(kill context.Context) error {
	ctx, cancel := context.WithTimeout(kill, stopWithin)
	defer cancel()
	err := errors.Join(h.closePermission(), h.commands.Close(), h.group.Close(ctx))
	if h.meaning != nil {
		h.meaning.Close()
	}
	return errors.Join(err, h.journal.Close())
}

// stopWithin is how long upstream servers have to stop by themselves, all of them together.
const stopWithin = 10 * time.Second
