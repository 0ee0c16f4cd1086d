//go:build e2e

package cli

import (
	"os/exec"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/upstream/upstreamtest"
)

// wireFake runs a scripted server without a hub.
func wireFake(t testing.TB, s upstreamtest.Script, version string) *wire {
	t.Helper()
	command, args, env := upstreamtest.Command(s)
	cmd := exec.Command(command, args...)
	cmd.Env = append(scratchEnv(t.TempDir()), env...)
	return wireProcess(t, cmd, version)
}
