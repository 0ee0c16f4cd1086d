//go:build unix

package guard

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child the leader of a process group of its own: signals then reach all that it starts, and a
// Ctrl-C in the hub's terminal does not reach it before the hub has stopped it in order.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// TermGroup asks the group of a child that StartGroup has started to end.
func TermGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGTERM) }

// KillGroup ends the group of a child that StartGroup has started.
func KillGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGKILL) }

func signalGroup(cmd *exec.Cmd, sig syscall.Signal) {
	_ = syscall.Kill(-cmd.Process.Pid, sig) // fails only where the group is gone
}
