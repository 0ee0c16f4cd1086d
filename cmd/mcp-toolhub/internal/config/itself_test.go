package config_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

// An entry that starts the hub on the file in which it stands is a fault, however it names the file. A hub on another file is none.
func TestAConfigThatStartsItselfIsAFault(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	vars := env(map[string]string{"HOME": home, "USERPROFILE": home, "AppData": home, "XDG_CONFIG_HOME": home})
	own := filepath.Join(home, "mcp-toolhub", "config.yaml")
	if err := os.Mkdir(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(home, "other.yaml"), "{}")
	for entry, fault := range map[string]bool{
		`command: mcp-toolhub, args: [serve]`:                                                                true,
		`command: /usr/bin/mcp-toolhub, args: [serve, --config, "${workspaceFolder}/config.yaml"]`:           true,
		`command: mcp-toolhub, args: [--config=config.yaml, serve], cwd: .`:                                  true,
		`command: mcp-toolhub, args: [serve, -c, ../mcp-toolhub/config.yaml], cwd: .`:                        true,
		`command: mcp-toolhub, args: [serve], env: {MCP_TOOLHUB_CONFIG: "${workspaceFolder}/config.yaml"}`:   true,
		`command: mcp-toolhub, args: [serve, --config, "${workspaceFolder}/../other.yaml"]`:                  false,
		`command: mcp-toolhub, args: [serve], env: {MCP_TOOLHUB_CONFIG: "${workspaceFolder}/../other.yaml"}`: false,
		`command: mcp-toolhub, args: [demo-server]`:                                                          false,
		`command: other, args: [serve]`:                                                                      false,
		`command: mcp-toolhub, args: [serve], disabled: true`:                                                false,
	} {
		put(t, own, "mcpServers:\n  toolhub: {"+entry+"}\n")
		_, err := config.Load(config.Source{Path: own, StateDir: home, Env: vars})
		want := own + ":2:3: mcpServers.toolhub: this entry starts the hub on this very file, so it would start itself without end; "
		if fault && (err == nil || !strings.Contains(err.Error(), want)) || !fault && err != nil {
			t.Errorf("%s on %s: %v", entry, runtime.GOOS, err)
		}
	}
}
