package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// env is an environment of just these variables.
func env(pairs map[string]string) config.Env {
	return func(name string) (string, bool) {
		v, ok := pairs[name]
		return v, ok
	}
}

// testEnv is an environment with a home.
func testEnv() config.Env {
	return env(map[string]string{
		"HOME": "/home/ada", "USERPROFILE": `C:\Users\ada`, "LocalAppData": `C:\Users\ada\AppData\Local`,
		"SET": "a-token-of-enough-bytes", "SHORT": "short", "SPACED": "a token that holds spaces",
		"API_KEY": "key-of-the-api", "MCP_TOOLHUB_INPUT_PERPLEXITY_KEY": "key-of-perplexity",
	})
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (run the test with -update to rewrite it)\ngot:\n%s\nwant:\n%s", path, got, want)
	}
}

func files(t *testing.T, patterns ...string) []string {
	t.Helper()
	var all []string
	for _, p := range patterns {
		found, err := filepath.Glob(p)
		if err != nil || len(found) == 0 {
			t.Fatalf("no files match %q: %v", p, err)
		}
		all = append(all, found...)
	}
	return all
}
