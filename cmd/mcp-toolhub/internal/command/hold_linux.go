package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// hold opens program and dir and makes sure that they still have the names that were found. What is started by the held
// descriptors holds what was looked at, whatever stands at those names by then.
func hold(program, dir string) (*held, error) {
	h := &held{program: program, dir: dir}
	p, err := h.open(program, 0)
	if err != nil {
		h.release()
		return nil, err
	}
	d, err := h.open(dir, unix.O_DIRECTORY)
	if err != nil {
		h.release()
		return nil, err
	}
	if name, live := byDescriptor(d); live {
		h.dir = name
	}
	if name, live := byDescriptor(p); live && isNative(name) {
		h.program = name
	}
	return h, nil
}

// open opens path without the right to read it, and checks that no link has been put on the way to it.
func (h *held) open(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, err)
	}
	f := os.NewFile(uintptr(fd), path)
	h.files = append(h.files, f)
	name, live := byDescriptor(f)
	if !live {
		return f, unchanged(path, f)
	}
	if now, err := os.Readlink(name); err != nil || now != path {
		return nil, fmt.Errorf("%q: %w", path, ErrChanged)
	}
	return f, nil
}

// byDescriptor is a path that leads to what f holds, in this process and in one that is just being
// started. live is false where there is no /proc.
func byDescriptor(f *os.File) (path string, live bool) {
	path = "/proc/self/fd/" + strconv.FormatUint(uint64(f.Fd()), 10)
	_, err := os.Lstat(path)
	return path, err == nil
}

// isNative reports whether the kernel starts the program itself. A script is opened again by its
// interpreter, which has not got the descriptor, and so is a program of another machine.
func isNative(program string) bool {
	own, err := header("/proc/self/exe")
	if err != nil {
		return false
	}
	its, err := header(program)
	if errors.Is(err, fs.ErrPermission) {
		return true // nobody may read it, so it is no script
	}
	// Class, byte order and machine.
	return err == nil && bytes.HasPrefix(its, []byte("\x7fELF")) && bytes.Equal(own[4:6], its[4:6]) &&
		bytes.Equal(own[18:20], its[18:20])
}

func header(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 20)
	_, err = io.ReadFull(f, b)
	return b, err
}
