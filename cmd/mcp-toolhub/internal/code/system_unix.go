//go:build unix

package code

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openFlags keep open from waiting for the other end of a pipe and from taking a terminal, should the path have become
// one since it was looked at.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY | syscall.O_CLOEXEC

// linksOf counts the names of a file.
func linksOf(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}

// keepOwner gives f the owner and group of the file that it replaces.
func keepOwner(f *os.File, old fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	want, ok := old.Sys().(*syscall.Stat_t)
	have, both := now.Sys().(*syscall.Stat_t)
	if !ok || !both || want.Uid == have.Uid && want.Gid == have.Gid {
		return nil
	}
	if err := f.Chown(int(want.Uid), int(want.Gid)); err != nil {
		return fmt.Errorf("%w: %w", errOwner, err)
	}
	return nil
}
