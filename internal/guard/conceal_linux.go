package guard

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Conceal keeps the user's other processes from reading this process's memory and environment, and from tracing it. A
// child that this process starts can be read again, because the system resets the flag when a program starts.
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide this process's memory and environment from the user's other processes: %w", err)
	}
	return nil
}
