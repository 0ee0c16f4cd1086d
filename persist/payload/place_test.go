package payload_test

import (
	"context"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

// testbed is an empty place for results. Its methods see and change what is there without the store.
type testbed interface {
	config() payload.Config
	keys(t testing.TB, prefix string) []string // sorted
	get(t testing.TB, key string) []byte
	set(t testing.TB, key string, text []byte)
	remove(t testing.TB, key string)

	// slow says that each of these takes a request.
	slow() bool
}

// onEach runs a test of the conformance suite on each kind of place.
func onEach(t *testing.T, test func(t *testing.T, at testbed)) {
	t.Parallel()
	all := map[string]func(t testing.TB) testbed{"directory": func(t testing.TB) testbed { return directory{filepath.Join(t.TempDir(), "results")} }}
	maps.Copy(all, buckets())
	for name, empty := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, empty(t))
		})
	}
}

func openAt(t testing.TB, at testbed) *payload.Store { return open(t, at.config()) }

func open(t testing.TB, c payload.Config) *payload.Store {
	t.Helper()
	s, err := payload.Open(context.Background(), c, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// payloadOf is the key of the payload of e.
func payloadOf(e payload.Entry) string { return "bytes/" + string(e.ID) + "-" + e.Digest[:8] }

type directory struct{ dir string }

func (d directory) config() payload.Config { return payload.Config{Dir: d.dir} }
func (d directory) path(key string) string { return filepath.Join(d.dir, filepath.FromSlash(key)) }
func (d directory) slow() bool             { return false }

func (d directory) keys(t testing.TB, prefix string) (keys []string) {
	t.Helper()
	err := filepath.WalkDir(d.path(prefix), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			keys = append(keys, strings.TrimPrefix(filepath.ToSlash(strings.TrimPrefix(path, d.dir)), "/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	return keys
}

func (d directory) get(t testing.TB, key string) []byte {
	t.Helper()
	text, err := os.ReadFile(d.path(key))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (d directory) set(t testing.TB, key string, text []byte) {
	t.Helper()
	if err := os.WriteFile(d.path(key), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (d directory) remove(t testing.TB, key string) {
	t.Helper()
	if err := os.Remove(d.path(key)); err != nil {
		t.Fatal(err)
	}
}
