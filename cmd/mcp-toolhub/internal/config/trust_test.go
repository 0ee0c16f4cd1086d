package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

// trustedProject is a project whose config reads a file in each way that there is, with all of them trusted.
func trustedProject(t *testing.T) (dir string, load func(dir string) (*config.Settings, error)) {
	t.Helper()
	dir = t.TempDir()
	state := t.TempDir()
	for name, text := range map[string]string{
		"mcp-toolhub.yaml": "mcpServers: {a: {command: x, args: [\"${file:arg.txt}\"], envFile: child.env}}\npolicy: {rule_files: {managed: rules.yaml}}\n",
		"arg.txt":          "one\n", "child.env": "A=1\n", "rules.yaml": "rules: [{match: a, then: deny}]\n",
	} {
		put(t, filepath.Join(dir, name), text)
	}
	load = func(dir string) (*config.Settings, error) {
		return config.Load(config.Source{Path: filepath.Join(dir, "mcp-toolhub.yaml"), StateDir: state, Env: testEnv(), Project: true})
	}
	_, err := load(dir)
	var untrusted *config.UntrustedError
	if !errors.As(err, &untrusted) || untrusted.Changed || untrusted.Settings == nil {
		t.Fatalf("before it is trusted: %v", err)
	}
	if err := untrusted.Settings.Trust(); err != nil {
		t.Fatal(err)
	}
	return dir, load
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Trust holds for the path and for the content of every file that the config reads, by whichever way its directory is entered.
func TestTrustIsBoundToPathAndContent(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir string) string{
		"": func(_ *testing.T, dir string) string { return dir },
		"entered by a link": func(t *testing.T, dir string) string {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(dir, link); err != nil {
				t.Skip(err)
			}
			return link
		},
		"another file nearby": func(t *testing.T, dir string) string { put(t, filepath.Join(dir, "other.env"), "B=2\n"); return dir },
	} {
		dir, load := trustedProject(t)
		if s, err := load(change(t, dir)); err != nil || s.TrustFile == "" || len(s.Upstream.Servers) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(t *testing.T, dir string) string{
		"config": func(t *testing.T, dir string) string {
			put(t, filepath.Join(dir, "mcp-toolhub.yaml"), "mcpServers: {a: {command: y}}\n")
			return dir
		},
		"rules": func(t *testing.T, dir string) string {
			put(t, filepath.Join(dir, "rules.yaml"), "rules: []\n")
			return dir
		},
		"envFile": func(t *testing.T, dir string) string { put(t, filepath.Join(dir, "child.env"), "PATH=.\n"); return dir },
		"file":    func(t *testing.T, dir string) string { put(t, filepath.Join(dir, "arg.txt"), "two\n"); return dir },
		"path": func(t *testing.T, dir string) string {
			moved := filepath.Join(t.TempDir(), "moved")
			if err := os.CopyFS(moved, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			return moved
		},
	} {
		dir, load := trustedProject(t)
		s, err := load(change(t, dir))
		var untrusted *config.UntrustedError
		if s != nil || !errors.As(err, &untrusted) || untrusted.Changed != (name != "path") ||
			!strings.Contains(err.Error(), "then run: mcp-toolhub allow-config") {
			t.Errorf("another %s: %v, %v", name, s != nil, err)
		}
	}
}
