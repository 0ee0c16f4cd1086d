package statefile_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

func TestWriteReplaces(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state", "deep")
	file := filepath.Join(dir, "x")
	for text, write := range map[string]func(string, []byte) error{"one": statefile.Write, "two": statefile.WriteCache} {
		if err := write(file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != text {
			t.Errorf("holds %q, %v", got, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, file: 0o600} {
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// A file that cannot be put in its place leaves nothing behind.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := statefile.Write(filepath.Join(dir, "x"), nil); err == nil {
		t.Error("a directory was replaced")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state", "x")
	var inside, n atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			unlock, err := statefile.Lock(file)
			if err != nil {
				t.Error(err)
				return
			}
			if inside.Add(1) > 1 {
				t.Error("two hold the lock")
			}
			n.Add(1)
			inside.Add(-1)
			unlock()
		})
	}
	all.Wait()
	if n.Load() != 20 {
		t.Errorf("%d changes", n.Load())
	}
}

func TestLockIsHeld(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x")
	synctest.Test(t, func(t *testing.T) {
		unlock, err := statefile.Lock(file)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		if _, err := statefile.Lock(file); err == nil || !strings.Contains(err.Error(), "another process holds it: try again") {
			t.Errorf("got %v", err)
		}
	})
	if err := os.WriteFile(file+"2", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := statefile.Lock(filepath.Join(file+"2", "x")); err == nil {
		t.Error("a file is taken for a directory")
	}
}

// Whoever can put a symbolic link in the place of a lock gets no file made elsewhere.
func TestLockFollowsNoLink(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there is no flag for this on Windows")
	}
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.Symlink(victim, filepath.Join(dir, "x.lock")); err != nil {
		t.Fatal(err)
	}
	if unlock, err := statefile.Lock(filepath.Join(dir, "x")); err == nil {
		unlock()
		t.Error("the link was followed")
	}
	if _, err := os.Lstat(victim); err == nil {
		t.Error("a file was made where the link points")
	}
}
