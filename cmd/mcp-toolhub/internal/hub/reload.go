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
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// lookEvery is the time between two looks at files. A file is read again once it has stayed the
// same from one look to the next: editors write in several steps.
const lookEvery = 500 * time.Millisecond

// configWatch applies the files of a hub's settings again when they change, and likewise the files
// of remembered answers and sign-ins. It looks at them again and again: that works on every file
// system, and through every link.
type configWatch struct {
	hub    *Hub
	read   func() (*config.Settings, error)
	faulty []string        // files with faults, which settings that are not in force may name
	empty  map[string]bool // files of the settings that were read last that hold nothing

	settings, answers, signIns watched
}

// Watch applies the config whenever one of its files changes, or reload asks for it, until ctx ends.
// read reads the config again.
func (h *Hub) Watch(ctx context.Context, read func() (*config.Settings, error), reload <-chan os.Signal) {
	s := h.Settings()
	w := &configWatch{hub: h, read: read, empty: emptyFiles(s.Read)}
	w.settings.adopt(w.settingsFiles(s), s.Read)
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-reload:
			h.Permission.reload()
			w.reload(ctx)
		case <-tick.C:
			w.look(ctx)
		}
	}
}

// look reads again what has changed.
func (w *configWatch) look(ctx context.Context) {
	h := w.hub
	if w.answers.changed(h.Permission.files()) {
		h.Permission.reload()
	}
	signIns := w.signIns.changed([]string{h.signIns.File()})
	if w.settings.changed(w.settingsFiles(h.Settings())) {
		w.reload(ctx) // which starts servers anew that have other sign-ins
	} else if signIns {
		h.followSignIns()
	}
}

// watched are files that are read together. Its zero value has them read once they have settled.
type watched struct {
	read, last map[string]fs.FileInfo // what they were when they were read, and at the last look
}

// changed looks at the files. It reports whether they are to be read, and takes it that they will be.
func (w *watched) changed(files []string) bool {
	now := infosOf(files)
	same := func(as map[string]fs.FileInfo) bool {
		return !slices.ContainsFunc(files, func(file string) bool { return !sameInfo(now[file], as[file]) })
	}
	settled := w.last != nil && same(w.last)
	w.last = now
	if !settled || w.read != nil && same(w.read) {
		return false
	}
	w.read = now
	return true
}

// adopt takes over what files were when they were read. Others count as read now if they are new.
func (w *watched) adopt(files []string, read map[string]fs.FileInfo) {
	all := infosOf(files)
	maps.Copy(all, w.read)
	maps.Copy(all, read)
	w.read = all
}

// infosOf returns what files are now, as far as they exist.
func infosOf(files []string) map[string]fs.FileInfo {
	all := make(map[string]fs.FileInfo, len(files))
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			all[file] = info
		}
	}
	return all
}

func sameInfo(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// load reads the settings, and refuses a file that was emptied since it was read last. A write that
// failed leaves such a file, for instance on a full disk. In force it would end every server, or
// every rule.
func (w *configWatch) load() (*config.Settings, error) {
	next, err := w.read()
	if err != nil {
		return nil, err
	}
	empty := emptyFiles(next.Read)
	maps.Copy(empty, emptyFiles(infosOf(w.settingsFiles(next)))) // it may have been emptied in between
	for _, file := range slices.Sorted(maps.Keys(empty)) {
		if !w.empty[file] {
			return nil, fmt.Errorf("read %q: the file is empty; restore it, or write {} into it if that is meant", file)
		}
	}
	w.empty = empty
	return next, nil
}

// emptyFiles returns the files that hold nothing.
func emptyFiles(files map[string]fs.FileInfo) map[string]bool {
	empty := make(map[string]bool)
	for file, info := range files {
		if info.Size() == 0 {
			empty[file] = true
		}
	}
	return empty
}

// settingsFiles returns the files that settings like s come from, and the record that they are trusted.
func (w *configWatch) settingsFiles(s *config.Settings) []string {
	files := slices.Concat([]string{s.Path, filepath.Join(s.StateDir, secrets.File)}, s.RuleFiles, w.faulty)
	if s.TrustFile != "" {
		files = append(files, s.TrustFile)
	}
	return files
}

// reload applies the config file as it stands now. One with faults changes nothing: the hub goes on
// as it was and says so.
func (w *configWatch) reload(ctx context.Context) {
	h, began := w.hub, time.Now()
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
		w.settings.adopt(w.settingsFiles(h.Settings()), nil)
		// One that has changed since counts as unread. Clocks of file systems lag some milliseconds.
		maps.DeleteFunc(w.settings.read, func(_ string, info fs.FileInfo) bool {
			return info.ModTime().After(began.Add(-50 * time.Millisecond))
		})
		h.Logger.Error("config is not applied", "path", h.Settings().Path, "error", err)
		return
	}
	h.ConfigProblem.Store(nil)
	w.settings.adopt(w.settingsFiles(next), next.Read)
	h.Logger.Info("config is applied", "path", next.Path, "servers", len(next.Upstream.Servers), "profiles",
		h.Surfaces.Now().Profiles())
}

// followSignIns starts those servers anew to which somebody has signed in, or out. Others go on undisturbed.
func (h *Hub) followSignIns() {
	h.desk.Look(func() {
		if err := h.steering.apply(h.Settings().Upstream, ""); err != nil {
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
	if err := h.steering.apply(s.Upstream, ""); err != nil {
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
