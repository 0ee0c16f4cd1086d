//go:build unix

package policy

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockFile takes the lock that the file at path stands for, and waits for it for patience. The file stays: whoever removed
// it would let a third process take a lock of the same name. A file system without locks gives none, and changes of two
// hubs at the same moment may then lose one of them, never mix them.
func lockFile(path string, patience time.Duration) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(patience); ; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			// Unlocked before it is closed: a child process that is being started has a copy of the descriptor.
			return func() { _ = unix.Flock(int(f.Fd()), unix.LOCK_UN); f.Close() }, nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return func() { f.Close() }, nil
		case time.Now().After(deadline):
			f.Close()
			return nil, fmt.Errorf("lock %q: another process holds it: try again", path)
		default:
			time.Sleep(5 * time.Millisecond)
		}
	}
}
