package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// hub is the whole of it, wired: what the config names, from upstream servers to the server that clients talk to.
type hub struct {
	settings *config.Settings
	logger   *slog.Logger
	group    *upstream.Group
	toolset  *code.Toolset // nil where the config does not enable it
	names    *namespace.Namespace
	journal  *persist.Journal
	pipeline *invoke.Pipeline
	server   *downstream.Server

	started  time.Time
	updating sync.Mutex
}

// maxSchemas is how many compiled input schemas the hub keeps.
const maxSchemas = 20000

// newHub builds the hub of the settings. Nothing runs yet but the journal; close ends that too.
func newHub(s *config.Settings, logger *slog.Logger) (_ *hub, err error) {
	h := &hub{settings: s, logger: logger, started: time.Now()}
	if err := os.MkdirAll(s.StateDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	executors := make(map[string]invoke.Executor)
	if s.Code.Enabled {
		s.Code.SensitiveDirs = append(s.Code.SensitiveDirs, s.StateDir)
		if h.toolset, err = code.New(s.Code); err != nil {
			return nil, err
		}
		executors["code"] = h.toolset
	}
	if s.Upstream.Self, err = os.Executable(); err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	s.Upstream.Version = version()
	if h.group, err = upstream.NewGroup(s.Upstream, logger); err != nil {
		return nil, err
	}
	executors[tool.SourceMCP] = h.group
	if h.names, err = namespace.New(s.Profiles); err != nil {
		return nil, err
	}
	if s.Journal.Dir == "" {
		s.Journal.Dir = filepath.Join(s.StateDir, "journal")
	}
	if h.journal, err = persist.Open(s.Journal, logger); err != nil {
		return nil, err
	}
	h.pipeline, err = invoke.New(invoke.Options{Executors: executors, Policy: policy.New(), Journal: h.journal,
		Schemas: schema.NewCache(maxSchemas), Limits: h.limits, Logger: logger})
	if err != nil {
		return nil, errors.Join(err, h.journal.Close())
	}
	s.Downstream.Version = version()
	h.server, err = downstream.New(s.Downstream, h.profiles(), downstream.Deps{Surfaces: h.names, Pipeline: h.pipeline,
		Statuses: h.statuses, Problems: h.problems, Logger: logger})
	if err != nil {
		return nil, errors.Join(err, h.journal.Close())
	}
	h.group.OnChange(h.refresh)
	h.refresh()
	return h, nil
}

// limits are those of a server's entry.
func (h *hub) limits(server string) invoke.Limits {
	for _, s := range h.settings.Upstream.Servers {
		if s.ID == server {
			return invoke.Limits{MaxParallel: s.MaxParallel, MaxQueued: s.MaxQueued}
		}
	}
	return invoke.Limits{}
}

// profiles are the names of all profiles, the default one first.
func (h *hub) profiles() []string {
	names := []string{namespace.DefaultProfile}
	for _, p := range h.settings.Profiles {
		if p.Name != namespace.DefaultProfile {
			names = append(names, p.Name)
		}
	}
	return names
}

// refresh brings the surfaces up to what the servers offer now, and tells the clients that see a difference.
func (h *hub) refresh() {
	h.updating.Lock()
	defer h.updating.Unlock()
	h.server.ToolsChanged(h.names.Update(h.catalogs()))
}

func (h *hub) catalogs() []tool.Catalog {
	var all []tool.Catalog
	if h.toolset != nil {
		all = append(all, h.toolset.Catalog())
	}
	return append(all, h.group.Catalogs()...)
}

// statuses tells how the servers stand. Whoever reads there that one is ready finds its tools on the surfaces already.
func (h *hub) statuses() []tool.ServerStatus {
	var all []tool.ServerStatus
	if h.toolset != nil {
		c := h.toolset.Catalog()
		all = append(all, tool.ServerStatus{Server: c.Server, Transport: "builtin", State: tool.ServerReady, Since: h.started,
			ServerName: "mcp-toolhub", ServerVersion: version(), Tools: len(c.Tools)})
	}
	all = append(all, h.group.Statuses()...)
	for i := range all {
		st, load := &all[i], h.pipeline.Load(all[i].Server)
		st.Calls, st.Errors, st.InFlight, st.Queued = load.Calls, load.Errors, load.Running, load.Queued
		st.QueuedMS = load.Waited.Milliseconds()
		st.LatencyP50MS, st.LatencyP95MS = milliseconds(load.P50), milliseconds(load.P95)
	}
	h.refresh() // after the look at the states: the group itself tells of changes a moment later
	return all
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// problems are what makes the hub itself unwell.
func (h *hub) problems() []string {
	if err := h.journal.Healthy(); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// close stops the servers and then the journal. kill cuts the polite part short.
func (h *hub) close(kill context.Context) error {
	ctx, cancel := context.WithTimeout(kill, stopWithin)
	defer cancel()
	return errors.Join(h.group.Close(ctx), h.journal.Close())
}

// stopWithin is how long upstream servers have to stop by themselves, all of them together.
const stopWithin = 10 * time.Second
