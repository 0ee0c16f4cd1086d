package run

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// guardArgument is the argument with which the program runs as a guard.
const guardArgument = "guard"

// markVariable is set in the environment of each program, and so of what it starts, to a value that no other one has.
const markVariable = "MCP_TOOLHUB_CHILD"

// Orders to the guard: a program is, or is about to be started; and nothing of it is left.
const (
	orderAdd    = '+'
	orderRemove = '-'
)

// maxStrayRounds bounds the search for strays, should they multiply faster than they are killed.
const maxStrayRounds = 10

// killStrays kills what descends from the program with the mark and has left its group, as far as the system shows it:
// only Linux does. It looks again until nothing is left: a stray may have started another one while it was looked for.
func killStrays(mark string) {
	for range maxStrayRounds {
		strays := marked(map[string]int{mark: 0})
		if len(strays) == 0 {
			return
		}
		for _, pid := range strays {
			if stray, err := os.FindProcess(pid); err == nil {
				_ = stray.Kill()
			}
		}
	}
}

// termPatience is the time that a dead hub's programs have to end when asked.
const termPatience = 700 * time.Millisecond

// Main turns the process into a guard, or into what a shell runs for LoginEnvironment, and never returns then. Otherwise
// it does nothing. Call it first in main.
func Main() {
	if len(os.Args) == 2 && os.Args[1] == environmentArgument {
		fmt.Print(environmentMark, strings.Join(os.Environ(), "\x00"), environmentMark)
		os.Exit(0)
	}
	if len(os.Args) != 2 || os.Args[1] != guardArgument {
		return
	}
	if err := errors.Join(Conceal(), guard(os.Stdin)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// guard is the guard process. It reads from in which programs run, as Launcher.tell writes it, and ends them when in
// ends.
func guard(in io.Reader) error {
	programs := make(map[string]int) // mark to process id, which is 0 before the program is started
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		order, mark, _ := strings.Cut(lines.Text(), " ")
		pid, err := strconv.Atoi(strings.TrimLeft(order, "+-"))
		if err != nil || pid == 1 || mark == "" { // 1 would stand for all processes
			return fmt.Errorf("guard: line %q is no order", lines.Text())
		}
		if order[0] == orderRemove {
			delete(programs, mark)
		} else {
			programs[mark] = pid
		}
	}
	endAll(programs)
	return lines.Err()
}

// endAll asks the programs' groups to end, gives them a moment, and kills what is left.
func endAll(programs map[string]int) {
	var all []int // what signals are sent to: groups are negative
	for _, pid := range programs {
		if pid != 0 {
			all = append(all, -pid)
		}
	}
	all = append(all, marked(programs)...)
	for _, pid := range all {
		term(pid)
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(termPatience); time.Now().Before(deadline) && slices.ContainsFunc(all, alive); {
		<-again.C
	}
	for _, pid := range append(all, marked(programs)...) {
		kill(pid)
	}
}
