//go:build unix

package jsonrpc

import (
	"errors"
	"io"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unreadWithin bounds how long IsUnread waits. It has to wait because the system closes the files
// of a killed process one by one.
const unreadWithin = 50 * time.Millisecond

// IsUnread reports whether nobody can read any more what is written to w, a pipe or a socket. It waits for that for a
// moment. It is false for what has no file descriptor.
func IsUnread(w io.Writer) (unread bool) {
	c, ok := w.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd)}} // these two events come without being asked for
		_, err := unix.Poll(fds, int(unreadWithin.Milliseconds()))
		for errors.Is(err, unix.EINTR) {
			_, err = unix.Poll(fds, int(unreadWithin.Milliseconds()))
		}
		unread = err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return unread && err == nil
}
