package policy

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// lockFile takes the lock that the file at path stands for, and waits for it for patience. The file stays: whoever removed
// it would let a third process take a lock of the same name.
func lockFile(path string, patience time.Duration) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	handle := windows.Handle(f.Fd())
	for deadline := time.Now().Add(patience); ; {
		const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
		err = windows.LockFileEx(handle, flags, 0, 1, 0, new(windows.Overlapped))
		switch {
		case err == nil:
			return func() { _ = windows.UnlockFileEx(handle, 0, 1, 0, new(windows.Overlapped)); f.Close() }, nil
		case !errors.Is(err, windows.ERROR_LOCK_VIOLATION) && !errors.Is(err, windows.ERROR_IO_PENDING):
			f.Close()
			return nil, fmt.Errorf("lock %q: %w", path, err)
		case time.Now().After(deadline):
			f.Close()
			return nil, fmt.Errorf("lock %q: another process holds it: try again", path)
		default:
			time.Sleep(5 * time.Millisecond)
		}
	}
}
