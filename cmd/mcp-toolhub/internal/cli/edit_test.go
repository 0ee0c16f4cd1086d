package cli

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secrets"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
)

// TestSecretsOfAFailedEdit: where the config cannot be written, the secrets of the edit are forgotten, but not one that the config refers to
// by then, because another import was faster.
func TestSecretsOfAFailedEdit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "hub.yaml")
	doc, err := clients.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, []byte("mcpServers: {a: {url: 'https://a.example/mcp', headers: {K: '${secret:taken}'}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	after, err := splice.Read(splice.YAML, []byte("mcpServers: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	e := configEdit{target: target, doc: doc, state: filepath.Join(dir, "state")}
	if err := e.store(after, map[string]string{"taken": "word-of-ann", "other": "word-of-bob"}); err == nil {
		t.Error("a config that was written meanwhile was overwritten")
	}
	all, err := secrets.Read(e.state)
	if names := slices.Sorted(maps.Keys(all)); err != nil || !slices.Equal(names, []string{"taken"}) {
		t.Errorf("kept are %q, %v", names, err)
	}
}
