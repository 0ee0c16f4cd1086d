package run

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// marked returns the processes whose environment holds the mark of one of the programs. A process that was started with
// another environment, or belongs to another user, is not found.
func marked(programs map[string]int) (found []int) {
	if len(programs) == 0 {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	prefix := []byte(markVariable + "=")
	for range startRounds {
		var starting []int
		for _, pid := range pids {
			env, known := environ(pid)
			if !known {
				starting = append(starting, pid)
			}
			if !bytes.Contains(env, prefix) {
				continue
			}
			for v := range bytes.SplitSeq(env, []byte{0}) {
				if mark, ok := bytes.CutPrefix(v, prefix); ok {
					if _, ok := programs[string(mark)]; ok {
						found = append(found, pid)
						break
					}
				}
			}
		}
		if pids = starting; len(pids) == 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return found
}

// startRounds bounds how often processes are looked at again that are just starting a program.
const startRounds = 20

// environ returns the environment of a process. It is not known for a moment while the process
// starts a program: the system shows neither environment nor arguments then.
func environ(pid int) (env []byte, known bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	env, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil || len(env) > 0 {
		return env, true
	}
	if _, err := os.Readlink(filepath.Join(dir, "exe")); err != nil {
		return nil, true // a thread of the kernel, or a process that has ended
	}
	arguments, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil || len(arguments) == 0 {
		return nil, err != nil
	}
	env, _ = os.ReadFile(filepath.Join(dir, "environ")) // it may have started since the first look
	return env, true
}

// Conceal keeps the user's other processes from reading this process's memory and environment, and from tracing it. A
// child that this process starts can be read again, because the system resets the flag when a program starts.
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide this process's memory and environment from the user's other processes: %w", err)
	}
	return nil
}
