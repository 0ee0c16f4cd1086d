package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// maxLog bounds how much of a log file is read, from its end.
const maxLog = 256 << 10

// writeBundle writes the new file of doctor --bundle, for a bug report. Nothing in it has secrets,
// or arguments or results of calls.
func (d *doctorCmd) writeBundle(ctx context.Context, file string) error {
	text, err := d.bundled(ctx)
	if err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exitUsage.errorf("there is a file %q already: name another one", file)
	}
	if err == nil {
		_, err = out.WriteString(text)
		if err = errors.Join(err, out.Close()); err != nil {
			err = errors.Join(err, os.Remove(file))
		}
	}
	if err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	d.std.say("%s has no arguments and no results of calls, and [masked] in the place of secrets. Look into it before "+
		"you send it.", file)
	return nil
}

// bundled is the text of the bundle, without secrets and without the person's home directory.
func (d *doctorCmd) bundled(ctx context.Context) (string, error) {
	var all strings.Builder
	part := func(title, text string) { fmt.Fprintf(&all, "==== %s\n%s\n\n", title, strings.TrimSpace(text)) }
	part("version", versionText()+"\n"+time.Now().UTC().Format(time.RFC3339))
	s, loadErr := d.load(ctx)
	state, name, wrong := "", "", ""
	if s != nil {
		state, name = s.StateDir, s.Path
		for _, w := range s.Warnings {
			wrong += fmt.Sprintf("warning: %s\n", w)
		}
	} else {
		state, _ = d.findState()
		if found, err := d.find(); err == nil && len(found) > 0 {
			name = found[0].Path
		}
		wrong = loadErr.Error()
	}
	var tree *textfile.Node // of the config: what has none cannot be masked
	if text, err := os.ReadFile(name); err == nil {
		if tree, _ = textfile.Parse(name, text); tree != nil {
			part("config", string(text))
		}
	}
	part("faults of the config", cmp.Or(wrong, "none"))
	hubs, _ := control.Find(ctx, state) // none: that is what the bundle says
	for _, h := range hubs {
		report, err := h.Report(ctx)
		if err != nil {
			continue
		}
		log := report.Log
		report.Log = nil
		how, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return "", err
		}
		part(fmt.Sprintf("hub that runs as process %d", h.PID()), string(how))
		part("its log", strings.Join(log, "\n"))
	}
	end, _ := hub.TailOf(filepath.Join(state, hub.LogFile), 0, maxLog) // there may be none
	written := ""
	for line := range strings.Lines(end) {
		written += telemetry.WithoutWords(line)
	}
	part(hub.LogFile, written)
	text := all.String()
	if tree != nil {
		text = clients.Mask(text, tree)
	}
	text, _ = d.known.Masker(nil).Text(text)
	if home, _ := os.UserHomeDir(); home != "" {
		text = strings.ReplaceAll(text, home, "~")
	}
	return text, nil
}
