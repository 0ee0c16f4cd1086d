//go:build unix

package upstream

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the child the leader of a process group of its own: signals then reach all that it starts, and a
// Ctrl-C in the hub's terminal does not reach it before the hub has stopped it in order.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func termGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGKILL) }

func signalGroup(cmd *exec.Cmd, sig syscall.Signal) {
	_ = syscall.Kill(-cmd.Process.Pid, sig) // fails only where the group is gone
}
