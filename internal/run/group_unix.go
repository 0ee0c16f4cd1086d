//go:build unix

package run

import (
	"os"
	"os/exec"
	"syscall"
)

// detach puts the guard into a session of its own: what is typed at the parent's terminal does not reach it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func term(pid int) { _ = syscall.Kill(pid, syscall.SIGTERM) }

func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// byProcess says that a guard is a process.
const byProcess = true

// job is a matter of Windows.
type job struct{}

func newJob(*os.Process) job { return job{} }
func (job) end()             {}

// OwnGroup makes a program the leader of a process group of its own: signals then reach all that it starts, and a
// Ctrl-C in the hub's terminal does not reach it before the hub has stopped it in order.
func OwnGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// termGroup asks the group of a program to end.
func termGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGTERM) }

// KillGroup ends the group of a program that was started with OwnGroup.
func KillGroup(cmd *exec.Cmd) { signalGroup(cmd, syscall.SIGKILL) }

func signalGroup(cmd *exec.Cmd, sig syscall.Signal) {
	_ = syscall.Kill(-cmd.Process.Pid, sig) // fails only where the group is gone
}
