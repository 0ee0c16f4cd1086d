// Package hub builds a hub from settings, reloads it, and shares one hub among the clients of a
// machine.
package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/events"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/login"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/embed"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
	"github.com/mcp-toolhub/mcp-toolhub/internal/seal"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/spool"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/evidence"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/signin"
)

// ConfigFile changes the config file of settings, as the command line does. What it does not change
// stays, byte for byte.
type ConfigFile interface {
	// AddRule adds a rule, below a comment that says where it comes from.
	AddRule(s *config.Settings, rule *history.Suggestion) error

	// Steer enables, disables or removes a server, or enables or disables a tool. said is what was done.
	Steer(ctx context.Context, s *config.Settings, to console.Steering, name string) (said string, err error)

	// AddServer adds a server. If plan is set, it only says what that would be.
	AddServer(s *config.Settings, n console.NewServer, plan bool) (console.Plan, error)
}

// Hub wires one hub: the servers, the surfaces, permission, the pipeline, and the server that clients talk to.
type Hub struct {
	Logger     *slog.Logger
	known      *secret.Known
	started    time.Time
	commands   *command.Runner
	Group      *upstream.Group
	signIns    *signin.Store
	desk       *login.Desk // signs people in
	journal    *persist.Journal
	Results    *payload.Store
	chains     *evidence.Keeper // nil where the hub keeps the journal alone
	records    *store.Filler    // nil where there is no store
	Permission *permission
	hubTools   []*tool.HubTool
	Surfaces   *surfaces
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
	configFile  ConfigFile // takes what a person changes on the page
	pageHub     *pageHub

	chainProblem  atomic.Pointer[string] // why records are in no chain of evidence; nil where they are
	ConfigProblem atomic.Pointer[string] // why the config file as it stands now is not in force; nil where it is
}

// maxSchemas bounds the compiled input schemas that the hub keeps.
const maxSchemas = 20000

// New builds the hub of the settings. Nothing runs yet but the journal; close ends that too.
// table returns the table of the hub's own tools. observed may be nil. Records have none of the
// known secrets.
func New(s *config.Settings, logger *slog.Logger, table func(*Hub) []*tool.HubTool, observed *telemetry.Telemetry,
	known *secret.Known, file ConfigFile) (_ *Hub, err error) {
	h := &Hub{Logger: logger, started: time.Now(), telemetry: observed, known: known, configFile: file}
	h.hubTools = table(h)
	defer func() {
		if err == nil {
			return
		}
		if h.meaning != nil {
			h.meaning.Close()
		}
		if h.Results != nil {
			h.Results.Close()
		}
		if h.journal != nil {
			err = errors.Join(err, h.journal.Close())
		}
	}()
	if err := OpenStateDir(s.StateDir, logger); err != nil {
		return nil, err
	}
	if s.Upstream.Self, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	h.commands = command.NewRunner(s.Upstream.Self, logger)
	if h.Permission, err = newPermission(s, logger); err != nil {
		return nil, err
	}
	h.Permission.api.Model = Model{Hub: h}
	first, err := configure(s, h.Permission.Grants, h.hubTools, h.commands, logger)
	if err != nil {
		return nil, err
	}
	s.Upstream.Version, s.Downstream.Version = Version(), Version()
	if s.Upstream.Catalogs, err = persist.OpenCatalogs(filepath.Join(s.StateDir, "catalogs")); err != nil {
		return nil, err
	}
	h.signIns = OpenSignIns(s)
	s.Upstream.SignIns = h.signIns
	if h.telemetry != nil {
		s.Upstream.Observe = h.telemetry.Ask
	}
	if h.Group, err = upstream.NewGroup(s.Upstream, logger); err != nil {
		return nil, err
	}
	h.desk = h.newDesk()
	h.steering.group = h.Group
	warnOfMode(logger, s)
	journal := s.Journal
	if s.Store != config.StoreOff {
		open := func(ctx context.Context) (store.Store, error) { return OpenRecords(ctx, s) }
		h.records = store.NewFiller(open, journal.Dir, s.Records, logger)
		journal.Kept = h.records
		h.chains = NewKeeper(s.StateDir, journal.Dir)
	}
	key, err := loadStateKey(filepath.Join(s.StateDir, StateKey), logger)
	if err != nil {
		return nil, err
	}
	journal.Secrets = known.Masker(key)
	if h.journal, err = persist.Open(journal, logger); err != nil {
		return nil, err
	}
	if h.Results, err = payload.Open(context.Background(), s.Stored, h.resultExpired, logger); err != nil {
		return nil, err
	}
	h.events.Dir, h.events.Logger = s.Journal.Dir, logger
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
func (h *Hub) fillRecords() (stop func(kill context.Context)) {
	if h.records == nil {
		return func(context.Context) {}
	}
	end := beside(func(ctx context.Context) { h.records.Run(ctx, h.journal) })
	return func(kill context.Context) {
		end()
		last, cancel := context.WithTimeout(kill, fillUpWithin)
		defer cancel()
		if err := h.records.Close(last); err != nil {
			h.Logger.Warn("the record store lacks the latest calls: they are in the journal, and the next start "+
				"stores them", "error", err)
		}
	}
}

// OpenRecords opens the record store of the settings.
func OpenRecords(ctx context.Context, s *config.Settings) (store.Store, error) {
	if s.Store != config.StoreSQLite && s.Store != config.StoreOff {
		return store.OpenPostgres(ctx, s.Store, s.Journal.Dir)
	}
	return store.OpenSQLite(ctx, filepath.Join(s.StateDir, store.FileName))
}

// newServer makes the server that clients talk to, and brings the surfaces up to what is known of the servers.
func (h *Hub) newServer(first *Configured, key []byte) (err error) {
	s := first.Settings
	deps := downstream.Deps{Surfaces: h.Surfaces, Pipeline: h.pipeline, Servers: h.Group, Status: Model{Hub: h},
		Grants: h.Permission.Grants, Logger: h.Logger, StateKey: key,
		EndedSessions: filepath.Join(s.StateDir, "sessions"), Events: &h.events, Page: h.page,
		StoredResults: h.storedResult, Spool: spool.New(filepath.Join(s.StateDir, "spool")), SignIns: h.desk}
	if h.telemetry != nil {
		deps.Servers, deps.Observer = observedServers{h.Group, h.telemetry}, h.telemetry
		if s.Telemetry.Metrics == "" { // otherwise they have an address of their own
			deps.Metrics = h.telemetry
		}
	}
	if h.server, err = downstream.New(s.Downstream, first.views(), deps); err != nil {
		return err
	}
	h.Surfaces.changed = h.server.Changed
	h.Group.OnChange(h.Surfaces.Refresh)
	h.Surfaces.Refresh()
	return nil
}

// Settings returns the settings in force.
func (h *Hub) Settings() *config.Settings { return h.Surfaces.Now().Settings }

// The keys that seal what clients carry, in the state directory. After the one is renamed to the
// other, the hub makes a new key, and selection_refs of the old one stay valid.
const (
	StateKey    = "state.key"
	PreviousKey = "state.key.previous"
)

// loadStateKey replaces a damaged key: nothing that it sealed can be opened.
func loadStateKey(file string, logger *slog.Logger) ([]byte, error) {
	key, err := seal.LoadKey(file)
	if !errors.Is(err, seal.ErrDamaged) {
		return key, err
	}
	logger.Warn("the key that seals what clients carry was damaged, so the hub makes another one: clients begin new "+
		"sessions", "path", file)
	if err := os.Remove(file); err != nil {
		return nil, fmt.Errorf("replace a damaged key: %w", err)
	}
	return seal.LoadKey(file)
}

// newSurfaces makes the surfaces, and the loader, which defers tools and finds them.
func (h *Hub) newSurfaces(first *Configured, key []byte) error {
	s := first.Settings
	keys := [][]byte{key}
	previous := filepath.Join(s.StateDir, PreviousKey)
	if _, err := os.Stat(previous); err == nil {
		old, err := seal.LoadKey(previous)
		if err == nil {
			keys = append(keys, old)
		} else if !errors.Is(err, seal.ErrDamaged) {
			return err
		}
	}
	var options search.Options
	if s.Embeddings.URL != "" {
		store := embed.New(context.Background(), s.Embeddings) // until close
		h.meaning, options.Meaning = store, store
	}
	loader := deferred.New(s.Deferred, deferred.Options{Keys: keys, Describe: h.describeSurface,
		Needs: h.Group.Needs, Past: &learning{hub: h, known: make(map[string]lesson)},
		Search: options, HubTools: h.hubTools})
	h.Surfaces = &surfaces{group: h.Group, loader: loader}
	h.Surfaces.configured.Store(first)
	h.Surfaces.offer(first, nil)
	return nil
}

// maxLeftOut bounds how many of the tools that its profile leaves out the record of a surface names.
const maxLeftOut = 1000

// describeSurface completes the record of a new surface.
func (h *Hub) describeSurface(r *tool.SurfaceRecord) {
	r.PolicyRefs = []string{"policy:" + h.Surfaces.Now().Gate.Engine.Version()}
	r.RuntimeRefs = []string{"mcp-toolhub/" + Version()}
	if profile, ok := strings.CutPrefix(r.Scope, "profile:"); ok {
		left := h.Surfaces.leftOut(profile)
		if more := len(left) - maxLeftOut; more > 0 {
			left = append(left[:maxLeftOut], tool.Exclusion{Tool: "*", Code: left[0].Code,
				Reason: fmt.Sprintf("profile %q: %d more tools", profile, more)})
		}
		r.ExcludedTools = append(r.ExcludedTools, left...)
	}
}

// Close stops the servers and then the journal. kill cuts the polite part short.
func (h *Hub) Close(kill context.Context) error {
	ctx, cancel := context.WithTimeout(kill, stopWithin)
	defer cancel()
	h.desk.Close()
	h.page.Close()
	h.pageHub.close()
	err := errors.Join(h.Permission.close(ctx), h.commands.Close(), h.Group.Close(ctx))
	if h.meaning != nil {
		h.meaning.Close()
	}
	h.stopEnding()
	h.Results.Close()
	err = errors.Join(err, h.journal.Close())
	h.stopFilling(kill)
	h.extendChains()
	return err
}

// stopWithin bounds the time that all servers together have to stop by themselves.
const stopWithin = 10 * time.Second
