// Package child starts the programs of servers, keeps what they write to stderr, and ends them with
// all that they started.
package child

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/fault"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/settings"
	"github.com/mcp-toolhub/mcp-toolhub/upstream/internal/wait"
)

// Process is a child that speaks MCP over its stdin and stdout, with everything that it starts itself.
type Process struct {
	*run.Process
	Exited chan struct{} // closed once nothing of the child is left and its stderr is read
	stderr *stderrLog
}

// stopPatience bounds how long each step of Stop waits for the child to end.
const stopPatience = 2 * time.Second

// Start starts the child that cfg describes.
func (l *Launcher) Start(cfg settings.Server, log *slog.Logger, redact *secret.Redactor) (*Process, *fault.Fault) {
	env := childEnv(os.Environ(), cfg)
	path, err := lookCommand(cfg.Command, l.self, env)
	if err != nil {
		return nil, startFault(cfg, err)
	}
	args, kill := container(cfg)
	started, err := l.Launcher.Start(run.Program{Path: path, Args: append([]string{path}, args...), Dir: cfg.Dir,
		Env: env, Entry: fmt.Sprintf("the entry %q of %s", cfg.ID, l.origin), Input: true, Last: kill})
	if err != nil {
		return nil, startFault(cfg, err)
	}
	p := &Process{Process: started, stderr: newStderrLog(log, started.PID(), redact), Exited: make(chan struct{})}
	var reading sync.WaitGroup
	reading.Go(func() { p.stderr.copyFrom(p.Stderr) })
	go func() {
		<-p.Ended
		run.Drain(&reading, p.Stderr)
		close(p.Exited)
	}()
	return p, nil
}

// Stop ends the child and its group, after its stdin was closed: it waits, terminates, and then
// kills. Closing kill skips the waiting. It returns when the child is gone.
func (p *Process) Stop(kill <-chan struct{}) {
	if !wait.For(kill, p.Exited, stopPatience) {
		p.Process.Stop(stopPatience, kill)
	}
	<-p.Exited
}

// Ending says how the child exited, or "" where it has not exited within patience.
func (p *Process) Ending(patience time.Duration) string {
	if !wait.For(nil, p.Exited, patience) {
		return ""
	}
	state := p.State()
	if state.Exited() {
		return fmt.Sprintf("exited with status %d", state.ExitCode())
	}
	return "ended by " + state.String() // "signal: killed"
}

// Doing says what a child does that has not answered: which program of its group was started last, and what it wrote.
func (p *Process) Doing(ctx context.Context) string {
	text := "it has written nothing"
	if cause := p.Cause(); cause != "" {
		text = "its stderr says: " + cause
	}
	programs := p.Programs(ctx)
	if len(programs) == 0 {
		return text
	}
	last := programs[len(programs)-1]
	if installer.MatchString(last) {
		return fmt.Sprintf("%q is still at work, which may download; %s", last, text)
	}
	return fmt.Sprintf("%q runs; %s", last, text)
}

// installer matches the command lines of programs that install a server before they run it.
var installer = regexp.MustCompile(`(?:^|/| )(?:(?:npm|npx|pnpm|yarn|bunx?) |npm-cli\.js |npx-cli\.js |uvx? |pipx? |` +
	`(?:docker|podman) (?:pull|run) )`)

// Cause returns the line of stderr that says what is wrong, as far as that can be told, or "".
func (p *Process) Cause() string { return hidden.Cut(Cause(p.Wrote()), secret.MaxText) }

// Wrote returns the last lines of stderr. They are fit to be shown.
func (p *Process) Wrote() []string { return p.stderr.lines() }
