//go:build unix

package transport

import (
	"errors"
	"io"
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
	var text []byte
	var n int
	once := func(fd uintptr) bool {
		for {
			if n, err = syscall.Write(int(fd), text); err != syscall.EINTR {
				return true // also when nothing was written: the caller must not wait
			}
		}
	}
	return func(p []byte) (int, error) {
		text = p
		failed := conn.Write(once)
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
