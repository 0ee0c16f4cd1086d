//go:build unix

package cli

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// detach lets a process that is about to start outlive this one and its terminal.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// hangups delivers SIGHUP, by which service managers ask for a reload, until ctx ends. On a
// terminal SIGHUP means that the terminal is gone: there it ends the hub.
func hangups(ctx context.Context) <-chan os.Signal {
	if isTerminal(os.Stderr) {
		return nil
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	context.AfterFunc(ctx, func() { signal.Stop(signals) })
	return signals
}
