//go:build unix

package guard

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

// jobs are a matter of Windows.
type jobs struct{}

func (*jobs) open() (bool, error) { return false, nil }
func (*jobs) add(*os.Process)     {}
func (*jobs) close()              {}
