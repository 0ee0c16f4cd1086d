// Package run starts every program that is not the hub's own: servers, commands and hooks. Nothing of a program is
// left when it ends, or when the hub ends, kill -9 included.
//
// A program leads a process group of its own. When it ends, the hub kills its group and, on Linux, everything else that
// descends from it.
//
// For the end of the hub itself, a Launcher starts one guard, a process of the hub's own program, and tells it over a
// pipe which programs run. When the hub dies, however it dies, the system closes the pipe; the guard then ends every
// program that was not taken off its list, and exits. A parent-death signal would reach the program alone, not what the
// program has started, such as the node under npx. On Windows there is no guard: a job object for each program does the
// same. See group_windows.go.
//
// Programs run as the hub's user. Conceal keeps them from reading the hub's secrets out of its memory.
//
// A program may be a hub, too. CheckDepth keeps hubs from starting each other without end.
package run

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Program is what a Launcher starts.
type Program struct {
	Path  string
	Args  []string // the program's name as it is to see it, then its arguments
	Dir   string
	Env   []string // NAME=value: all that it gets, but for the variables of this package
	Entry string   // says to people which entry of which config starts it; "" where none does
	Input bool     // give it a pipe as its stdin; otherwise that is at its end

	// Last are the arguments with which Path runs once more when the program is gone, to end what no signal of the hub
	// reaches, such as a container; nil for nothing.
	Last []string
}

// Launcher starts programs under one guard. The guard starts with the first program. It is safe for concurrent use.
type Launcher struct {
	self string // the hub's program, which the guard runs; "" guards nothing
	log  *slog.Logger

	mu      sync.Mutex
	started bool           // the guard was started, or is not to be started any more
	pipe    io.WriteCloser // to the guard; nil where there is none
	guard   *exec.Cmd
}

// NewLauncher returns a launcher that has started nothing yet. self is the hub's program; with "" programs survive a
// hub that is killed.
func NewLauncher(self string, log *slog.Logger) *Launcher { return &Launcher{self: self, log: log} }

// Close ends the guard and waits for it. What is still on its list is ended too. Twice is harmless.
func (l *Launcher) Close() error {
	l.mu.Lock()
	pipe := l.pipe
	l.pipe, l.started = nil, true
	l.mu.Unlock()
	if pipe == nil {
		return nil
	}
	_ = pipe.Close()
	if err := l.guard.Wait(); err != nil {
		return fmt.Errorf("end guard: %w", err)
	}
	return nil
}

// startGuard starts the guard, once. Call it with the lock held.
func (l *Launcher) startGuard() error {
	l.started = true
	if !byProcess || l.self == "" {
		return nil
	}
	cmd := exec.Command(l.self, guardArgument)
	cmd.Dir, cmd.Env = os.TempDir(), []string{} // the hub's variables may hold secrets
	detach(cmd)
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		l.guard, l.pipe = cmd, pipe
	}
	return err
}

// tell sends the guard an order. A guard that is gone cannot be told; the launcher ends its programs as always.
func (l *Launcher) tell(o order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.started {
		if err := l.startGuard(); err != nil {
			l.log.Warn("programs will survive a hub that is killed outright", "error", err)
		}
	}
	if l.pipe != nil {
		_ = json.NewEncoder(l.pipe).Encode(o)
	}
}

// Process is a program that was started, with all that it starts itself.
type Process struct {
	Stdin, Stdout, Stderr *os.File      // the hub's ends; Stdin is nil without Input
	Ended                 chan struct{} // closed once the program was waited for and all that it started is killed

	launcher *Launcher
	program  Program
	cmd      *exec.Cmd
	mark     string // in the environment of what descends from it, and of nothing else
	job      job
	reaped   chan struct{} // closed once the program was waited for: then its id can be somebody else's
}

// Start starts a program.
func (l *Launcher) Start(program Program) (*Process, error) {
	p := &Process{launcher: l, program: program, mark: rand.Text(), Ended: make(chan struct{}),
		reaped: make(chan struct{})}
	p.cmd = &exec.Cmd{Path: program.Path, Args: program.Args, Dir: program.Dir,
		Env: slices.Concat(program.Env, nested(program.Entry), []string{markVariable + "=" + p.mark})}
	first := order{Mark: p.mark} // on Linux the guard looks after the program from its first moment on
	if program.Last != nil {
		first.Program = &program
	}
	l.tell(first)
	if err := p.start(program.Input); err != nil {
		l.tell(order{Mark: p.mark, Gone: true})
		return nil, err
	}
	p.job = newJob(p.cmd.Process)
	l.tell(order{Mark: p.mark, PID: p.PID()})
	go p.wait()
	return p, nil
}

func (p *Process) start(input bool) (err error) {
	var theirs []*os.File
	defer func() {
		closeAll(theirs)
		if err != nil {
			closeAll([]*os.File{p.Stdin, p.Stdout, p.Stderr})
		}
	}()
	for _, output := range []struct {
		ours **os.File
		its  *io.Writer
	}{{&p.Stdout, &p.cmd.Stdout}, {&p.Stderr, &p.cmd.Stderr}} {
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("make pipes: %w", err)
		}
		*output.ours, *output.its, theirs = r, w, append(theirs, w)
	}
	if input {
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("make pipes: %w", err)
		}
		p.Stdin, p.cmd.Stdin, theirs = w, r, append(theirs, r)
	}
	return startGroup(p.cmd)
}

// maxBusyPause is the longest of the pauses of startGroup, which double. All of them take twice as long.
const maxBusyPause = time.Second

// startGroup starts cmd in a process group of its own. cmd has no context and no pipes of package exec.
//
// A program that was just written can be busy (ETXTBSY): a child that was forked meanwhile holds the file open for
// writing until it runs its own program. See https://go.dev/issue/22315. startGroup then tries again, as the go command
// does.
func startGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = OwnGroup()
	for pause := time.Millisecond; ; pause *= 2 {
		err := cmd.Start()
		if !errors.Is(err, syscall.ETXTBSY) || pause > maxBusyPause {
			return err
		}
		time.Sleep(pause)
		// A Cmd can be started once only.
		*cmd = exec.Cmd{Path: cmd.Path, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir, SysProcAttr: cmd.SysProcAttr,
			Stdin: cmd.Stdin, Stdout: cmd.Stdout, Stderr: cmd.Stderr}
	}
}

// wait waits for the program, and ends what it left behind, which has lost its purpose. The group's id cannot belong to
// somebody else while a process of the group lives; where none lives, it takes a while until the id
// is given away again.
func (p *Process) wait() {
	_ = p.cmd.Wait() // says no more than the state
	close(p.reaped)
	KillGroup(p.cmd)
	killStrays(p.mark)
	p.job.end()
	p.program.end()
	p.launcher.tell(order{Mark: p.mark, Gone: true})
	close(p.Ended)
}

// lastTime bounds the run with Program.Last.
const lastTime = 5 * time.Second

// end runs the program with the arguments Last.
func (p *Program) end() {
	if p.Last == nil {
		return
	}
	cmd := &exec.Cmd{Path: p.Path, Args: append([]string{p.Path}, p.Last...), Dir: p.Dir, Env: p.Env}
	if startGroup(cmd) == nil {
		late := time.AfterFunc(lastTime, func() { KillGroup(cmd) })
		defer late.Stop()
		_ = cmd.Wait() // fails where nothing is left, which is usual
	}
}

// PID returns the id of the program's process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Programs returns the command lines of the programs in the group, the oldest first, as far as the system tells them.
func (p *Process) Programs(ctx context.Context) (lines []string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, "ps", "-A", "-ww", "-o", "pgid=,args=").Output() // Windows has no ps
	for line := range strings.Lines(string(out)) {
		group, program, _ := strings.Cut(strings.TrimSpace(line), " ")
		if group == strconv.Itoa(p.PID()) {
			lines = append(lines, strings.TrimSpace(program))
		}
	}
	return lines
}

// State says how the program ended. Call it once Ended is closed.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Stop asks the program and its group to end, and kills them after patience, or as soon as now is closed. It returns
// when nothing of them is left.
func (p *Process) Stop(patience time.Duration, now <-chan struct{}) {
	p.signal(termGroup)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.Ended:
	case <-now:
	case <-timer.C:
	}
	p.signal(KillGroup)
	<-p.Ended
}

// signal sends to the program's group, unless the program is gone: then wait kills what is left of the group.
func (p *Process) signal(send func(*exec.Cmd)) {
	select {
	case <-p.reaped:
	default:
		send(p.cmd)
	}
}

// DrainTime says how long the output of a program that has ended is read on if a process that it did not start, or that
// has left its group, holds the pipes. A busy machine takes a while to read all that the program has written.
const DrainTime = 2 * time.Second

// Drain waits until the program's output is read, for at most DrainTime, and closes files, from which it is read.
func Drain(readers *sync.WaitGroup, files ...*os.File) {
	timer := time.AfterFunc(DrainTime, func() { closeAll(files) })
	readers.Wait()
	timer.Stop()
	closeAll(files)
}

// closeAll closes files; a nil one is harmless.
func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// LookPath finds the program of that name in the PATH of env, in absolute directories only: the working directory is no
// place to look for programs.
func LookPath(name string, env []string) (string, error) {
	for _, entry := range slices.Backward(env) { // exec lets the last one of a name win
		variable, path, _ := strings.Cut(entry, "=")
		if !SameVariable(variable, "PATH") {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) {
				continue
			}
			if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return found, nil
			}
		}
		break
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// SameVariable reports whether two names are those of one variable of the environment.
func SameVariable(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}
