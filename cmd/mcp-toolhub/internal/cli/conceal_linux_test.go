//go:build e2e

package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// unprivileged is a directory with the program in it, and how to start processes as the user whose directory it is.
func unprivileged(t *testing.T) (dir, program string, attr *syscall.SysProcAttr) {
	t.Helper()
	dir = t.TempDir()
	program = filepath.Join(dir, "mcp-toolhub")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// cp writes it: a file that this process has open for writing could not be started while another test forks.
	if out, err := exec.Command("cp", self, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	attr = &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		for _, err := range []error{os.Chmod(program, 0o755), os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, nobody, nobody)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	try := exec.Command(program, "version")
	try.Dir, try.SysProcAttr = dir, attr
	if out, err := try.CombinedOutput(); err != nil {
		t.Skipf("this needs a user without rights who can run programs in %s: %v: %s", dir, err, out)
	}
	return dir, program, attr
}

// TestChildrenCannotReadTheHubsEnvironment runs a command, as the user of the hub, that tries to read what the hub and
// its guard were given. What a child is given it can read itself, and so can the guard, which finds strays by it.
func TestChildrenCannotReadTheHubsEnvironment(t *testing.T) {
	t.Parallel()
	dir, program, attr := unprivileged(t)
	const canary = "canary-in-the-environment"
	env := append(scratchEnv(dir), "HUB_SECRET="+canary)
	start := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, env, attr
		return cmd
	}
	config := filepath.Join(dir, "hub.yaml")
	if err := os.WriteFile(config, []byte("hub: {toolsets: {code: {root: ., run_command: {}}}}\n"+
		"policy: {rules: [{match: code.run_command, then: allow}]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	hub, err := launchCommand(start("serve", "--http", "127.0.0.1:0", "--log-format", "json", "--config", config))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.cmd.Process.Kill(); _ = hub.cmd.Wait() })
	// The hub's children are the guard and this shell.
	const script = `for pid in "$0" $(cat /proc/$0/task/*/children); do if [ $pid != $$ ]; then
			echo "of $(tr '\0' ' ' < /proc/$pid/cmdline)"
			for file in environ maps mem auxv; do echo "$(head -c 100000 /proc/$pid/$file 2>&1 | tr '\0' ' ')"; done
		fi; done
		echo "own: $(tr '\0' ' ' < /proc/$$/environ)"`
	args, err := json.Marshal(map[string]any{"argv": []string{"sh", "-c", script, strconv.Itoa(hub.cmd.Process.Pid)}})
	if err != nil {
		t.Fatal(err)
	}
	// The guard starts with the first child, and may hide itself after that has looked.
	eventually(t, "all files of the hub and the guard are refused", func() bool {
		out, _ := start("tools", "call", "code.run_command", "--args", string(args), "--url", hub.url).CombinedOutput()
		if !bytes.Contains(out, []byte("MCP_TOOLHUB_CHILD=")) {
			t.Fatalf("a child cannot read its own environment, so this proves nothing:\n%s", out)
		}
		if bytes.Contains(out, []byte(canary)) {
			t.Fatalf("a child has read what the hub was given:\n%s", out)
		}
		return bytes.Contains(out, []byte("mcp-toolhub guard")) && bytes.Count(out, []byte("Permission denied")) == 8
	})
}

// nobody is a user without rights. Root may read everything, so a test of what a user may read needs another one.
const nobody = 65534
