package config

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func lookup(pairs map[string]string) Env {
	return func(name string) (string, bool) {
		v, ok := pairs[name]
		return v, ok
	}
}

func TestFindOrder(t *testing.T) {
	t.Parallel()
	work, home := t.TempDir(), t.TempDir()
	e := lookup(map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "AppData": home, "USERPROFILE": home})
	user := filepath.Join(e.configDir(runtime.GOOS), program)
	if err := os.MkdirAll(user, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Find("", e, work)
	if !errors.Is(err, errNotFound) || !strings.Contains(err.Error(), work) || !strings.Contains(err.Error(), user) ||
		!strings.Contains(err.Error(), "mcp-toolhub setup") {
		t.Errorf("the error does not say where it looked and how to begin: %v", err)
	}
	// From the last place to the first: each new file wins over those before it.
	for _, path := range []string{
		filepath.Join(user, "config.json"), filepath.Join(user, "config.yaml"),
		filepath.Join(work, "mcp-toolhub.jsonc"), filepath.Join(work, "mcp-toolhub.json"),
		filepath.Join(work, "mcp-toolhub.yml"), filepath.Join(work, "mcp-toolhub.yaml"),
	} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Find("", e, work)
		if err != nil || got[0] != (Found{path, filepath.Dir(path) == work}) {
			t.Errorf("got %v, %v; want %q first", got, err, path)
		}
	}
	if got, _ := Find("", e, work); len(got) != 2 || got[1].Path != filepath.Join(user, "config.yaml") {
		t.Errorf("behind the project's there is not the user's own: %v", got)
	}
	named := lookup(map[string]string{pathVariable: "named.yaml"})
	if got, _ := Find("", named, work); len(got) != 1 || got[0] != (Found{Path: "named.yaml"}) {
		t.Errorf("%s: got %v", pathVariable, got)
	}
	if got, _ := Find("flag.yaml", named, work); len(got) != 1 || got[0] != (Found{Path: "flag.yaml"}) {
		t.Errorf("--config: got %v", got)
	}
}

func TestUserDirectories(t *testing.T) {
	t.Parallel()
	e := lookup(map[string]string{"HOME": "/h", "USERPROFILE": "/u", "AppData": "/r", "LocalAppData": "/l"})
	for _, c := range []struct{ goos, config, state string }{
		{"linux", "/h/.config", "/h/.local/state"},
		{"darwin", "/h/Library/Application Support", "/h/Library/Application Support"},
		{"windows", "/r", "/l"},
	} {
		if got := filepath.ToSlash(e.configDir(c.goos)); got != c.config {
			t.Errorf("%s: config in %q, want %q", c.goos, got, c.config)
		}
		if got := filepath.ToSlash(e.stateDir(c.goos)); got != c.state {
			t.Errorf("%s: state in %q, want %q", c.goos, got, c.state)
		}
	}
	relative := lookup(map[string]string{"HOME": "/h", "XDG_STATE_HOME": "relative", "XDG_CONFIG_HOME": "relative"})
	if got := filepath.ToSlash(relative.stateDir("linux") + " " + relative.configDir("linux")); got != "/h/.local/state /h/.config" {
		t.Errorf("a relative XDG path is not ignored: %q", got)
	}
	if _, err := StateDir("", nil); err == nil || !strings.Contains(err.Error(), "--state-dir") {
		t.Errorf("without a home: %v", err)
	}
	if got, err := StateDir("x", nil); err != nil || !filepath.IsAbs(got) {
		t.Errorf("the flag: %q, %v", got, err)
	}
}

func TestNormalise(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Sequential Thinking": "sequential-thinking", "github.com/x": "github-com-x", "--a__b--": "a__b--", "Ünï": "n",
		"a...b": "a-b", "!!!": "", "A1": "a1", " x ": "x",
	} {
		if got := normalise(name); got != want {
			t.Errorf("normalise(%q) = %q, want %q", name, got, want)
		}
		if got := normalise(normalise(name)); got != want {
			t.Errorf("normalise is not stable on %q", name)
		}
	}
}

func TestDotenvValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`plain`: "plain", `a b # c`: "a b", `a#b`: "a#b", `'a \n "b"' # c`: `a \n "b"`, `"a\n\"b\" \\ \x"`: "a\n\"b\" \\ \\x", ``: "",
	} {
		if got, ok := dotenvValue(text); got != want || !ok {
			t.Errorf("dotenvValue(%s) = %q, %v; want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{`"open`, `'open`, `"open\"`} {
		if got, ok := dotenvValue(text); ok {
			t.Errorf("dotenvValue(%s) = %q, want a fault", text, got)
		}
	}
}
