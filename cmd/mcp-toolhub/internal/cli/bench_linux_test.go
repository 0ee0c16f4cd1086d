//go:build e2e

package cli

import (
	"os/exec"
	"syscall"
)

// endWithParent has cmd's process killed when the test binary is.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
