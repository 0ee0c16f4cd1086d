//go:build unix

package jsonrpc

import (
	"errors"
	"io"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// IsUnread reports whether nobody can read any more what is written to w, a pipe or a socket. It waits for that for a short time: a process that
// is killed loses its files one after the other. It is false for what has no file descriptor.
func IsUnread(w io.Writer, within time.Duration) (unread bool) {
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
		_, err := unix.Poll(fds, int(within.Milliseconds()))
		for errors.Is(err, unix.EINTR) {
			_, err = unix.Poll(fds, int(within.Milliseconds()))
		}
		unread = err == nil && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return unread && err == nil
}
