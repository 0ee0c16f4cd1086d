//go:build !unix

package inode

import (
	"io/fs"
	"os"
)

// Names returns 1: this system does not tell how many names a file has.
func Names(fs.FileInfo) uint64 { return 1 }

// KeepOwner does nothing: here a directory gives its files their owner.
func KeepOwner(*os.File, fs.FileInfo) error { return nil }
