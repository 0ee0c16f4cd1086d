//go:build e2e && unix

package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// However a hub ends, a command that it runs ends with it, and all that this has started.
func TestCommandsEndWithTheHub(t *testing.T) {
	t.Parallel()
	for _, how := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(how.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			config := filepath.Join(dir, "hub.yaml")
			if err := os.WriteFile(config, []byte("hub: {toolsets: {code: {root: ., run_command: {}}}, http: {drain_timeout: 100ms}}\n"+
				"policy: {rules: [{match: code.run_command, then: allow}]}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			h, err := launch(dir, scratchEnv(dir), "--config", config)
			if err != nil {
				t.Fatal(err)
			}
			const script = `trap '' TERM; (trap '' TERM; sleep 300) & a=$!; (trap '' TERM; sleep 300 & wait) & echo $a $! $$ > new; mv new pids; sleep 300`
			args, err := json.Marshal(map[string]any{"argv": []string{"sh", "-c", script}})
			if err != nil {
				t.Fatal(err)
			}
			call := exec.Command("mcp-toolhub", "tools", "call", "code.run_command", "--args", string(args), "--url", h.url)
			call.Env = append(scratchEnv(dir), "PATH="+os.Getenv("PATH"))
			if err := call.Start(); err != nil {
				t.Fatal(err)
			}
			var pids []int
			eventually(t, "the command runs", func() bool {
				text, err := os.ReadFile(filepath.Join(dir, "pids"))
				if err != nil {
					return false
				}
				for _, word := range strings.Fields(string(text)) {
					pid, err := strconv.Atoi(word)
					if err != nil {
						t.Fatal(err)
					}
					pids = append(pids, pid)
				}
				return true
			})
			if err := h.cmd.Process.Signal(how); err != nil {
				t.Fatal(err)
			}
			<-h.read
			_ = h.cmd.Wait()
			_ = call.Wait()
			for _, pid := range pids {
				eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return hasEnded(pid) })
			}
		})
	}
}

// hasEnded reports whether nothing of a process is left but what its parent has still to take note of.
func hasEnded(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) != nil
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}
