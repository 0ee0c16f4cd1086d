package cli

import (
	"archive/zip"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// bundle writes the zip of doctor --bundle, for a bug report. Nothing in it has secrets, or
// arguments or results of calls.
type bundle struct {
	*app
	zip  *zip.Writer
	tree *textfile.Node // of the config; nil where it cannot be read
	home string
	has  []string // names of its files, with what they are
	err  error    // the first
}

// maxLog bounds how much of a log file is read, from its end.
const maxLog = 256 << 10

// write writes the bundle to a new file.
func (b *bundle) write(ctx context.Context, file string) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return exitUsage.errorf("there is a file %q already: name another one", file)
	case err != nil:
		return fmt.Errorf("write the bundle: %w", err)
	}
	b.zip = zip.NewWriter(out)
	b.home, _ = os.UserHomeDir()
	b.fill(ctx)
	if err := errors.Join(b.err, b.zip.Close(), out.Close()); err != nil {
		return errors.Join(fmt.Errorf("write the bundle: %w", err), os.Remove(file))
	}
	b.std.say("%s has:", file)
	for _, what := range b.has {
		fmt.Fprintln(b.std.out, "  "+what)
	}
	b.std.say(
		"It has no arguments and no results of calls, and [masked] in the place of secrets. Look into it before " +
			"you send it.")
	return nil
}

func (b *bundle) fill(ctx context.Context) {
	s, loadErr := b.load(ctx)
	state := ""
	if s != nil {
		state = s.StateDir
	} else {
		state, _ = b.findState()
	}
	name := ""
	if s != nil {
		name = s.Path
	} else if found, err := b.find(); err == nil && len(found) > 0 {
		name = found[0].Path
	}
	text, err := os.ReadFile(name)
	if err == nil {
		b.tree, _ = textfile.Parse(name, text)
	}
	b.addJSON("versions.json", "this program, and the system", map[string]any{"version": versionText(),
		"processors": runtime.NumCPU(),
		"time":       time.Now().UTC().Format(time.RFC3339)})
	if b.tree != nil { // what has no tree cannot be masked
		b.add("config"+cmp.Or(filepath.Ext(name), ".yaml"), "the config", string(text))
	}
	b.add("check.txt", "what is wrong with the config", checked(s, loadErr))
	hubs, _ := control.Find(ctx, state) // none: that is what the bundle says
	for _, h := range hubs {
		report, err := h.Report(ctx)
		if err != nil {
			continue
		}
		log := report.Log
		report.Log = nil
		b.addJSON(fmt.Sprintf("hub-%d.json", h.PID()), "a hub that runs: its servers, and what makes it unwell", report)
		b.add(fmt.Sprintf("hub-%d.log", h.PID()), "the latest lines of its log", strings.Join(log, "\n")+"\n")
	}
	if text := tailOf(filepath.Join(state, hub.LogFile)); text != "" {
		b.add(hub.LogFile, "the latest lines of the log of a hub in the background", text)
	}
	b.add("state.txt", "the files in the state directory: how large, and when they were written", filesIn(state))
}

// checked says what is wrong with a config. err is from load.
func checked(s *config.Settings, err error) string {
	if err != nil {
		return err.Error() + "\n"
	}
	var out strings.Builder
	for _, w := range s.Warnings {
		fmt.Fprintf(&out, "warning: %s\n", w)
	}
	return cmp.Or(out.String(), "nothing\n")
}

// tailOf is the end of a log file, without what servers have written; "" where there is none.
func tailOf(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	if len(text) > maxLog {
		text = text[len(text)-maxLog:]
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		out.WriteString(telemetry.WithoutWords(line))
	}
	return out.String()
}

// filesIn lists the files of the state directory, two levels deep: their names are the hub's own.
func filesIn(state string) string {
	var out strings.Builder
	_ = filepath.WalkDir(state, func(path string, entry fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(state, path)
		if err != nil || relErr != nil || rel == "." {
			return nil
		}
		if entry.IsDir() && strings.Count(filepath.ToSlash(rel), "/") >= 1 {
			return filepath.SkipDir
		}
		if info, err := entry.Info(); err == nil && !entry.IsDir() {
			fmt.Fprintf(&out, "%12d  %s  %s\n", info.Size(), info.ModTime().UTC().Format(time.RFC3339),
				filepath.ToSlash(rel))
		}
		return nil
	})
	return out.String()
}

func (b *bundle) addJSON(name, what string, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		b.err = errors.Join(b.err, err)
		return
	}
	b.add(name, what, string(text)+"\n")
}

// add adds a file, without secrets and without the person's home directory.
func (b *bundle) add(name, what, text string) {
	if b.tree != nil {
		text = clients.Mask(text, b.tree)
	}
	text, _ = b.known.Masker(nil).Text(text)
	if b.home != "" {
		text = strings.ReplaceAll(text, b.home, "~")
	}
	w, err := b.zip.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Now()})
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	b.err = errors.Join(b.err, err)
	b.has = append(b.has, fmt.Sprintf("%-16s %s", name, what))
}
