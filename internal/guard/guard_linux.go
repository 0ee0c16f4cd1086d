package guard

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// marked returns the processes whose environment holds one of the marks, with that mark. A process that was started with another
// environment, or belongs to another user, is not found.
func marked(marks map[string]bool) map[int]string {
	if len(marks) == 0 {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	prefix := []byte(markVariable + "=")
	found := make(map[int]string)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil || !bytes.Contains(env, prefix) {
			continue
		}
		for v := range bytes.SplitSeq(env, []byte{0}) {
			if mark, ok := bytes.CutPrefix(v, prefix); ok && marks[string(mark)] {
				found[pid] = string(mark)
			}
		}
	}
	return found
}

// Conceal keeps the user's other processes from reading this process's memory and environment, and from tracing it. A
// child that this process starts can be read again, because the system resets the flag when a program starts.
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide this process's memory and environment from the user's other processes: %w", err)
	}
	return nil
}
