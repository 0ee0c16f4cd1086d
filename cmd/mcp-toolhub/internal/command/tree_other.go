//go:build !windows

package command

import (
	"os"
	"syscall"
)

// tree is a matter of Windows: here a command and what it starts are a process group.
type tree struct{}

func newTree() (*tree, error)   { return &tree{}, nil }
func (*tree) add(_ *os.Process) {}
func (*tree) end()              {}

func signalOf(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return state.String()
}
