package hub

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// TestMendedWhileItWasRead: a file with a fault that changes while it is read is read again.
func TestMendedWhileItWasRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mended := filepath.Join(dir, "rules.yaml")
	h := &Hub{Surfaces: &surfaces{}, Logger: slog.New(slog.DiscardHandler)}
	h.Surfaces.configured.Store(&Configured{Settings: &config.Settings{Path: filepath.Join(dir, "mcp-toolhub.yaml")}})
	w := &configWatch{hub: h, read: func() (*config.Settings, error) {
		if err := os.WriteFile(mended, []byte("rules: []"), 0o600); err != nil {
			t.Error(err)
		}
		return nil, textfile.Faults{{File: mended}}
	}}
	w.reload(t.Context())
	for _, again := range []bool{false, true, false, false} { // it has to settle
		if w.settings.changed(w.settingsFiles(h.Settings())) != again {
			t.Errorf("it is to be read again: %t", !again)
		}
	}
}

// A file that was empty when reading began may have been read empty, although it holds something
// afterwards: whoever writes it has not been done yet, and is read again.
func TestEmptyWhileItWasRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mcp-toolhub.yaml")
	w := &configWatch{}
	for before, refused := range map[string]bool{"": true, "{}": false} {
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		w.read = func() (*config.Settings, error) {
			info, err := os.Stat(file)
			return &config.Settings{Path: file, Read: map[string]fs.FileInfo{file: info}},
				errors.Join(err, os.WriteFile(file, []byte("{} # done"), 0o600))
		}
		_, err := w.load()
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "the file is empty; restore it") {
			t.Errorf("it held %q: %v", before, err)
		}
	}
}
