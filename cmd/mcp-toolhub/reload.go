package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
)

// settleTime is how long the config file has to be left alone before it is read: editors write in several steps.
const settleTime = 200 * time.Millisecond

// watchConfig applies the config file again whenever it changes, or a file of rules that it names, or reload says so, until
// ctx ends; and the file of remembered answers likewise. What cannot be watched can still be reloaded by SIGHUP.
func (h *hub) watchConfig(ctx context.Context, reload <-chan struct{}, load func() (*config.Settings, error)) {
	w := &fileWatch{hub: h, dirs: make(map[string]bool), empty: emptyAtRead(h.settings.Load())}
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	var settings, answers bool // which are to be read again
	var events chan fsnotify.Event
	var lost chan error
	var err error
	if w.watcher, err = fsnotify.NewWatcher(); err == nil {
		defer w.watcher.Close()
		events, lost = w.watcher.Events, w.watcher.Errors
		settings, answers = w.follow(), true // what has changed since they were read is told by no event
		timer.Reset(settleTime)
	} else {
		h.logger.Warn("the config file is not watched: send SIGHUP after a change", "error", err)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			switch {
			case !ok:
				events = nil
			case e.Has(fsnotify.Chmod) && e.Op == fsnotify.Chmod:
			case w.isSettings(e.Name):
				settings = true
				timer.Reset(settleTime)
			case sameFile(e.Name, h.grantsAt):
				answers = true
				timer.Reset(settleTime)
			}
		case err, ok := <-lost: // more events than the system keeps, most often
			if !ok {
				lost = nil
				continue
			}
			h.logger.Debug("changes of files may have been missed", "error", err)
			settings, answers = true, true
			timer.Reset(settleTime)
		case <-reload:
			settings, answers = true, true
			timer.Reset(0)
		case <-timer.C:
			if answers {
				h.reloadGrants()
			}
			if settings {
				w.faulty = h.reload(func() (*config.Settings, error) { return w.load(load) })
				settings = w.follow()
			}
			if answers = false; settings {
				timer.Reset(settleTime)
			}
		}
	}
}

// fileWatch watches the directories of the files that the hub reads.
type fileWatch struct {
	hub     *hub
	watcher *fsnotify.Watcher // nil: nothing is watched
	dirs    map[string]bool   // false where it failed, which is said once
	faulty  []string          // files with faults, which settings that are not in force may name
	empty   map[string]bool   // files of the settings that were read last that hold nothing
}

// load loads settings, unless a file was emptied that was not empty before: that is what is left of a write that failed, for
// instance on a full disk. In force it would end every server, or every rule.
func (w *fileWatch) load(load func() (*config.Settings, error)) (*config.Settings, error) {
	before := emptyFiles(w.hub.settings.Load()) // what is written while it is read may have been empty then, and not be now
	next, err := load()
	if err != nil {
		return nil, err
	}
	empty := emptyFiles(next)
	maps.Copy(before, empty)
	for _, file := range slices.Sorted(maps.Keys(before)) {
		if !w.empty[file] {
			return nil, fmt.Errorf("read %q: the file is empty; restore it, or write {} into it if that is meant", file)
		}
	}
	w.empty = empty
	return next, nil
}

// emptyAtRead are those files of s that held nothing when they were read.
func emptyAtRead(s *config.Settings) map[string]bool {
	empty := make(map[string]bool)
	for file, info := range s.Read {
		if info.Size() == 0 {
			empty[file] = true
		}
	}
	return empty
}

// emptyFiles are those files of s that hold nothing.
func emptyFiles(s *config.Settings) map[string]bool {
	empty := make(map[string]bool)
	for _, file := range append([]string{s.Path}, s.RuleFiles...) {
		if info, err := os.Stat(file); err == nil && info.Size() == 0 {
			empty[file] = true
		}
	}
	return empty
}

// follow watches what the settings in force name. Directories, not files: editors and mounts put a new file in the place of
// the old one. It reports whether a file may have changed between the reading of it and the watching, which is told by no
// event: then the settings are to be read again.
func (w *fileWatch) follow() (missed bool) {
	if w.watcher == nil {
		return false
	}
	s := w.hub.settings.Load()
	for _, file := range append(w.settingsFiles(s), w.hub.grantsAt) {
		dir := filepath.Dir(file)
		watched, known := w.dirs[dir]
		if watched {
			continue
		}
		err := w.watcher.Add(dir)
		w.dirs[dir] = err == nil
		if err != nil && !known {
			w.hub.logger.Warn("a file is not watched: send SIGHUP after a change", "path", file, "error", err)
		}
		missed = missed || err == nil
	}
	return missed && (len(w.faulty) > 0 || changedSince(s.Read))
}

// changedSince reports whether a file is another than it was.
func changedSince(read map[string]fs.FileInfo) bool {
	for file, before := range read {
		now, err := os.Stat(file)
		if err != nil || !os.SameFile(now, before) || now.Size() != before.Size() || !now.ModTime().Equal(before.ModTime()) {
			return true
		}
	}
	return false
}

// isSettings reports whether the file is the config, one of rules that it names, or the record that they are trusted.
func (w *fileWatch) isSettings(name string) bool {
	s := w.hub.settings.Load()
	return slices.ContainsFunc(w.settingsFiles(s), func(file string) bool { return sameFile(name, file) })
}

// settingsFiles are the files that settings like s come from, and the record that they are trusted.
func (w *fileWatch) settingsFiles(s *config.Settings) []string {
	files := slices.Concat([]string{s.Path}, s.RuleFiles, w.faulty)
	if s.TrustFile != "" {
		files = append(files, s.TrustFile)
	}
	return files
}

func sameFile(a, b string) bool {
	absolute, err := filepath.Abs(b)
	return err == nil && filepath.Clean(a) == absolute || filepath.Clean(a) == filepath.Clean(b)
}

// reload applies the config file as it stands now. One with faults changes nothing: the hub goes on as it was and says so.
// The files with faults are returned.
func (h *hub) reload(load func() (*config.Settings, error)) (faulty []string) {
	next, err := load()
	if err == nil {
		err = h.apply(next)
	}
	if err != nil {
		var faults textfile.Faults
		what := "the config file cannot be used; the hub goes on with what it had: " + err.Error()
		if errors.As(err, &faults) {
			what = fmt.Sprintf("the config has %s; the hub goes on with what it had: %s", count(len(faults), "fault"), err)
			for _, f := range faults {
				faulty = append(faulty, f.File)
			}
		}
		h.configProblem.Store(&what)
		h.logger.Error("config is not applied", "path", h.settings.Load().Path, "error", err)
		return faulty
	}
	h.configProblem.Store(nil)
	h.logger.Info("config is applied", "path", next.Path, "servers", len(next.Upstream.Servers), "profiles", h.profiles())
	return nil
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
		next.Policy.SessionTime != was.Policy.SessionTime || next.Policy.AlwaysTime != was.Policy.AlwaysTime {
		h.logger.Warn("changes of persist, hub.log, hub.name, deferred.embeddings and the times of policy.ask take effect at the next start")
	}
	h.updating.Lock()
	h.put(next, own)
	gateBefore := h.gate.Swap(permitted)
	catalogs := h.catalogs()
	h.offer(catalogs)
	said := h.loader.Update(catalogs)
	names.Update(catalogs)
	before := h.names.Swap(names)
	held, err := h.loader.Apply(next.Deferred)
	h.updating.Unlock()
	h.server.Apply(next.Downstream, h.views())
	h.announce(withLists(names.Since(before), append(said, held...)))
	h.announcePermitted(former{before, gateBefore})
	h.warnOfMode(next)
	if next.Policy.Mode != was.Policy.Mode {
		h.sayWhatHolds(doorOf(next))
	}
	return errors.Join(err, h.openControl(next))
}
