package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/events"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/login"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/embed"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/spool"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/evidence"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// hub wires one hub: the servers, the surfaces, permission, the pipeline, and the server that clients talk to.
type hub struct {
	logger     *slog.Logger
	known      *secret.Known
	started    time.Time
	commands   *command.Runner
	group      *upstream.Group
	signIns    *signin.Store
	desk       *login.Desk // signs people in
	journal    *persist.Journal
	results    *payload.Store
	chains     *evidence.Keeper // nil where the hub keeps the journal alone
	records    *store.Filler    // nil where there is no store
	permission *permission
	hubTools   []*tool.HubTool
	surfaces   *surfaces
	pipeline   *invoke.Pipeline
	server     *downstream.Server
	meaning    *embed.Store // nil where no embeddings are configured
	stopEnding func()       // of endKilled

	stopFilling func(kill context.Context) // of fillRecords
	events      events.Server
	guests      *guests // of serve
	listens     string  // where serve is reached on this machine, as an origin; "" for stdio
	steering    steering
	telemetry   *telemetry.Telemetry // nil where a hub runs one command alone
	page        *console.Console
	pageHub     *pageHub

	chainProblem  atomic.Pointer[string] // why records are in no chain of evidence; nil where they are
	configProblem atomic.Pointer[string] // why the config file as it stands now is not in force; nil where it is
}

// maxSchemas bounds the compiled input schemas that the hub keeps.
const maxSchemas = 20000

// newHub builds the hub of the settings. Nothing runs yet but the journal; close ends that too.
// table returns the table of the hub's own tools. observed may be nil. Records have none of the
// known secrets.
func newHub(s *config.Settings, logger *slog.Logger, table func(*hub) []*tool.HubTool, observed *telemetry.Telemetry,
	known *secret.Known) (_ *hub, err error) {
	h := &hub{logger: logger, started: time.Now(), telemetry: observed, known: known}
	h.hubTools = table(h)
	defer func() {
		if err == nil {
			return
		}
		if h.meaning != nil {
			h.meaning.Close()
		}
		if h.results != nil {
			h.results.Close()
		}
		if h.journal != nil {
			err = errors.Join(err, h.journal.Close())
		}
	}()
	if err := openStateDir(s.StateDir, logger); err != nil {
		return nil, err
	}
	if s.Upstream.Self, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	h.commands = command.NewRunner(s.Upstream.Self, logger)
	if h.permission, err = newPermission(s, logger); err != nil {
		return nil, err
	}
	h.permission.api.Model = model{h}
	first, err := configure(s, h.permission.grants, h.hubTools, h.commands, logger)
	if err != nil {
		return nil, err
	}
	s.Upstream.Version, s.Downstream.Version = version(), version()
	h.commands.Disk = spool.New(filepath.Join(s.StateDir, "spool"))
	if s.Upstream.Catalogs, err = persist.OpenCatalogs(filepath.Join(s.StateDir, "catalogs")); err != nil {
		return nil, err
	}
	h.signIns = openSignIns(s)
	s.Upstream.SignIns = h.signIns
	if h.telemetry != nil {
		s.Upstream.Observe = h.telemetry.Ask
	}
	if h.group, err = upstream.NewGroup(s.Upstream, logger); err != nil {
		return nil, err
	}
	h.desk = h.newDesk()
	h.steering.group = h.group
	warnOfMode(logger, s)
	journal := s.Journal
	if s.Store != config.StoreOff {
		h.records = store.NewFiller(openRecords(s), journal.Dir, s.Records, logger)
		journal.Kept = h.records
		h.chains = newKeeper(s.StateDir, journal.Dir)
	}
	key, err := seal.LoadKey(filepath.Join(s.StateDir, stateKey))
	if err != nil {
		return nil, err
	}
	journal.Secrets = known.Masker(key)
	if h.journal, err = persist.Open(journal, logger); err != nil {
		return nil, err
	}
	if h.results, err = payload.Open(context.Background(), s.Stored, h.resultExpired, logger); err != nil {
		return nil, err
	}
	h.events.Dir, h.events.Logger, h.events.Facts = s.Journal.Dir, logger, h.factsNamed
	if err := h.newSurfaces(first, key); err != nil {
		return nil, err
	}
	if err := h.newPipeline(s, key); err != nil {
		return nil, err
	}
	h.newPage(key)
	if err := h.newServer(first, key); err != nil {
		return nil, err
	}
	h.stopEnding, h.stopFilling = h.endKilled(s.Journal.Dir), h.fillRecords()
	return h, nil
}

// fillUpWithin bounds the time in which a hub that stops fills the record store to its end.
const fillUpWithin = 5 * time.Second

// fillRecords keeps the record store up to date, beside everything else that the hub does. The
// returned function, for a closed journal, stops that and fills the store to its end, unless kill
// ends before.
func (h *hub) fillRecords() (stop func(kill context.Context)) {
	if h.records == nil {
		return func(context.Context) {}
	}
	ctx, cancel := context.WithCancel(context.Background()) // until close
	var filling sync.WaitGroup
	filling.Go(func() { h.records.Run(ctx, h.journal) })
	return func(kill context.Context) {
		cancel()
		filling.Wait()
		last, cancel := context.WithTimeout(kill, fillUpWithin)
		defer cancel()
		if err := h.records.Close(last); err != nil {
			h.logger.Warn("the record store lacks the latest calls: they are in the journal, and the next start "+
				"stores them", "error", err)
		}
	}
}

// openRecords opens the record store of the settings.
func openRecords(s *config.Settings) func(context.Context) (store.Store, error) {
	return func(ctx context.Context) (store.Store, error) {
		if s.Store != config.StoreSQLite && s.Store != config.StoreOff {
			return store.OpenPostgres(ctx, s.Store, s.Journal.Dir)
		}
		return store.OpenSQLite(ctx, filepath.Join(s.StateDir, store.FileName))
	}
}

// newPipeline makes the pipeline. Gate and limits are those of the settings in force at each call.
func (h *hub) newPipeline(s *config.Settings, key []byte) (err error) {
	own := builtIn{h.surfaces}
	var observer invoke.Observer
	if h.telemetry != nil {
		observer = h.telemetry
	}
	host, _ := os.Hostname() // "" is said of a machine without a name
	h.pipeline, err = invoke.New(invoke.Options{Hub: cmp.Or(s.Downstream.Name, host),
		Executors: map[string]invoke.Executor{tool.SourceMCP: h.group, code.Name: own, declarative.Name: own},
		Admit:     h.surfaces.loader.Admit, CommandLine: func(words string) string {
			return commandLine(s.StateDir,
				words)
		},
		Gate: func() *gate.Gate { return h.surfaces.now().gate }, Approvals: h.permission.approvals,
		QueueOpen: h.permission.queueOpen,
		Hooks:     func() *hook.Set { return h.surfaces.now().hooks }, Present: h.surfaces.present, Journal: h.journal,
		Results: h.results, Schemas: schema.NewCache(maxSchemas),
		Digest: seal.Digest(key, "inputs"), Secrets: h.known.Masker(key), SignIn: h.desk.SignIn, Observer: observer,
		// made later
		Announce: func(ctx context.Context, webhook string, v approval.View) { h.page.Announce(ctx, webhook, v) },
		Offer: func(ctx context.Context, r *policy.Request) *policy.SuggestedGrant { // made later, too
			return h.pageHub.offer(ctx, r)
		},
		Limits: func(server string) invoke.Limits { return h.surfaces.now().limits[server] }, Logger: h.logger,
		Sources: invoke.Sources{Resource: h.readResource, File: func(root, name string, most int64) ([]byte, error) {
			return code.ReadBelow(root, name, most, s.StateDir)
		}},
	})
	return err
}

// newServer makes the server that clients talk to, and brings the surfaces up to what is known of the servers.
func (h *hub) newServer(first *configured, key []byte) (err error) {
	s, m := first.settings, model{h}
	servers, observe := h.observed()
	h.server, err = downstream.New(s.Downstream, first.views(),
		downstream.Deps{Surfaces: h.surfaces, Pipeline: h.pipeline,
			Servers: servers, Observe: observe, Fresh: h.surfaces.fresh, Statuses: m.Servers, Problems: m.Problems,
			Warnings: m.Warnings, Logger: h.logger,
			StateKey: key, FirstLists: h.surfaces.firstLists, EndedSessions: filepath.Join(s.StateDir, "sessions"),
			SessionEnded: h.permission.grants.EndSession, Events: h.events.Serve, Show: h.showTool, Page: h.page,
			StoredResults: h.storedResult, Spool: h.commands.Disk, Metrics: h.metricsOf(s), SignIns: h.desk,
			ResourceURI: namespace.ResourceURI})
	if err != nil {
		return err
	}
	h.surfaces.changed = h.server.Changed
	h.group.OnChange(h.surfaces.refresh)
	h.surfaces.refresh()
	return nil
}

// settings returns the settings in force.
func (h *hub) settings() *config.Settings { return h.surfaces.now().settings }

// The keys that seal what clients carry, in the state directory. After the one is renamed to the
// other, the hub makes a new key, and selection_refs of the old one stay valid.
const (
	stateKey    = "state.key"
	previousKey = "state.key.previous"
)

// newSurfaces makes the surfaces, and the loader, which defers tools and finds them.
func (h *hub) newSurfaces(first *configured, key []byte) error {
	s := first.settings
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
	loader, err := deferred.New(s.Deferred, deferred.Options{Keys: keys, Describe: h.describeSurface,
		Record: h.recordSurface, Needs: h.group.Needs,
		Search: options, HubTools: h.hubTools})
	if err != nil {
		return err
	}
	h.surfaces = &surfaces{group: h.group, loader: loader}
	h.surfaces.configured.Store(first)
	h.surfaces.offer(first, nil)
	return nil
}

// describeSurface completes the record of a new surface.
func (h *hub) describeSurface(r *tool.SurfaceRecord) {
	r.PolicyRefs = []string{"policy:" + h.surfaces.now().gate.Engine().Version()}
	r.RuntimeRefs = []string{"mcp-toolhub/" + version()}
}

// recordSurface writes a new surface to the journal. The request that brought it about does not wait for that.
func (h *hub) recordSurface(s *tool.Surface, event tool.Event) {
	if err := h.journal.AppendNaming(context.Background(), s, event); err != nil {
		h.logger.Warn("a surface is not in the journal", "error", err)
	}
}

// close stops the servers and then the journal. kill cuts the polite part short.
func (h *hub) close(kill context.Context) error {
	ctx, cancel := context.WithTimeout(kill, stopWithin)
	defer cancel()
	h.desk.Close()
	h.page.Close()
	h.pageHub.close()
	err := errors.Join(h.permission.close(ctx), h.commands.Close(), h.group.Close(ctx))
	if h.meaning != nil {
		h.meaning.Close()
	}
	h.stopEnding()
	h.results.Close()
	err = errors.Join(err, h.journal.Close())
	h.stopFilling(kill)
	h.extendChains()
	return err
}

// stopWithin bounds the time that all servers together have to stop by themselves.
const stopWithin = 10 * time.Second
