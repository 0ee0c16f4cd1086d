package persist

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// JournalError is a failure of the disk or its permissions. Its text says what to do about it.
type JournalError struct {
	Op   string // what was tried, for instance "write journal"
	Path string
	Err  error
}

func (e *JournalError) Error() string {
	return fmt.Sprintf("%s %q: %v: %s", e.Op, e.Path, bare(e.Err), advice(e.Err))
}

func (e *JournalError) Unwrap() error { return e.Err }

// bare returns err without the path that package os adds, which the message names already.
func bare(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// advice says what a person can do about err.
func advice(err error) string {
	switch {
	case errors.Is(err, errLimit):
		return "mcp-toolhub doctor says what is wrong with the record store; the journal goes on by itself"
	case isDiskFull(err), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "free space on the disk that holds it; the journal goes on by itself"
	case errors.Is(err, syscall.EFBIG):
		return "raise the limit for the size of files (ulimit -f); the journal goes on by itself"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "raise the limit for open files (ulimit -n); the journal goes on by itself"
	case errors.Is(err, syscall.EROFS):
		return "make the file system writable, or choose another directory with --state-dir"
	case errors.Is(err, fs.ErrPermission):
		return "give this user write permission there, or choose another directory with --state-dir"
	case errors.Is(err, fs.ErrNotExist):
		return "restore the directory, or choose another one with --state-dir and start the hub again"
	case errors.Is(err, syscall.ENOTDIR):
		return "move the file that stands in the way, or choose another directory with --state-dir"
	}
	return "check the disk that holds it, or choose another directory with --state-dir"
}
