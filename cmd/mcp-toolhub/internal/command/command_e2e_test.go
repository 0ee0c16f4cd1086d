//go:build e2e && unix

package command_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
)

// forks are scripts for a shell in a directory of its own that leave processes behind which do not end when asked. Each
// writes their ids to the file ids, a line each, and then "done".
func forks() map[string]string {
	lines := func(n int, fork string) string {
		return fmt.Sprintf("{ %s while [ $(wc -l < ids) -lt %d ]; do sleep 0.05; done; echo done; } > ids; ", fork, n)
	}
	all := map[string]string{
		"a group that ignores the request": lines(3, `trap '' TERM; (trap '' TERM; sleep 300) & echo $!; (trap '' TERM; sleep 300 & sleep 300) & echo $!; echo $$;`),
	}
	// What a command starts without its environment cannot be known by that.
	all["one without the environment"] = lines(1, `env -i /bin/sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done' &`)
	if _, err := exec.LookPath("setsid"); err == nil && runtime.GOOS == "linux" {
		all["one that has left the group"] = lines(1, `setsid sh -c 'trap "" TERM; echo $$; sleep 300' &`)
	}
	return all
}

// ids waits until path holds as many lines as its maker prints, of which the last says "done".
func ids(t *testing.T, path string) []int {
	t.Helper()
	var pids []int
	eventually(t, "the processes are there", func() bool {
		text, err := os.ReadFile(path)
		if err != nil || !strings.HasSuffix(string(text), "done\n") {
			return false
		}
		pids = nil
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
		return len(pids) > 0
	})
	return pids
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(time.Minute); !is(); <-again.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// gone reports whether nothing but a remainder that init has still to reap is there.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) != nil
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

// lapsing is a context whose deadline has passed once it is canceled.
type lapsing struct{ context.Context }

func (c lapsing) Err() error {
	if c.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// However a command ends, nothing that it has started is left when Run returns.
func TestNothingIsLeft(t *testing.T) {
	t.Parallel()
	for name, fork := range forks() {
		for _, how := range []string{"exit", "timeout", "cancel", "deadline", "close"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				file := filepath.Join(r.dir, "ids")
				script := fork
				if how != "exit" {
					script += "while :; do sleep 1; done"
				}
				s := specIn(r.bounds, "", time.Minute, "sh", "-c", script)
				want := map[string]command.Ending{"exit": command.Exited, "timeout": command.TimedOut, "cancel": command.Canceled,
					"deadline": command.TimedOut, "close": command.Stopped}[how]
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if how == "timeout" {
					s.Timeout = 6 * time.Second // by when its processes are there
				}
				if how == "deadline" {
					ctx = lapsing{ctx}
				}
				done := make(chan command.Outcome, 1)
				go func() {
					o, err := r.Run(ctx, s)
					if err != nil {
						t.Error(err)
					}
					done <- o
				}()
				pids := ids(t, file)
				switch how {
				case "cancel", "deadline":
					cancel()
				case "close":
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				}
				if o := <-done; o.Ending != want {
					t.Errorf("ended as %s", o.Ending)
				}
				for _, pid := range pids {
					eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return gone(pid) })
				}
			})
		}
	}
}

// A hub that is killed takes its commands along.
func TestHubKilled(t *testing.T) {
	t.Parallel()
	for name, fork := range forks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			h := exec.Command(self)
			h.Dir = dir
			h.Env = append(os.Environ(), "COMMAND_TEST_HUB="+fork+"while :; do sleep 1; done")
			out, err := h.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Start(); err != nil {
				t.Fatal(err)
			}
			if !bufio.NewScanner(out).Scan() {
				t.Error("the hub says nothing")
			}
			pids := ids(t, filepath.Join(dir, "ids"))
			if err := h.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = h.Wait()
			for _, pid := range pids {
				eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return gone(pid) })
			}
		})
	}
}
