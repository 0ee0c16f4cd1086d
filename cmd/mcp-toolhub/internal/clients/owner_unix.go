//go:build unix

package clients

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

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
		return fmt.Errorf("keep its owner: %w", err)
	}
	return nil
}
