//go:build unix

package policy

import (
	"os/exec"

	"golang.org/x/sys/unix"
)

// killGroup makes cmd the leader of a process group, which ends as a whole.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
}
