package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

// clientFiles are files of real clients, in their real places.
var clientFiles = []string{
	"testdata/clients/claude-desktop/claude_desktop_config.json",
	"testdata/clients/claude-code/.mcp.json",
	"testdata/clients/claude-code/.claude.json",
	"testdata/clients/cursor/.cursor/mcp.json",
	"testdata/clients/vscode/.vscode/mcp.json",
	"testdata/clients/gemini/.gemini/settings.json",
}

// TestClientFilesLoadAsTheyStand compares the servers that come out, and every warning, with a golden file.
func TestClientFilesLoadAsTheyStand(t *testing.T) {
	t.Parallel()
	for _, path := range clientFiles {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s, err := config.Load(config.Source{Path: filepath.FromSlash(path), Env: testEnv()})
			if err != nil {
				t.Fatal(err)
			}
			servers, err := json.MarshalIndent(s.Upstream.Servers, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			b.Write(servers)
			b.WriteString("\n")
			for _, w := range s.Warnings {
				b.WriteString(w.Error() + "\n")
			}
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(b.String(), here, "HERE")
			if os.PathSeparator != '/' {
				t.Skip("the golden files hold the paths of Unix")
			}
			golden(t, path+".golden", got)
		})
	}
}
