package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const startHelp = `Start a hub in the background, which your clients join.

It outlives the terminal, writes its log to hub.log in the state directory, and ends with
mcp-toolhub stop. Where one of the same config runs already, there is nothing to do. Where a
service is installed (see service), that is started; otherwise the hub does not come back after
a restart of the machine by itself.`

const stopHelp = `Stop the hub that runs in the background, after the calls in flight.

Its clients go on: one of their own processes becomes the hub. Without --config, every such hub of
the state directory is stopped.`

const restartHelp = `Stop the hub that runs in the background and start it again, or start one of its servers anew.

Clients stay connected. A SERVER is started anew in every hub of the config that runs.`

// startCmd runs the commands that start and stop the hub.
type startCmd struct{ *app }

func startCommand(a *app) *cobra.Command {
	start := func(ctx context.Context) error { return startCmd{a}.start(ctx, false) }
	return leaf("start", "Start a hub in the background", startHelp, start, "mcp-toolhub start")
}

func stopCommand(a *app) *cobra.Command {
	return leaf("stop", "Stop the hub that runs in the background", stopHelp, startCmd{a}.stop)
}

func restartCommand(a *app) *cobra.Command {
	cmd := leaf("restart [SERVER]", "Start the hub, or one of its servers, anew", restartHelp, startCmd{a}.restart,
		"mcp-toolhub restart", "mcp-toolhub restart github")
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.ValidArgsFunction = a.complete(nil, serverNames)
	return cmd
}

// running returns the hubs of the config that run and that clients join, and the path of the config.
func (a *app) running(ctx context.Context) (hubs []*control.Client, path string, err error) {
	hubs, path, err = allRunning(ctx, a)
	return slices.DeleteFunc(hubs, func(h *control.Client) bool { return h.Apart() != "" }), path, err
}

// allRunning returns the hubs of the config that run, and the path of the config.
func allRunning(ctx context.Context, a *app) (hubs []*control.Client, path string, err error) {
	if path, err = a.configFile(); err != nil {
		return nil, "", err
	}
	state, err := a.findState()
	if err != nil {
		return nil, "", err
	}
	hubs, err = hub.Running(ctx, state, path)
	return hubs, path, err
}

// restart starts the hub anew, or a server in each hub.
func (c startCmd) restart(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return c.start(ctx, true)
	}
	hubs, _, err := c.running(ctx)
	if err == nil && len(hubs) == 0 {
		err = exitNotReady.of(errNoneRuns)
	}
	for _, h := range hubs {
		if err := h.Restart(ctx, args[0]); err != nil {
			return err
		}
		report, err := settled(ctx, h, func(r control.Report) bool {
			return !slices.ContainsFunc(r.Servers, func(st tool.ServerStatus) bool {
				return st.Server == args[0] && st.State == tool.ServerStarting
			})
		})
		if err != nil {
			return err
		}
		for _, st := range report.Servers {
			if st.Server == args[0] {
				c.std.say("%s", stateLine(st))
			}
		}
	}
	return err
}

// errNoneRuns means that no hub of the config runs.
var errNoneRuns = errors.New("no hub runs. Start it with: mcp-toolhub start")

// awaited returns how the servers are once done says that it is enough: at the hub that runs,
// otherwise they are started as w says, and stopped again.
func awaited(ctx context.Context, a *app, w hub.Want, done func(control.Report) bool) (r control.Report, err error) {
	hubs, _, err := a.running(ctx)
	if err == nil && len(hubs) > 0 {
		return settled(ctx, hubs[0], done)
	}
	if err == nil {
		err = a.withHub(ctx, w, func(h *hub.Hub) error {
			r = hub.Model{Hub: h}.Report()
			return nil
		})
	}
	return r, err
}

// settled returns the report of a hub once it is as done wants it, or settleWithin is over.
func settled(ctx context.Context, h *control.Client, done func(control.Report) bool) (r control.Report, err error) {
	limit, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	err = hub.Poll(limit, 200*time.Millisecond, func() (bool, error) {
		r, err = h.Report(ctx)
		return err == nil && done(r), err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = ctx.Err()
	}
	return r, err
}

// settleWithin bounds the wait for servers that start: one that hangs holds nobody up.
const settleWithin = 20 * time.Second

// stateLine says in a line how a server is, and what to do where it is not ready.
func stateLine(st tool.ServerStatus) string {
	switch {
	case st.State == tool.ServerReady:
		return "✓ " + st.Server + ": ready, " + textfile.Count(st.Tools, "tool")
	case st.State == tool.ServerStopped:
		return "✓ " + st.Server + ": its first call starts it"
	case st.State == tool.ServerStarting:
		return "… " + st.Server + ": is still starting"
	}
	line := "✗ " + st.Server + ": " + st.LastError
	if st.Hint != "" {
		line += "\n    " + st.Hint
	}
	return printable(line)
}

// start sees to it that a hub runs in the background: with anew a new one.
func (c startCmd) start(ctx context.Context, anew bool) error {
	s, err := c.load(ctx)
	if err != nil {
		return err
	}
	c.warn(s)
	running, err := hub.SharedHub(ctx, s)
	if err != nil {
		return err
	}
	if running != nil && !anew {
		c.std.say("A hub runs already in the background, as process %d.", running.PID())
		return nil
	}
	if done, err := c.startService(ctx, c.std.say); done || err != nil {
		return err
	}
	if running, err = c.launch(ctx, s, anew); err != nil {
		return fmt.Errorf("start a hub in the background: %w", err)
	}
	c.std.say("A hub runs in the background, as process %d, which clients with this config join.\n  "+
		"config: %s\n  log:    %s\n"+
		"  stop:   %s", running.PID(), hub.Absolute(s.Path), filepath.Join(s.StateDir, hub.LogFile),
		hub.CommandLine(s.StateDir, "stop"))
	return nil
}

// startService starts the service, anew if it runs, and says so. done is false where none is installed.
func (c startCmd) startService(ctx context.Context, say func(string, ...any)) (done bool, err error) {
	s := &serviceCmd{app: c.app}
	u, err := s.installed()
	if u == nil || err != nil {
		return false, err
	}
	if err := s.all(ctx, u.Start); err != nil {
		return false, err
	}
	say("The service runs. Its log: %s", u.Log)
	return true, nil
}

// launch starts the hub, and returns when clients can join it. With anew it takes the place of one that runs.
func (c startCmd) launch(ctx context.Context, s *config.Settings, anew bool) (*control.Client, error) {
	if err := hub.OpenStateDir(s.StateDir, slog.New(slog.DiscardHandler)); err != nil {
		return nil, err
	}
	log := filepath.Join(s.StateDir, hub.LogFile)
	if info, err := os.Stat(log); err == nil && info.Size() > hub.MaxLogFile {
		if err := os.Rename(log, log+".1"); err != nil {
			return nil, err
		}
	}
	out, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	before, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "serve", "--shared", "--state-dir", s.StateDir, fmt.Sprint("--anew=", anew))
	for _, flag := range []struct{ name, value string }{{"--config", c.configPath}, {"--rules", c.rules},
		{"--log-level", c.logLevel},
		{"--log-format", c.logFormat}} {
		if flag.value != "" {
			cmd.Args = append(cmd.Args, flag.name, flag.value)
		}
	}
	cmd.Stdout, cmd.Stderr = out, out
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	limit, cancel := context.WithTimeout(ctx, launchWithin)
	defer cancel()
	var running *control.Client
	err = hub.Poll(limit, 20*time.Millisecond, func() (bool, error) {
		var endErr error
		over := false
		select {
		case endErr = <-ended:
			over = true
		default:
		}
		running, err = hub.SharedHub(ctx, s)
		switch {
		case err != nil || running != nil && (over || running.PID() == cmd.Process.Pid): // another one was faster
			return true, err
		case over:
			said, _ := hub.TailOf(log, before, 4<<10)
			return true, fmt.Errorf("it has ended: %w\n%s", endErr, said)
		}
		return false, nil
	})
	switch {
	case ctx.Err() != nil:
		err = errors.Join(errors.New("interrupted"), cmd.Process.Kill())
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("it does not answer after %s: see %s", launchWithin, log)
	}
	return running, err
}

// launchWithin bounds the start of a hub in the background, which does not wait for its servers.
const launchWithin = time.Minute

func (c startCmd) stop(ctx context.Context) error {
	state, err := c.findState()
	if err != nil {
		return err
	}
	all, err := control.Find(ctx, state)
	if err != nil {
		return err
	}
	stopped := 0
	for _, running := range all {
		if !running.Shared() || c.configPath != "" && running.Config() != hub.Absolute(c.configPath) {
			continue
		}
		if err := running.Stop(ctx); err != nil {
			return err
		}
		stopped++
		c.std.say("Stopped the hub of %s.", running.Config())
	}
	if stopped == 0 {
		c.std.say("No hub runs in the background.")
	}
	return nil
}
