package hub

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestStateDirectoryIsClosedToOthers begins with a state directory that others can read, and that holds a file which is
// not the hub's.
func TestStateDirectoryIsClosedToOthers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing about other users on Windows")
	}
	dir := filepath.Join(t.TempDir(), "state")
	outside := filepath.Join(t.TempDir(), "outside")
	was := map[string]os.FileMode{".": 0o755, "state.key": 0o644, "grants.yaml": 0o664, "run": 0o755,
		"run/1.json": 0o604,
		"journal":    0o770, "journal/a.jsonl": 0o640, "catalogs": 0o700, "catalogs/b": 0o600, "mine.txt": 0o644}
	for _, name := range []string{".", "run", "journal", "catalogs"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, mode := range was {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(outside, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(outside, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "run", "link.json")); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	if err := OpenStateDir(dir, logger); err != nil {
		t.Fatal(err)
	}
	mode := func(path string) os.FileMode {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	for name, before := range was {
		want := before &^ 0o077
		if name == "mine.txt" {
			want = before
		}
		if got := mode(filepath.Join(dir, name)); got != want {
			t.Errorf("%s has the mode %04o, want %04o", name, got, want)
		}
		told := strings.Contains(log.String(), "path="+filepath.Join(dir, name)+" was=")
		if told != (want != before) {
			t.Errorf("warned of %s: %v", name, told)
		}
	}
	if got := mode(outside); got != 0o644 {
		t.Errorf("a file outside of the state directory got the mode %04o", got)
	}

	log.Reset()
	if err := OpenStateDir(dir, logger); err != nil || log.Len() > 0 {
		t.Errorf("the second start: %v, %s", err, log.String())
	}
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if err := OpenStateDir(shared, logger); err != nil || mode(shared) != 0o777 ||
		!strings.Contains(log.String(), "--state-dir") {
		t.Errorf("a directory that users share: %v, mode %o, %s", err, mode(shared), log.String())
	}
}
