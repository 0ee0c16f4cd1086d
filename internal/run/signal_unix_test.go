//go:build unix

package run

import (
	"os/exec"
	"syscall"
	"testing"
)

// TestNoSignalAfterTheEnd checks that a child that was waited for gets no signal any more: the id of its group can be somebody
// else's by then, for whom a process that lives stands here.
func TestNoSignalAfterTheEnd(t *testing.T) {
	t.Parallel()
	other := exec.Command("sleep", "600")
	other.SysProcAttr = OwnGroup()
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{cmd: other, reaped: make(chan struct{}), Ended: make(chan struct{})}
	close(p.reaped)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		p.Stop(0, nil)
	}()
	close(p.Ended)
	<-stopped
	if err := other.Process.Signal(syscall.SIGUSR1); err != nil { // the first that it gets
		t.Error(err)
	}
	_ = other.Wait()
	if status := other.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGUSR1 {
		t.Errorf("ended by %v", status.Signal())
	}
}
