package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/mcp-toolhub/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
)

// settleTime is how long the config file has to be left alone before it is read: editors write in several steps.
const settleTime = 200 * time.Millisecond

// watchConfig applies the config file again whenever it changes, or reload says so, until ctx ends. A file that cannot be
// watched can still be reloaded by SIGHUP.
func (h *hub) watchConfig(ctx context.Context, reload <-chan struct{}, load func() (*config.Settings, error)) {
	var events chan fsnotify.Event
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		defer watcher.Close()
		// The directory, not the file: editors and mounts put a new file in its place.
		if err = watcher.Add(filepath.Dir(h.settings.Load().Path)); err == nil {
			events = watcher.Events
		}
	}
	if err != nil {
		h.logger.Warn("the config file is not watched: send SIGHUP after a change", "error", err)
	}
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				events = nil
			} else if sameFile(e.Name, h.settings.Load().Path) && !e.Has(fsnotify.Chmod) {
				timer.Reset(settleTime)
			}
		case <-reload:
			timer.Reset(0)
		case <-timer.C:
			h.reload(load)
		}
	}
}

func sameFile(a, b string) bool {
	absolute, err := filepath.Abs(b)
	return err == nil && filepath.Clean(a) == absolute || filepath.Clean(a) == filepath.Clean(b)
}

// reload applies the config file as it stands now. One with faults changes nothing: the hub goes on as it was and says so.
func (h *hub) reload(load func() (*config.Settings, error)) {
	next, err := load()
	if err == nil {
		err = h.apply(next)
	}
	if err != nil {
		var faults config.Faults
		what := "the config file cannot be used; the hub goes on with what it had: " + err.Error()
		if errors.As(err, &faults) {
			what = fmt.Sprintf("the config file has %d faults; the hub goes on with what it had: %s", len(faults), err)
		}
		h.configProblem.Store(&what)
		h.logger.Error("config is not applied", "path", h.settings.Load().Path, "error", err)
		return
	}
	h.configProblem.Store(nil)
	h.logger.Info("config is applied", "path", next.Path, "servers", len(next.Upstream.Servers), "profiles", h.profiles())
}

// apply puts new settings into force. What has not changed goes on undisturbed: servers keep their connections, clients
// their sessions.
func (h *hub) apply(next *config.Settings) error {
	was := h.settings.Load()
	next.Upstream.Self, next.Upstream.Version = was.Upstream.Self, was.Upstream.Version
	next.Upstream.Catalogs = was.Upstream.Catalogs
	for _, w := range next.Warnings {
		h.logger.Warn("config", "warning", w)
	}
	next.Downstream.Version, next.Downstream.HTTP.Listen = was.Downstream.Version, was.Downstream.HTTP.Listen
	if len(next.Downstream.Auth.Tokens) == 0 && next.Downstream.HTTP.Listen != "" {
		if err := next.Downstream.CheckListen(next.Downstream.HTTP.Listen); err != nil {
			return err
		}
	}
	own, err := h.newBuiltins(next)
	if err != nil {
		return err
	}
	names, err := namespace.New(next.Profiles)
	if err != nil {
		return err
	}
	if err := next.Deferred.Check(); err != nil {
		return err
	}
	permitted, err := h.newGate(next, own)
	if err != nil {
		return err
	}
	if err := h.group.Apply(next.Upstream); err != nil {
		return err
	}
	if next.Journal != was.Journal || next.StateDir != was.StateDir || next.LogLevel != was.LogLevel ||
		next.LogFormat != was.LogFormat || next.Downstream.Name != was.Downstream.Name || next.Embeddings != was.Embeddings ||
		was.Policy.Enabled && (next.Policy.SessionTime != was.Policy.SessionTime || next.Policy.AlwaysTime != was.Policy.AlwaysTime) {
		h.logger.Warn("changes of persist, hub.log, hub.name, deferred.embeddings and the times of policy.ask take effect at the next start")
	}
	h.updating.Lock()
	h.put(next, own)
	h.gate.Store(permitted)
	catalogs := h.catalogs()
	h.offer(catalogs)
	said := h.loader.Update(catalogs)
	names.Update(catalogs)
	before := h.names.Swap(names)
	held, err := h.loader.Apply(next.Deferred)
	h.updating.Unlock()
	h.server.Apply(next.Downstream, h.views())
	changes := withLists(names.Since(before), append(said, held...))
	if !permitted.IsOpen() || was.Policy.Enabled { // what it hides may be other tools than before
		changes = withLists(changes, h.views())
	}
	h.announce(changes)
	h.warnOfMode(next)
	return errors.Join(err, h.openControl(next))
}
