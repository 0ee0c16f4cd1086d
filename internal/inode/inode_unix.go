//go:build unix

package inode

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Names counts the names of a file.
func Names(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}

// KeepOwner gives f the owner and group of the file that it replaces.
func KeepOwner(f *os.File, old fs.FileInfo) error {
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
		return fmt.Errorf("%w: %w", ErrOwner, err)
	}
	return nil
}
