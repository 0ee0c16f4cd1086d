//go:build e2e

package cli

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
)

// TestHubInTheBackground: several start at the same moment leave one hub, which all clients join. When it is stopped, they go
// on. Nothing is left.
func TestHubInTheBackground(t *testing.T) {
	t.Parallel()
	c := newCompany(t)
	state := filepath.Join(c.dir, "state", "mcp-toolhub")
	t.Cleanup(func() { stopShared(t, state) })
	early := c.client(t, rev2025)
	var starting sync.WaitGroup
	said := make([]string, 3)
	for i := range said {
		starting.Go(func() { said[i] = c.run(t, "start") })
	}
	starting.Wait()
	hubs, err := control.Find(t.Context(), state)
	if err != nil || len(hubs) != 2 || !hubs[0].Shared() || hubs[1].Shared() {
		t.Fatalf("%d hubs, %v\n%s", len(hubs), err, said)
	}
	first, second := c.client(t, rev2025), c.client(t, rev2026)
	if pids := sharedBy(first, second); len(pids) != 1 {
		t.Errorf("the shared server runs as %v", pids)
	}
	if pids := sharedBy(first, early); len(pids) != 2 {
		t.Errorf("the hub in the background has not come before that of a client: %v", pids)
	}
	early.hangUp()
	if log := readFile(t, filepath.Join(state, hub.LogFile)); !strings.Contains(log, "serving clients that join") {
		t.Errorf("the log: %s", log)
	}
	if got := c.run(t, "stop"); !strings.Contains(got, "Stopped the hub of "+filepath.Join(c.dir, "hub.json")) {
		t.Error(got)
	}
	if got := c.run(t, "stop"); !strings.Contains(got, "No hub runs in the background") {
		t.Error(got)
	}
	if pids := sharedBy(first, second); len(pids) != 1 {
		t.Errorf("the shared server runs as %v", pids)
	}
	first.hangUp()
	second.hangUp()
	eventually(t, "no process of a server is left", func() bool { return len(marked(c.mark)) == 0 })
}

// TestBackgroundHubWithoutItsPort: the advice names the key of the config, as start has no --http.
func TestBackgroundHubWithoutItsPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "hub.yaml")
	writeFile(t, config, "hub: {http: {listen: \""+l.Addr().String()+"\"}}\n")
	cmd := exec.Command("mcp-toolhub", "start", "--config", config)
	cmd.Dir, cmd.Env = dir, scratchEnv(dir)
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "choose another address with hub.http.listen") {
		t.Errorf("%v: %s", err, out)
	}
}

// run runs a command with the config of the company, and returns what it prints.
func (c *company) run(t *testing.T, args ...string) string {
	t.Helper()
	file := filepath.Join(c.dir, "hub.json")
	if err := os.WriteFile(file, []byte(c.config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("mcp-toolhub", append(args, "--config", file)...)
	cmd.Dir, cmd.Env = c.dir, scratchEnv(c.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", args[0], err, out)
	}
	return string(out)
}
