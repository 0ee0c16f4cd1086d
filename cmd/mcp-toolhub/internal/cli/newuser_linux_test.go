package cli

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOfferOfADirectory: start offers the home directory to programs of the config that have none.
func TestOfferOfADirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "hub.yaml")
	writeFile(t, file, "mcpServers:\n  mine: {command: mcp-toolhub, args: [demo-server]} # mine\n")
	p := newTerminal(t)
	cmd := exec.Command("mcp-toolhub", "start", "--skip", "import,check,connect", "--config", file)
	cmd.Dir, cmd.Env = dir, scratchEnv(dir)
	wait := p.start(t, cmd)
	t.Cleanup(func() { stopShared(t, filepath.Join(dir, "state", "mcp-toolhub")) })
	for _, question := range []string{"Keep a hub running", "Let them run in your home"} {
		p.sees(t, question, 1)
		p.types(t, "y\n")
	}
	if said := wait() + p.shown(); !strings.Contains(said, "A hub runs in the background") || strings.Contains(said, "have a hub of their own") {
		t.Error(said)
	}
	if got := readFile(t, file); got != "mcpServers:\n  mine: {command: mcp-toolhub, args: [demo-server], cwd: \"${userHome}\"} # mine\n" {
		t.Error(got)
	}
}
