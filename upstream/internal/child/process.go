// Package child starts the programs of servers, keeps what they write to stderr, and ends them with
// all that they started.
package child

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/guard"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// Process is a child that speaks MCP over its stdin and stdout, with everything that it starts itself.
type Process struct {
	Stdin  *os.File      // the hub's end
	Stdout *os.File      // the hub's end
	Exited chan struct{} // closed once the child was waited for and all that it started is killed

	cmd    *exec.Cmd
	reaped chan struct{} // closed once the child was waited for: from then on its id can be somebody else's
	stderr *stderrLog
	read   chan struct{} // closed once stderr is read to its end
	state  string        // how it exited; set before exited is closed

	guard   *guard.Guard
	guarded guard.Child
}

// stopPatience bounds how long each step of Stop waits for the child to end.
const stopPatience = 2 * time.Second

// Start starts the child that cfg describes.
func (l *Launcher) Start(cfg settings.Server, log *slog.Logger, redact *secret.Redactor) (*Process, *fault.Fault) {
	p, err := l.run(cfg, log, redact)
	if err != nil {
		return nil, startFault(cfg, err)
	}
	return p, nil
}

func (l *Launcher) run(cfg settings.Server, log *slog.Logger, redact *secret.Redactor) (_ *Process, err error) {
	env := childEnv(os.Environ(), cfg.Env)
	name, err := lookCommand(cfg.Command, l.self, env)
	if err != nil {
		return nil, err
	}
	guardian := l.get()
	mark := guardian.Mark()
	defer func() {
		if err != nil {
			guardian.Forget(mark)
		}
	}()
	env = append(append(env, guard.Nested(fmt.Sprintf("the entry %q of %s", cfg.ID, l.origin))...), mark)
	cmd := exec.Command(name, cfg.Args...)
	cmd.Env, cmd.Dir = env, cfg.Dir
	var ends [6]*os.File // child's and our end of stdin, stdout, stderr
	for i := 0; i < len(ends); i += 2 {
		r, w, err := os.Pipe()
		if err != nil {
			closeFiles(ends[:])
			return nil, fmt.Errorf("make pipes: %w", err)
		}
		ends[i], ends[i+1] = w, r
	}
	ends[0], ends[1] = ends[1], ends[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = ends[0], ends[2], ends[4]
	err = guard.StartGroup(cmd)
	closeFiles([]*os.File{ends[0], ends[2], ends[4]})
	if err != nil {
		closeFiles([]*os.File{ends[1], ends[3], ends[5]})
		return nil, err
	}
	p := &Process{
		guard:   guardian,
		guarded: guardian.Add(cmd.Process, mark),
		cmd:     cmd,
		reaped:  make(chan struct{}),
		Stdin:   ends[1],
		Stdout:  ends[3],
		stderr:  newStderrLog(log, cmd.Process.Pid, redact),
		Exited:  make(chan struct{}),
		read:    make(chan struct{}),
	}
	go func() {
		defer close(p.read)
		p.stderr.copyFrom(ends[5])
	}()
	go p.wait(ends[5])
	return p, nil
}

// wait reaps the child, and ends what it left behind.
func (p *Process) wait(stderr *os.File) {
	err := p.cmd.Wait() // the error says no more than the state
	p.state = exitText(p.cmd.ProcessState, err)
	close(p.reaped)
	// What the child left running has lost its purpose. The group's id cannot belong to somebody else
	// while a process of the group lives; where none lives, it takes a while until the id is given
	// away again.
	guard.KillGroup(p.cmd)
	guard.KillStrays(p.guarded)
	p.guard.Remove(p.guarded)
	// A descendant that left the group may hold stderr open.
	wait.For(nil, p.read, DrainTime)
	_ = stderr.Close()
	<-p.read
	close(p.Exited)
}

// DrainTime says how long the pipes of a child that has exited are read on if a descendant holds
// them. A busy machine takes a while to read all that the child has written.
const DrainTime = 2 * time.Second

// Stop ends the child and its group, after its stdin was closed: it waits, terminates, and then
// kills. Closing kill skips the waiting. It returns when the child is gone.
func (p *Process) Stop(kill <-chan struct{}) {
	timer := time.NewTimer(stopPatience)
	defer timer.Stop()
	for _, step := range []func(*exec.Cmd){guard.TermGroup, guard.KillGroup} {
		select {
		case <-p.Exited:
			return
		case <-kill:
			p.signal(guard.KillGroup)
			<-p.Exited
			return
		case <-timer.C:
			p.signal(step)
			timer.Reset(stopPatience)
		}
	}
	<-p.Exited
}

// signal sends to the child's group, unless the child is gone: what is left of its group then was
// killed, and all that is waited for may take seconds on a busy machine.
func (p *Process) signal(send func(*exec.Cmd)) {
	if !wait.IsClosed(p.reaped) {
		send(p.cmd)
	}
}

// PID returns the id of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ending says how the child exited, or "" where it has not exited within patience.
func (p *Process) Ending(patience time.Duration) string {
	if !wait.For(nil, p.Exited, patience) {
		return ""
	}
	return p.state
}

// Cause returns the line of stderr that says what is wrong, as far as that can be told, or "".
func (p *Process) Cause() string { return p.stderr.cause() }

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

func exitText(state *os.ProcessState, err error) string {
	if state == nil {
		return fmt.Sprintf("ended: %v", err)
	}
	if state.Exited() {
		return fmt.Sprintf("exited with status %d", state.ExitCode())
	}
	return "ended by " + state.String() // "signal: killed"
}
