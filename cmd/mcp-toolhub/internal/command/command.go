// Package command runs commands: a program and its arguments as they are, never through a shell, in
// a directory and with variables that somebody has allowed, for a bounded time, with bounded
// output. It asks nobody and decides nothing: whoever calls has found the program and the directory
// (Bounds) and has been permitted to run it.
//
// A command is run with all that it starts in a process group of its own. When it ends, however it
// ends, nothing of that is left; a hub that is killed outright takes it along (package run).
//
// What was found is what is run: on Linux directory and program are held open by descriptor and
// must still have the names that were found. A script is then opened once more, by its interpreter,
// and elsewhere so is every program: there its file can be exchanged in the moment between the last
// look and the start.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Spec is one command that is to run.
type Spec struct {
	Program string   // absolute path without links, as Bounds.Find returned it
	Argv    []string // the program's name as it is to see it, then its arguments
	Dir     string   // absolute path without links, as Bounds.Dir returned it
	Env     []string // NAME=value: all that it gets, but for PWD and the variables of package run
	Stdin   []byte   // nil: its input is at an end from the beginning

	Timeout     time.Duration // it is ended after that long; must be positive
	StdoutLimit int           // bytes that are kept of its output
	StderrLimit int

	// Progress, where it is not nil, is called every few seconds while the command runs, never after Run has returned.
	Progress func(took time.Duration, output int64)
}

// Why a command ended.
type Ending string

const (
	Exited   Ending = "exited"   // by itself: see ExitCode
	Signaled Ending = "signaled" // by a signal that was not ours: see Signal
	TimedOut Ending = "timed_out"
	Canceled Ending = "canceled" // the context was
	Stopped  Ending = "stopped"  // the hub ends
)

// Outcome says how a command ended.
type Outcome struct {
	Ending   Ending
	ExitCode int    // -1 where it did not exit by itself
	Signal   string // of Signaled
	Stdout   Output
	Stderr   Output
	Took     time.Duration
}

// Failure is the failure of a command that the hub has ended. Nobody knows what it has done by
// then. where says where a person can allow more time.
func (o *Outcome) Failure(where string) *tool.Failure {
	f := &tool.Failure{Class: tool.ClassCanceled, OutcomeUnknown: true,
		Message: fmt.Sprintf("the call was canceled, and the command ended after %v "+
			"with all that it had started; what it did until then stays done", o.Took.Round(time.Millisecond))}
	switch o.Ending {
	case TimedOut:
		f.Class, f.Code = tool.ClassTimeout, "command_timed_out"
		f.Message = fmt.Sprintf("the command was ended after %v with all that it had started, because its time was "+
			"over; what it did until "+
			"then stays done. Give it less to do; only the person can allow more time%s",
			o.Took.Round(time.Millisecond), where)
	case Stopped:
		f.Code, f.Message = "hub_stopping",
			"the hub stops, and the command was ended with all that it had started; what it did until then stays done"
	}
	return f
}

// Mapping says for the record of a call how its command, which ran in dir, ended.
func (o *Outcome) Mapping(dir string) tool.ExternalMapping {
	m := tool.ExternalMapping{CWD: dir, Signal: o.Signal}
	if o.Ending == Exited {
		m.ExitCode = &o.ExitCode
	}
	return m
}

// NotRun is the failure of a command for which Run has returned err. It is unstarted where the program
// could not be started.
func NotRun(ctx context.Context, err error, unstarted *tool.Failure) *tool.Failure {
	f := &tool.Failure{Cause: err}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.Class, f.Message = tool.ClassTimeout, "the time of the call was over before it began: call again"
	case ctx.Err() != nil:
		f.Class, f.Message = tool.ClassCanceled, "the call was canceled before it began"
	case errors.Is(err, ErrChanged):
		f.Class, f.Code = tool.ClassPermissionDenied, CodeChanged
		f.Message = "the program changed while it was about to be run: nothing ran; call again"
	case errors.Is(err, ErrClosed):
		f.Class, f.Message = tool.ClassDependencyUnavailable, "the hub is stopping: nothing ran; call again later"
	default:
		unstarted.Cause = err
		return unstarted
	}
	return f
}

// Report returns the Progress of a Spec that tells a call how its command is getting on; nil where nobody listens.
func Report(progress func(tool.Progress)) func(time.Duration, int64) {
	if progress == nil {
		return nil
	}
	return func(took time.Duration, output int64) {
		const params = `{"progress":%d,"message":"running for %v, %d bytes of output so far"}`
		progress(tool.Progress{Params: fmt.Appendf(nil, params, int64(took.Seconds()), took.Round(time.Second),
			output)})
	}
}

// ErrStart is wrapped where the program could not be started: nothing has run.
var ErrStart = errors.New("the program could not be started")

// ErrClosed is returned by Run after Close.
var ErrClosed = errors.New("the hub is stopping")

const (
	termPatience  = 500 * time.Millisecond // between asking a command to end and killing it
	progressEvery = 5 * time.Second
)

// Runner runs commands. It is safe for concurrent use.
type Runner struct {
	launcher *run.Launcher

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
	stop    chan struct{}
}

// NewRunner returns a runner that runs nothing yet. self is this program, of which its guard is
// another process; "" for a runner whose commands survive a hub that is killed.
func NewRunner(self string, logger *slog.Logger) *Runner {
	return &Runner{launcher: run.NewLauncher(self, logger), stop: make(chan struct{})}
}

// Close ends all commands that run, and returns when nothing of them is left. Twice is harmless.
func (r *Runner) Close() error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.stop)
	}
	r.mu.Unlock()
	r.running.Wait()
	return r.launcher.Close()
}

func (r *Runner) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrClosed
	}
	r.running.Add(1)
	return nil
}

// Run runs the command and returns when nothing of it is left, which is soon after ctx or its time
// ends. An error means that it did not run.
func (r *Runner) Run(ctx context.Context, s Spec) (Outcome, error) {
	if len(s.Argv) == 0 || s.Timeout <= 0 {
		return Outcome{}, errors.New("run command: it has no program or no timeout")
	}
	if err := r.enter(); err != nil {
		return Outcome{}, err
	}
	defer r.running.Done()
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	p, err := r.start(s)
	if err != nil {
		return Outcome{}, err
	}
	return p.wait(ctx, s, r.stop), nil
}

// process is a command that runs.
type process struct {
	*run.Process
	began   time.Time
	readers sync.WaitGroup
	stdout  *collector
	stderr  *collector
}

func (r *Runner) start(s Spec) (*process, error) {
	h, err := hold(s.Program, s.Dir)
	if err != nil {
		return nil, err
	}
	defer h.release()
	p := &process{stdout: newCollector(s.StdoutLimit), stderr: newCollector(s.StderrLimit)}
	p.Process, err = r.launcher.Start(run.Program{Path: h.program, Args: s.Argv, Dir: h.dir,
		Env: append(slices.Clip(s.Env), "PWD="+s.Dir), Input: s.Stdin != nil})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStart, Cause(err))
	}
	p.began = time.Now()
	p.readers.Go(func() { _, _ = io.Copy(p.stdout, p.Stdout) })
	p.readers.Go(func() { _, _ = io.Copy(p.stderr, p.Stderr) })
	if s.Stdin != nil {
		p.readers.Go(func() {
			_, _ = p.Stdin.Write(s.Stdin) // fails where the program does not want it all
			_ = p.Stdin.Close()
		})
	}
	return p, nil
}

// Cause says why a file could not be opened, or a program not started, without its path.
func Cause(err error) error {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// wait returns when nothing of the command is left.
func (p *process) wait(ctx context.Context, s Spec, stop <-chan struct{}) Outcome {
	o := Outcome{Ending: p.await(ctx, s, stop), ExitCode: -1}
	if o.Ending != "" {
		p.Stop(termPatience, nil)
	}
	o.Took = time.Since(p.began)
	run.Drain(&p.readers, p.Stdin, p.Stdout, p.Stderr)
	o.Stdout, o.Stderr = p.stdout.output(), p.stderr.output()
	if o.Ending == "" {
		o.Ending = Exited
		if o.ExitCode = p.State().ExitCode(); o.ExitCode < 0 {
			o.Ending, o.Signal = Signaled, signalOf(p.State())
		}
	}
	return o
}

func signalOf(state *os.ProcessState) string {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return status.Signal().String()
	}
	return state.String()
}

// await returns why the command has to be ended; "" where it has ended by itself.
func (p *process) await(ctx context.Context, s Spec, stop <-chan struct{}) Ending {
	timeout := time.NewTimer(s.Timeout)
	defer timeout.Stop()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.Ended:
			return ""
		case <-timeout.C:
			return TimedOut
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return TimedOut
			}
			return Canceled
		case <-stop:
			return Stopped
		case <-tick.C:
			if s.Progress != nil {
				s.Progress(time.Since(p.began), p.stdout.bytes()+p.stderr.bytes())
			}
		}
	}
}
