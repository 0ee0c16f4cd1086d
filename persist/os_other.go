//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package persist

import "os"

// openExclusive opens the file at path for reading and writing; create makes a new file and fails if there is one.
// There are no locks here, so a file that exists counts as held by somebody.
func openExclusive(path string, create bool) (file *os.File, locked bool, err error) {
	if !create {
		return nil, false, errInUse
	}
	file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	return file, false, err
}

// closeHeld closes a file that openExclusive returned.
func closeHeld(file *os.File) { file.Close() }

// removeHeld removes and closes a file that openExclusive returned.
func removeHeld(file *os.File, path string) error {
	defer file.Close()
	return os.Remove(path)
}

func isDiskFull(error) bool { return false }
