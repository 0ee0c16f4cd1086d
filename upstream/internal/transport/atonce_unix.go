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
	return func(text []byte) (n int, err error) {
		failed := conn.Write(func(fd uintptr) bool {
			for {
				if n, err = syscall.Write(int(fd), text); err != syscall.EINTR {
					return true // also when nothing was written: the caller must not wait
				}
			}
		})
		n = max(n, 0)
		switch {
		case failed != nil:
			return n, failed
		case errors.Is(err, syscall.EAGAIN):
			return n, nil
		}
		return n, err
	}
}

const canReadAtOnce = true

// readAtOnce returns a function that reads what is there, without waiting: 0 and no error where there is nothing.
func readAtOnce(c net.Conn) func([]byte) (int, error) {
	var raw syscall.RawConn
	err := error(syscall.ENOTSUP)
	if sys, ok := c.(syscall.Conn); ok {
		raw, err = sys.SyscallConn()
	}
	if err != nil {
		return func([]byte) (int, error) { return 0, err }
	}
	var into []byte
	var n int
	var failed error
	read := func(fd uintptr) bool {
		for {
			if n, failed = syscall.Read(int(fd), into); failed != syscall.EINTR {
				return true // also when nothing was read: the caller must not wait
			}
		}
	}
	return func(p []byte) (int, error) {
		into = p
		err := raw.Read(read)
		into = nil
		switch {
		case err != nil:
			return 0, err
		case errors.Is(failed, syscall.EAGAIN):
			return 0, nil
		case failed != nil:
			return 0, failed
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
