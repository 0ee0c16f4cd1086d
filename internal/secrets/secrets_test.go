package secrets_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
)

// TestChanges of several processes at the same moment all count, and nobody finds a secret in the files.
func TestChanges(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			err := secrets.Change(state, func(all map[string]string) error { all["n"+strconv.Itoa(i)] = "hunter2"; return nil })
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err := secrets.Read(state)
	if err != nil || len(got) != 20 {
		t.Errorf("%d secrets, %v", len(got), err)
	}
	refused := errors.New("no")
	err = secrets.Change(state, func(all map[string]string) error { clear(all); return refused })
	if again, _ := secrets.Read(state); !errors.Is(err, refused) || !maps.Equal(again, got) {
		t.Errorf("a change that was refused counts: %v, %v", again, err)
	}
	for _, name := range []string{secrets.File, secrets.KeyFile} {
		file := filepath.Join(state, name)
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
		if data, _ := os.ReadFile(file); bytes.Contains(data, []byte("hunter2")) {
			t.Errorf("%s holds a secret", name)
		}
	}
}

// TestLostKey: with another key the secrets are not read as none, and not overwritten.
func TestLostKey(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	set := func(all map[string]string) error { all["a"] = "b"; return nil }
	if all, err := secrets.Read(state); err != nil || len(all) > 0 {
		t.Errorf("before the first: %v, %v", all, err)
	}
	if err := secrets.Change(state, set); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(state, secrets.KeyFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Read(state); err == nil || !strings.Contains(err.Error(), "does not fit to its key") {
		t.Error(err)
	}
	if err := secrets.Change(state, set); err == nil {
		t.Error("secrets that cannot be read were overwritten")
	}
	for name, want := range map[string]bool{"a": true, "A.b-c_1": true, "": false, ".a": false, "a}": false, "a b": false,
		strings.Repeat("a", 101): false} {
		if secrets.ValidName(name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}
