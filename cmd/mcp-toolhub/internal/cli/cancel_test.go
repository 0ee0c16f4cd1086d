package cli

import (
	"path/filepath"
	"testing"
)

// canceling is a client of a hub that cancels calls, and what the hub recorded.
type canceling struct {
	t     *testing.T
	w     *wire
	state string
	hub   *runningHub // over HTTP
}

// overCancelingClients runs test for clients of both generations over both transports.
func overCancelingClients(t *testing.T, config string, tools []string, test func(*canceling)) {
	t.Helper()
	for _, version := range []string{rev2025, rev2026} {
		t.Run(version+" stdio", func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := &canceling{t: t, state: filepath.Join(dir, "state")}
			c.w = wireHubIn(t, dir, config, version, "--state-dir", c.state)
			c.w.open().awaitTools(tools...)
			test(c)
		})
		t.Run(version+" http", func(t *testing.T) {
			t.Parallel()
			c := &canceling{t: t, state: filepath.Join(t.TempDir(), "state")}
			c.hub = startHub(t, "hub.json", config, "--state-dir", c.state)
			c.w = wireHTTP(t, c.hub.url+"/mcp", version)
			c.w.open().awaitTools(tools...)
			test(c)
		})
	}
}
