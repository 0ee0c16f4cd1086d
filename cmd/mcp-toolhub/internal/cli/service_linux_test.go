//go:build e2e

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The command line of the unit that service install writes is a hub that serves the config. testdata/scripts/service.txtar has the rest.
func TestServiceUnitServes(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("mcp-toolhub")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	file := filepath.Join(home, "50% $HOME.yaml")
	if err := os.WriteFile(file, []byte("mcpServers: {demo: {command: mcp-toolhub, args: [demo-server]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	install := exec.Command(program, "service", "install", "-c", file, "--http", "127.0.0.1:0", "--log-format", "json", "--dry-run")
	install.Env = scratchEnv(home)
	unit, err := install.Output()
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(string(unit))
	if line == nil {
		t.Fatalf("no ExecStart in\n%s", unit)
	}
	var words []string // as systemd reads them
	for _, word := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(line[1], -1) {
		words = append(words, strings.NewReplacer("%%", "%", "$$", "$").Replace(word[1]))
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = home, scratchEnv(home)
	h, err := launchCommand(cmd)
	if err != nil {
		t.Fatal(err)
	}
	ask := exec.Command(program, "servers", "--config", words[slices.Index(words, "--config")+1])
	ask.Env = cmd.Env
	servers, err := ask.CombinedOutput()
	if err != nil || !strings.Contains(string(servers), "demo") {
		t.Errorf("%v: %s", err, servers)
	}
	if err := h.stop(); err != nil {
		t.Error(err)
	}
}
