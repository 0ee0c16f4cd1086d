package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ErrChanged is returned where a program or directory is not what it was when it was found.
var ErrChanged = errors.New("it has changed since it was looked at: call again")

// held is a program and a directory that are about to be used.
type held struct {
	program, dir string // paths to use
	files        []*os.File
}

func (h *held) release() {
	for _, f := range h.files {
		_ = f.Close()
	}
}

// unchanged follows path, which was without links, once more, and compares what is there with f.
func unchanged(path string, f *os.File) error {
	real, realErr := filepath.EvalSymlinks(path)
	held, heldErr := f.Stat()
	now, nowErr := os.Lstat(path)
	if errors.Join(realErr, heldErr, nowErr) != nil || real != path || !os.SameFile(now, held) {
		return fmt.Errorf("%q: %w", path, ErrChanged)
	}
	return nil
}
