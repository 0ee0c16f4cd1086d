package code

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// realNames returns every name that f may have by now, by asking the kernel about the descriptor.
func realNames(f *os.File, info fs.FileInfo, path string) ([]string, error) {
	conn, err := f.SyscallConn() // f.Fd would make the descriptor blocking
	if err != nil {
		return nil, err
	}
	var name string
	var linkErr error
	err = conn.Control(func(fd uintptr) {
		name, linkErr = os.Readlink("/proc/self/fd/" + strconv.FormatUint(uint64(fd), 10))
	})
	if err != nil {
		return nil, err
	}
	if linkErr != nil || !strings.HasPrefix(name, "/") { // no /proc here, or outside of this process's root
		return resolvedName(info, path)
	}
	// The kernel marks the name of a removed file; a file may also really be called so.
	if live, ok := strings.CutSuffix(name, " (deleted)"); ok {
		return []string{name, live}, nil
	}
	return []string{name}, nil
}
