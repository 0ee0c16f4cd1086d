package guard

import (
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// maxBusyPause is the longest of the pauses of StartGroup, which double. All of them take twice as long.
const maxBusyPause = time.Second

// StartGroup starts cmd in a process group of its own. cmd has no context and no pipes of package exec.
//
// A program that was just written can be busy (ETXTBSY): a child that was forked meanwhile holds
// the file open for writing until it runs its own program. See https://go.dev/issue/22315.
// StartGroup then tries again, as the go command does.
func StartGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = OwnGroup()
	for pause := time.Millisecond; ; pause *= 2 {
		err := cmd.Start()
		if !errors.Is(err, syscall.ETXTBSY) || pause > maxBusyPause {
			return err
		}
		time.Sleep(pause)
		// A Cmd can be started once only.
		*cmd = exec.Cmd{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, SysProcAttr: cmd.SysProcAttr,
			Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr}
	}
}
