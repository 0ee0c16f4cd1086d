//go:build unix

package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// writeAtOnce returns a function that writes as much to w as w takes without waiting. It returns nil where w is no file
// that the system can be asked so.
func writeAtOnce(w io.Writer) func([]byte) (int, error) {
	file, ok := w.(*os.File)
	if !ok {
		return nil
	}
	conn, err := file.SyscallConn()
	if err != nil || file.SetWriteDeadline(time.Time{}) != nil { // only a file that does not block has deadlines
		return nil
	}
	return atOnce(conn.Write, syscall.Write)
}

const canReadAtOnce = true

// readAtOnce returns a function that reads what is there, without waiting: 0 and no error where there is nothing.
func readAtOnce(c net.Conn) func([]byte) (int, error) {
	if sys, ok := c.(syscall.Conn); ok {
		if conn, err := sys.SyscallConn(); err == nil {
			return atOnce(conn.Read, func(fd int, p []byte) (int, error) {
				n, err := syscall.Read(fd, p)
				if n == 0 && err == nil {
					err = io.EOF
				}
				return n, err
			})
		}
	}
	return func([]byte) (int, error) { return 0, syscall.ENOTSUP }
}

// atOnce returns a function that does move with a file, which on gives to it, and does not wait for anything to move.
func atOnce(on func(func(fd uintptr) bool) error, move func(fd int, p []byte) (int, error)) func([]byte) (int, error) {
	var text []byte
	var n int
	var err error
	once := func(fd uintptr) bool {
		for {
			if n, err = move(int(fd), text); err != syscall.EINTR {
				return true // also when nothing was moved: the caller must not wait
			}
		}
	}
	return func(p []byte) (int, error) {
		text = p
		failed := on(once)
		text = nil
		switch {
		case failed != nil:
			return 0, failed
		case errors.Is(err, syscall.EAGAIN):
			return 0, nil
		}
		return max(n, 0), err
	}
}
