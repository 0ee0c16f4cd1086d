package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

// settleTime passes after the last write to a file before it is read: editors write in several steps.
const settleTime = 200 * time.Millisecond

// configWatch applies the files of a hub's settings again when they change, and likewise the files
// of remembered answers and sign-ins.
type configWatch struct {
	hub     *Hub
	read    func() (*config.Settings, error)
	watcher *fsnotify.Watcher // nil: nothing is watched
	dirs    map[string]bool   // false where watching failed, which is logged once
	faulty  []string          // files with faults, which settings that are not in force may name
	empty   map[string]bool   // files of the settings that were read last that hold nothing
}

// Watch applies the config whenever one of its files changes, or reload asks for it, until ctx ends.
// read reads the config again.
func (h *Hub) Watch(ctx context.Context, read func() (*config.Settings, error), reload <-chan os.Signal) {
	newConfigWatch(h, read).run(ctx, reload)
}

func newConfigWatch(h *Hub, read func() (*config.Settings, error)) *configWatch {
	return &configWatch{hub: h, read: read, dirs: make(map[string]bool), empty: emptyAtRead(h.Settings())}
}

// run applies what changes until ctx ends. What cannot be watched is read again when reload says so, as SIGHUP does.
func (w *configWatch) run(ctx context.Context, reload <-chan os.Signal) {
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	var settings, answers, signIns bool // which are to be read again
	var events chan fsnotify.Event
	var lost chan error
	var err error
	if w.watcher, err = fsnotify.NewWatcher(); err == nil {
		defer w.watcher.Close()
		events, lost = w.watcher.Events, w.watcher.Errors
		settings, answers, signIns = w.follow(), true, true // no event reports what has changed since they were read
		timer.Reset(settleTime)
	} else {
		w.hub.Logger.Warn("the config file is not watched: send SIGHUP after a change", "error", err)
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
			case sameFile(e.Name, w.hub.Permission.grantsAt),
				strings.HasPrefix(e.Name, w.hub.Permission.grantsAt+policy.Damaged):
				answers = true
				timer.Reset(settleTime)
			case sameFile(e.Name, w.hub.signIns.File()):
				signIns = true
				timer.Reset(settleTime)
			}
		case err, ok := <-lost: // more events than the system keeps, most often
			if !ok {
				lost = nil
				continue
			}
			w.hub.Logger.Debug("changes of files may have been missed", "error", err)
			settings, answers, signIns = true, true, true
			timer.Reset(settleTime)
		case <-reload:
			settings, answers = true, true
			timer.Reset(0)
		case <-timer.C:
			if answers {
				w.hub.Permission.reload()
			}
			if signIns && !settings {
				w.hub.followSignIns()
			}
			signIns = false
			if settings {
				w.reload(ctx)
				settings = w.follow()
			}
			if answers = false; settings {
				timer.Reset(settleTime)
			}
		}
	}
}

// load reads the settings, and refuses a file that was emptied since it was read last. A write that
// failed leaves such a file, for instance on a full disk. In force it would end every server, or
// every rule.
func (w *configWatch) load() (*config.Settings, error) {
	before := emptyFiles(w.hub.Settings()) // a file may be empty when reading begins, and written meanwhile
	next, err := w.read()
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

// emptyAtRead returns those files of s that held nothing when they were read.
func emptyAtRead(s *config.Settings) map[string]bool {
	empty := make(map[string]bool)
	for file, info := range s.Read {
		if info.Size() == 0 {
			empty[file] = true
		}
	}
	return empty
}

// emptyFiles returns those files of s that hold nothing.
func emptyFiles(s *config.Settings) map[string]bool {
	empty := make(map[string]bool)
	for _, file := range append([]string{s.Path}, s.RuleFiles...) {
		if info, err := os.Stat(file); err == nil && info.Size() == 0 {
			empty[file] = true
		}
	}
	return empty
}

// follow watches what the settings in force name. It watches directories, not files: editors and
// mounts put a new file in the place of the old one. It reports whether a file may have changed
// before it was watched: then it is to be read again.
func (w *configWatch) follow() (missed bool) {
	if w.watcher == nil {
		return false
	}
	s := w.hub.Settings()
	for _, file := range append(w.settingsFiles(s), w.hub.Permission.grantsAt, w.hub.signIns.File()) {
		dir := filepath.Dir(file)
		watched, known := w.dirs[dir]
		if watched {
			continue
		}
		err := w.watcher.Add(dir)
		w.dirs[dir] = err == nil
		if err != nil && !known {
			w.hub.Logger.Warn("a file is not watched: send SIGHUP after a change", "path", file, "error", err)
		}
		missed = missed || err == nil
	}
	return missed && (len(w.faulty) > 0 || changedSince(s.Read))
}

// changedSince reports whether a file is another than it was.
func changedSince(read map[string]fs.FileInfo) bool {
	for file, before := range read {
		now, err := os.Stat(file)
		if err != nil || !os.SameFile(now, before) || now.Size() != before.Size() ||
			!now.ModTime().Equal(before.ModTime()) {
			return true
		}
	}
	return false
}

// isSettings reports whether the file is the config, that of secrets, one of rules that the config
// names, or the record that they are trusted.
func (w *configWatch) isSettings(name string) bool {
	s := w.hub.Settings()
	return slices.ContainsFunc(w.settingsFiles(s), func(file string) bool { return sameFile(name, file) })
}

// settingsFiles returns the files that settings like s come from, and the record that they are trusted.
func (w *configWatch) settingsFiles(s *config.Settings) []string {
	files := slices.Concat([]string{s.Path, filepath.Join(s.StateDir, secrets.File)}, s.RuleFiles, w.faulty)
	if s.TrustFile != "" {
		files = append(files, s.TrustFile)
	}
	return files
}

func sameFile(a, b string) bool {
	absolute, err := filepath.Abs(b)
	return err == nil && filepath.Clean(a) == absolute || filepath.Clean(a) == filepath.Clean(b)
}

// reload applies the config file as it stands now. One with faults changes nothing: the hub goes on
// as it was and says so.
func (w *configWatch) reload(ctx context.Context) {
	h := w.hub
	next, err := w.load()
	if err == nil {
		err = h.apply(ctx, next)
	}
	w.faulty = nil
	if err != nil {
		var faults textfile.Faults
		what := "the config file cannot be used; the hub goes on with what it had: " + err.Error()
		if errors.As(err, &faults) {
			what = fmt.Sprintf("the config has %s; the hub goes on with what it had: %s",
				textfile.Count(len(faults), "fault"),
				err)
			for _, f := range faults {
				w.faulty = append(w.faulty, f.File)
			}
		}
		h.ConfigProblem.Store(&what)
		h.Logger.Error("config is not applied", "path", h.Settings().Path, "error", err)
		return
	}
	h.ConfigProblem.Store(nil)
	h.Logger.Info("config is applied", "path", next.Path, "servers", len(next.Upstream.Servers), "profiles",
		h.Surfaces.Now().Profiles())
}

// followSignIns starts those servers anew to which somebody has signed in, or out. Others go on undisturbed.
func (h *Hub) followSignIns() {
	h.desk.Look(func() {
		if err := h.steering.apply(h.Settings().Upstream); err != nil {
			h.Logger.Error("sign-ins are not applied", "error", err)
		}
	})
}

// apply puts new settings into force. What has not changed goes on undisturbed: servers keep their connections, clients
// their sessions.
func (h *Hub) apply(ctx context.Context, s *config.Settings) error {
	was := h.Settings()
	s.Upstream.Self, s.Upstream.Version, s.Upstream.Catalogs = was.Upstream.Self, was.Upstream.Version,
		was.Upstream.Catalogs
	for _, w := range s.Warnings {
		h.Logger.Warn("config", "warning", w)
	}
	s.Downstream.Version, s.Downstream.HTTP.Listen = was.Downstream.Version, was.Downstream.HTTP.Listen
	if len(s.Downstream.Auth.Tokens) == 0 && s.Downstream.HTTP.Listen != "" {
		if err := s.Downstream.CheckListen(s.Downstream.HTTP.Listen); err != nil {
			return err
		}
	}
	next, err := configure(s, h.Permission.Grants, h.hubTools, h.commands, h.Logger)
	if err != nil {
		return err
	}
	if err := h.steering.apply(s.Upstream); err != nil {
		return err
	}
	if s.Journal != was.Journal || s.Stored != was.Stored || s.Store != was.Store || s.Records != was.Records ||
		s.StateDir != was.StateDir || s.Log != was.Log || s.Telemetry != was.Telemetry ||
		s.KeyringSignIns != was.KeyringSignIns ||
		s.Downstream.Name != was.Downstream.Name || s.Embeddings != was.Embeddings {
		h.Logger.Warn("changes of persist, hub.log, hub.name, hub.metrics, hub.telemetry, " +
			"hub.sign_in_key and deferred.embeddings take effect at the next start")
	}
	h.Surfaces.replace(next, func() { h.server.Apply(s.Downstream, next.views()) })
	warnOfMode(h.Logger, s)
	if s.Policy.Mode != was.Policy.Mode {
		sayMode(h.Logger, s)
	}
	return h.Permission.apply(ctx, s)
}
