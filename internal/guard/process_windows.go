package guard

import (
	"os/exec"
	"strconv"
	"syscall"
)

// ownGroup gives the child a process group of its own, so that a Ctrl-C in the hub's console does not reach it.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// TermGroup does nothing: Windows has no signal that asks a process without a window to end. Closed stdin was the
// request.
func TermGroup(*exec.Cmd) {}

// KillGroup ends the child and its descendants.
func KillGroup(cmd *exec.Cmd) {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run()
	_ = cmd.Process.Kill() // fails only where it has ended
}
