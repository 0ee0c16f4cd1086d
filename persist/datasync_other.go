//go:build !linux

package persist

import "os"

// datasync puts the contents of file on the disk.
func datasync(file *os.File) error { return file.Sync() }
