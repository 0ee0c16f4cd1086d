package guard

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// marked returns the processes whose environment holds one of the marks. A process that was started with another
// environment, or belongs to another user, is not found.
func marked(marks map[string]bool) []int {
	if len(marks) == 0 {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	prefix := []byte(markVariable + "=")
	var pids []int
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
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
