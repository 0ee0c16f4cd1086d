//go:build unix

package storetest

import (
	"os"
	"os/exec"
	"syscall"
)

// PostgreSQL refuses to run as root. nobody is the user instead, whose number is the same everywhere but for macOS.
const nobody = 65534

func asAnother(cmd *exec.Cmd) {
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
}

func giveAway(path string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return os.Chown(path, nobody, nobody)
}
