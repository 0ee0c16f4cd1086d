// Package statefile writes the small files of the state directory. A reader sees the old file or
// the new one, never a part. Several hubs may share a directory. Directories get mode 0700, files
// 0600. The journal is no such file: see package persist.
package statefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// Unfinished begins the names of files that are being written. One that is left after a crash can be removed.
const Unfinished = "new-"

// patience bounds how long Lock waits for another process.
const patience = 5 * time.Second

// Write replaces the file at path by data, which is on the disk when Write returns.
func Write(path string, data []byte) error { return WriteFrom(path, bytesOf(data)) }

// WriteFrom is Write for what fill writes.
func WriteFrom(path string, fill func(io.Writer) error) error { return write(path, fill, true) }

// WriteCache is Write for data that can be had again: it does not wait for the disk.
func WriteCache(path string, data []byte) error { return write(path, bytesOf(data), false) }

func bytesOf(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// write uses os alone: google/renameio leaves out Windows, and natefinch/atomic always syncs and
// keeps the mode of the file that it replaces. os.Rename replaces a file on Windows as well, and
// os.CreateTemp makes files of mode 0600.
func write(path string, fill func(io.Writer) error, sync bool) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, Unfinished+"*")
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// SyncDir makes the names in dir durable, where the system can do that. NTFS journals them.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return err
	}
	return nil
}

// Lock holds the lock of the file at path until unlock is called. It keeps other processes out that
// call Lock, too, and waits for them at most five seconds. The lock is a file of its own, path with
// ".lock", which stays: if it were removed, two processes could lock two files of that name. On a
// file system without locks, of two changes at the same moment one may be lost.
func Lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	path += ".lock"
	lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR|noFollow))
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		locked, err := lock.TryLock()
		var unopened *fs.PathError
		switch {
		case errors.As(err, &unopened):
			return nil, err
		case errors.Is(err, syscall.EINTR): // says nothing about the lock
		case locked || err != nil:
			return func() { _ = lock.Close() }, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("lock %q: another process holds it: try again", path)
		}
	}
}
