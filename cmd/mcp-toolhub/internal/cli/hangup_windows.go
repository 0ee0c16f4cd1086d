package cli

import (
	"context"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// detach lets a process that is about to start outlive this one and its terminal.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
}

// hangups: Windows has no SIGHUP. The config file is watched there as everywhere.
func hangups(context.Context) <-chan os.Signal { return nil }
