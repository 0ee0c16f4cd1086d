//go:build unix

package persist

import (
	"errors"
	"os"
	"syscall"
)

// openExclusive opens the file at path for reading and writing so that no other process can do the same with this
// function while it is open; create makes a new file and fails if there is one. It returns errInUse if somebody holds
// the file, and locked false if the file system knows no locks.
func openExclusive(path string, create bool) (file *os.File, locked bool, err error) {
	flags := os.O_RDWR | syscall.O_NOFOLLOW
	if create {
		flags |= os.O_CREATE | os.O_EXCL
	}
	file, err = os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, false, err
	}
	switch err := control(file, func(fd int) error { return syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB) }); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		file.Close() // nothing was written
		return nil, false, errInUse
	case err != nil:
		return file, false, nil
	}
	// Between open and lock, the one who held the lock may have removed the file.
	opened, err := file.Stat()
	if err == nil {
		var named os.FileInfo
		if named, err = os.Lstat(path); err == nil && !os.SameFile(opened, named) {
			err = errInUse
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		err = errInUse
	}
	if err != nil {
		file.Close() // nothing was written
		return nil, false, err
	}
	return file, true, nil
}

// closeHeld closes a file that openExclusive returned. It is unlocked first: a child process that is being started has
// a copy of every descriptor until it runs its own program, and with it the lock.
func closeHeld(file *os.File) {
	_ = control(file, func(fd int) error { return syscall.Flock(fd, syscall.LOCK_UN) })
	file.Close()
}

// removeHeld removes and closes a file that openExclusive returned: in this order, so that nobody takes it in between.
func removeHeld(file *os.File, path string) error {
	defer closeHeld(file)
	return os.Remove(path)
}

// isDiskFull knows the codes that package syscall has no portable name for.
func isDiskFull(error) bool { return false }

// control calls f with the descriptor of file until it is not interrupted by a signal.
func control(file *os.File, f func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = conn.Control(func(fd uintptr) {
		for {
			if result = f(int(fd)); result != syscall.EINTR {
				return
			}
		}
	})
	return errors.Join(err, result)
}
