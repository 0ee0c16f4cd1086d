package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// guardArgument is the argument with which the program runs as a guard.
const guardArgument = "guard"

// markVariable is set in the environment of each program, and so of what it starts, to a value that no other one has.
const markVariable = "MCP_TOOLHUB_CHILD"

// order tells the guard of a program: it is about to be started, is started, or nothing of it is left.
type order struct {
	Mark    string
	PID     int      `json:",omitempty"` // 0 before it is started
	Program *Program `json:",omitempty"` // in the first order of one that has Last
	Gone    bool     `json:",omitempty"`
}

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

// Main turns the process into a guard, or into what a shell runs for LoginEnvironment, and never
// returns then. Otherwise it does nothing. Call it first in main.
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

// guard is the guard process. It reads orders from in, and ends the programs that run when in ends.
func guard(in io.Reader) error {
	programs := make(map[string]int) // mark to process id
	elsewhere := make(map[string]*Program)
	for orders := json.NewDecoder(in); ; {
		var o order
		err := orders.Decode(&o)
		if err == nil && (o.PID == 1 || o.Mark == "") { // 1 would stand for all processes
			err = fmt.Errorf("guard: %+v is no order", o)
		}
		switch {
		case err != nil:
			endAll(programs, elsewhere)
			if err == io.EOF {
				return nil
			}
			return err
		case o.Gone:
			delete(programs, o.Mark)
			delete(elsewhere, o.Mark)
		default:
			programs[o.Mark] = o.PID
			if o.Program != nil {
				elsewhere[o.Mark] = o.Program
			}
		}
	}
}

// endAll asks the programs' groups to end, gives them a moment, and kills what is left. Then it ends what some of them
// have left elsewhere.
func endAll(programs map[string]int, elsewhere map[string]*Program) {
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
	var ending sync.WaitGroup
	for _, program := range elsewhere {
		ending.Go(program.end)
	}
	ending.Wait()
}
