package persist

import (
	"errors"
	"os"
	"syscall"
)

// Codes of Windows that package syscall does not name.
const (
	errorSharingViolation syscall.Errno = 32
	errorHandleDiskFull   syscall.Errno = 39
	errorDiskFull         syscall.Errno = 112
)

// openExclusive opens the file at path for reading and writing so that no other process can open it for writing or
// remove it meanwhile; create makes a new file and fails if there is one. It returns errInUse if somebody holds the
// file. Readers are let in.
func openExclusive(path string, create bool) (file *os.File, locked bool, err error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, false, err
	}
	mode := uint32(syscall.OPEN_EXISTING)
	if create {
		mode = syscall.CREATE_NEW
	}
	handle, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, syscall.FILE_SHARE_READ, nil,
		mode, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	switch {
	case errors.Is(err, errorSharingViolation):
		return nil, false, errInUse
	case err != nil:
		return nil, false, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(handle), path), true, nil
}

// closeHeld closes a file that openExclusive returned.
func closeHeld(file *os.File) { file.Close() }

// removeHeld closes and removes a file that openExclusive returned: in this order, because an open file cannot be
// removed. If somebody takes it in between, it stays, for the same reason.
func removeHeld(file *os.File, path string) error {
	file.Close() // nothing was written
	if err := os.Remove(path); !errors.Is(err, errorSharingViolation) {
		return err
	}
	return nil
}

func isDiskFull(err error) bool {
	return errors.Is(err, errorDiskFull) || errors.Is(err, errorHandleDiskFull)
}
