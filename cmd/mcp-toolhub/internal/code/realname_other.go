//go:build !linux

package code

import (
	"io/fs"
	"os"
)

// realNames returns every name that f, opened as path, may have.
func realNames(_ *os.File, info fs.FileInfo, path string) ([]string, error) {
	return resolvedName(info, path)
}
