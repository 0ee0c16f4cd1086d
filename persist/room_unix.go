//go:build linux || darwin

package persist

import "syscall"

// hasRoom reports whether the disk that holds dir has more than n bytes left for this user.
func hasRoom(dir string, n int64) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && int64(fs.Bavail)*int64(fs.Bsize) > n
}
