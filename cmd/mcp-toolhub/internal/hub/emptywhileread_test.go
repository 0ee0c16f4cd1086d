package hub

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

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
