//go:build !unix

package target

import "io/fs"

// names is the number of names of a file: unknown on this system.
func names(fs.FileInfo) uint64 { return 1 }

const noFollow = 0
