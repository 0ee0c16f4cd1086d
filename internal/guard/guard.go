// Package guard ends child processes whose parent has died without stopping them, kill -9 included.
//
// The parent starts one guard, a process of the same program, and tells it over a pipe which children it has. When the
// parent dies, however it dies, the system closes the pipe; the guard then ends every child that was not taken off its
// list, with its process group and, on Linux, everything else that descends from it, and exits. A parent-death signal
// would reach the child alone, not what the child has started, such as the node under npx.
//
// On Windows there is no guard process: a job object for each child does the same. See group_windows.go.
//
// Children run as the parent's user. Conceal keeps them from reading the parent's secrets out of its memory.
//
// A child may be a hub, too. Nested and CheckDepth keep hubs from starting each other without end.
package guard

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// guardArgument is the argument with which the program runs as a guard.
const guardArgument = "guard"

// markVariable is set in the environment of each child, and so of what it starts, to a value that no other child has.
const markVariable = "MCP_TOOLHUB_CHILD"

// Child is a process that a Guard looks after, with all that descends from it.
type Child struct {
	PID  int
	mark string
	job  job
}

// Guard is the parent's side. The zero value keeps no list and guards nothing. It is safe for concurrent use.
type Guard struct {
	mu   sync.Mutex
	pipe io.WriteCloser // nil where the system needs no guard process, or it could not be started
	cmd  *exec.Cmd
}

// Start starts the guard process from the program at self. The error says why children would survive a parent that is
// killed; the Guard can be used all the same.
func Start(self string) (*Guard, error) {
	g := &Guard{}
	if !byProcess {
		return g, nil
	}
	cmd := exec.Command(self, guardArgument)
	cmd.Dir, cmd.Env = os.TempDir(), []string{} // the parent's variables may hold secrets
	detach(cmd)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return g, fmt.Errorf("start guard: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return g, fmt.Errorf("start guard: %w", err)
	}
	g.cmd, g.pipe = cmd, pipe
	return g, nil
}

// Mark returns the variable to add to a child's environment, as NAME=value. Pass it to Add with the started child. On
// Linux the child is looked after from its first moment on, because the guard knows its mark before it is started.
func (g *Guard) Mark() string {
	mark := rand.Text()
	g.send("?" + mark + "\n")
	return markVariable + "=" + mark
}

// Add puts a child that was just started on the list. mark is what Mark returned for it. The child must lead a process
// group of its own.
func (g *Guard) Add(process *os.Process, mark string) Child {
	c := Child{PID: process.Pid, mark: strings.TrimPrefix(mark, markVariable+"="), job: newJob(process)}
	g.send(fmt.Sprintf("+%d %s\n", c.PID, c.mark))
	return c
}

// Remove takes a child off the list once it has ended. On Windows it ends what the child has started.
func (g *Guard) Remove(c Child) {
	c.job.end()
	g.send(fmt.Sprintf("-%d %s\n", c.PID, c.mark))
}

// Forget takes a mark off the list whose child could not be started.
func (g *Guard) Forget(mark string) {
	g.Remove(Child{mark: strings.TrimPrefix(mark, markVariable+"=")})
}

// send writes one line. A guard that is gone cannot be told; the children are stopped by the parent as always.
func (g *Guard) send(line string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pipe != nil {
		_, _ = io.WriteString(g.pipe, line)
	}
}

// Close ends the guard and waits for it. What is still on its list is ended too. Twice is harmless.
func (g *Guard) Close() error {
	g.mu.Lock()
	pipe := g.pipe
	g.pipe = nil
	g.mu.Unlock()
	if pipe == nil {
		return nil
	}
	_ = pipe.Close()
	if err := g.cmd.Wait(); err != nil {
		return fmt.Errorf("end guard: %w", err)
	}
	return nil
}

// maxStrayRounds bounds the search for strays, should they multiply faster than they are killed.
const maxStrayRounds = 10

// KillStrays kills what descends from the child and has left its group, as far as the system shows
// it: only Linux does. It looks again until nothing is left: a stray may have started another one
// while it was looked for.
func KillStrays(c Child) {
	for range maxStrayRounds {
		strays := marked(map[string]bool{c.mark: true})
		delete(strays, c.PID)
		if len(strays) == 0 {
			return
		}
		for pid := range strays {
			if stray, err := os.FindProcess(pid); err == nil {
				_ = stray.Kill()
			}
		}
	}
}

// termPatience is the time that a dead parent's children have to end when asked.
const termPatience = 700 * time.Millisecond

// Main turns the process into a guard, and never returns, if Start has started it. Otherwise it does nothing. Call it
// first in main.
func Main() {
	if len(os.Args) != 2 || os.Args[1] != guardArgument {
		return
	}
	if err := errors.Join(Conceal(), run(os.Stdin)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run is the guard process. It reads the list from in, and ends the processes on it when in ends.
func run(in io.Reader) error {
	pids, marks := make(map[int]bool), make(map[string]bool)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		order, rest, _ := strings.Cut(lines.Text(), " ")
		switch {
		case strings.HasPrefix(order, "?"):
			marks[order[1:]] = true
			continue
		case !strings.HasPrefix(order, "+") && !strings.HasPrefix(order, "-"):
			return fmt.Errorf("guard: line %q is no order", lines.Text())
		}
		pid, err := strconv.Atoi(order[1:])
		if err != nil || pid < 0 || pid == 1 || pid == 0 && order[0] == '+' {
			return fmt.Errorf("guard: line %q is no order", lines.Text())
		}
		if order[0] == '+' {
			pids[pid] = true
		} else {
			delete(pids, pid)
			delete(marks, rest)
		}
	}
	endAll(pids, marks)
	return lines.Err()
}

// endAll asks the children's groups to end, gives them a moment, and kills what is left.
func endAll(pids map[int]bool, marks map[string]bool) {
	for pid := range pids {
		term(-pid)
	}
	strays := slices.Collect(maps.Keys(marked(marks)))
	for _, pid := range strays {
		term(pid)
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(termPatience); time.Now().Before(deadline) && anyAlive(pids, strays); {
		<-again.C
	}
	for pid := range pids {
		kill(-pid)
	}
	for _, pid := range slices.AppendSeq(strays, maps.Keys(marked(marks))) {
		kill(pid)
	}
}

func anyAlive(groups map[int]bool, strays []int) bool {
	for pid := range groups {
		if alive(-pid) {
			return true
		}
	}
	return slices.ContainsFunc(strays, alive)
}
