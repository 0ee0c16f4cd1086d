package target

// What the system says of a directory is read in place here, because package os makes a string of each name and speaks to
// the poller, which took most of a decision about a path that is not there yet.

import (
	"bytes"
	"encoding/binary"
	"syscall"
)

// eachEntry gives visit the names in dir, at most limit of them. A name is good until visit returns.
func eachEntry(dir string, limit int, visit func(name []byte)) {
	const flags = syscall.O_RDONLY | syscall.O_DIRECTORY | syscall.O_NOFOLLOW | syscall.O_CLOEXEC
	fd, err := again(func() (int, error) { return syscall.Open(dir, flags, 0) })
	if err != nil {
		return
	}
	defer syscall.Close(fd)
	buffer := make([]byte, 8<<10)
	for limit > 0 {
		n, err := again(func() (int, error) { return syscall.Getdents(fd, buffer) })
		if err != nil || n <= 0 {
			return
		}
		for rest := buffer[:n]; limit > 0 && len(rest) > entryName; {
			size := int(binary.NativeEndian.Uint16(rest[entrySize:]))
			if size <= entryName || size > len(rest) {
				return
			}
			name, _, _ := bytes.Cut(rest[entryName:size], []byte{0})
			rest = rest[size:]
			if string(name) != "." && string(name) != ".." {
				visit(name)
				limit--
			}
		}
	}
}

// Where things stand in the system's struct linux_dirent64: behind an inode and an offset of eight bytes each.
const (
	entrySize = 16
	entryName = 19
)

// again calls f until no signal interrupts it.
func again(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != syscall.EINTR {
			return n, err
		}
	}
}
