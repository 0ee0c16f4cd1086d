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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

const startHelp = `Set everything up, step by step:

  import    take the servers of your MCP clients into the hub's config
  check     start each server, and sign in to those that ask for it
  connect   write the hub into your clients, in the place of those servers
  serve     keep a hub running in the background, which your clients join

What would change is shown, and you are asked before: about the config, each sign-in, the clients
and the hub in the background. Run it again at any time: what is changed already stays as it is.

--background is the last step alone. The hub outlives the terminal, writes its log to hub.log in
the state directory, and ends with mcp-toolhub stop. Where one of the same config runs already,
there is nothing to do. It does not come back after a restart of the machine by itself. A service
manager can run mcp-toolhub serve --shared instead.`

const stopHelp = `Stop the hub that start --background keeps running, after the calls in flight.

Its clients go on: one of their own processes becomes the hub. Without --config, every such hub of
the state directory is stopped.`

// startCmd runs the commands "start" and "stop".
type startCmd struct {
	*app
	background, yes bool
	skip            []string
}

// steps are the names of the steps, for --skip.
func steps() []string { return []string{"import", "check", "connect", "serve"} }

func startCommand(a *app) *cobra.Command {
	c := &startCmd{app: a}
	cmd := leaf("start", "Set everything up: import, check, connect, serve", startHelp, c.run,
		"mcp-toolhub start", "mcp-toolhub start --yes --skip serve", "mcp-toolhub start --background")
	cmd.Flags().BoolVar(&c.background, "background", false, "keep a hub running in the background, and do nothing else")
	cmd.Flags().StringSliceVar(&c.skip, "skip", nil, "leave out these `steps`, with commas between")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask, and sign in nowhere")
	cmd.MarkFlagsMutuallyExclusive("background", "skip")
	return cmd
}

func stopCommand(a *app) *cobra.Command {
	return leaf("stop", "Stop the hub that runs in the background", stopHelp, (&startCmd{app: a}).stop)
}

// run makes the steps one after the other; with --background the last one alone.
func (c *startCmd) run(ctx context.Context) error {
	if c.background {
		return c.keep(ctx)
	}
	for _, name := range c.skip {
		if !slices.Contains(steps(), name) {
			return exitUsage.errorf("--skip %q: the steps are %s", name, strings.Join(steps(), ", "))
		}
	}
	for i, step := range []func(context.Context) error{c.bring, c.check, c.connect, c.serve} {
		name := steps()[i]
		if slices.Contains(c.skip, name) {
			continue
		}
		if i > 0 { // import makes a config where there is none
			if err := c.configured(); err != nil {
				return err
			}
		}
		c.std.say("== %s", name)
		err := step(ctx)
		if errors.Is(err, errNobody) {
			return exitUsage.errorf("%w; import --dry-run and connect --dry-run show what would change", errNobody)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// configured fails where there is no config to go on with.
func (c *startCmd) configured() error {
	if _, err := c.find(); err != nil {
		return exitConfig.errorf(
			"no server is in the hub's config yet: mcp-toolhub add URL, or mcp-toolhub add NAME -- COMMAND, " +
				"adds one: then start again")
	}
	return nil
}

func (c *startCmd) bring(ctx context.Context) error {
	i := importCmd{configEdit: configEdit{app: c.app}, guided: true, yes: c.yes}
	return i.run(ctx)
}

// check starts every server. One that is not ready holds nobody up; where a sign-in helps, it is offered.
func (c *startCmd) check(ctx context.Context) error {
	var asking []string
	err := c.withHub(ctx, hub.Want{All: true}, func(h *hub.Hub) error {
		health := hub.Model{Hub: h}.Health()
		servers := h.Settings().Upstream.Servers
		for _, s := range health.Servers {
			i := slices.IndexFunc(servers, func(one upstream.ServerConfig) bool { return one.ID == s.Server })
			if s.State == tool.ServerNeedsAuth && i >= 0 && servers[i].SignsIn() {
				asking = append(asking, s.Server)
			}
		}
		return c.printServers(health, false)
	})
	if err != nil || c.yes {
		return err
	}
	for _, id := range asking {
		ok, err := c.confirm(ctx, fmt.Sprintf("Sign in to %s now, in the browser? [y/n]: ", id))
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		login := loginCmd{app: c.app}
		if err := login.login(ctx, id); ctx.Err() != nil {
			return err
		} else if err != nil {
			c.std.warn("%s; again with: mcp-toolhub login %s", err, id)
		}
	}
	return nil
}

// connect writes the hub into every client whose file can be read and written.
func (c *startCmd) connect(ctx context.Context) error {
	to := connectCmd{app: c.app, all: true, stdio: true, replace: true, yes: c.yes, profile: namespace.DefaultProfile}
	err := to.connect(ctx, nil)
	if errors.Is(err, errNoClient) {
		c.std.say(
			"no client whose file can be changed was found on this machine: mcp-toolhub connect takes the name of one")
		return nil
	}
	return err
}

func (c *startCmd) serve(ctx context.Context) error {
	s, err := c.load(ctx)
	if err != nil {
		return err
	}
	if running, _ := hub.SharedHub(ctx, s); running == nil {
		ok, err := c.agree(ctx, c.yes, "Keep a hub running in the background, which all clients join? [y/n]: ")
		if err == nil && ok {
			err = c.settle(ctx, s)
		}
		if err != nil || !ok {
			return err
		}
	}
	return c.keep(ctx)
}

// unsettled returns the servers that run in the directory in which their hub was started: only
// clients of that directory share it.
func unsettled(s *config.Settings) (ids []string) {
	for _, server := range s.Upstream.Servers {
		if server.Transport == upstream.Stdio && server.Dir == "" && !server.Disabled {
			ids = append(ids, server.ID)
		}
	}
	return ids
}

// settle offers a directory to the servers that have none.
func (c *startCmd) settle(ctx context.Context, s *config.Settings) error {
	ids := unsettled(s)
	if len(ids) == 0 || c.yes {
		return nil
	}
	c.std.note(
		"These servers run in the directory of the client that starts them, so clients in different directories "+
			"share no hub:\n  %s",
		strings.Join(ids, ", "))
	if ok, err := c.confirm(ctx, "Let them run in your home directory, for all clients? [y/n]: "); err != nil || !ok {
		return err
	}
	e := configEdit{app: c.app}
	if err := e.find(false); err != nil {
		return err
	}
	return e.change(func(f *splice.File) (*splice.File, error) {
		for _, id := range ids {
			place, entry, err := e.server(f, id)
			if err == nil {
				f, err = f.Put(splice.Place{Path: append(slices.Clone(place.Path), entry.Name)}, "cwd", clients.HomeDir)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", id, err)
			}
		}
		return f, nil
	}, nil)
}

// keep sees to it that a hub runs in the background.
func (c *startCmd) keep(ctx context.Context) error {
	s, err := c.load(ctx)
	if err != nil {
		return err
	}
	c.warn(s)
	running, err := hub.SharedHub(ctx, s)
	if err != nil {
		return err
	}
	if running != nil {
		c.std.say("A hub runs already in the background, as process %d.", running.PID())
		if joined, err := running.Join(ctx, hub.Fingerprint(s, ""), namespace.DefaultProfile); err == nil {
			_ = joined.Close()
		} else {
			c.std.warn("clients that start here do not join it: %s: run mcp-toolhub stop, then start it again", err)
		}
		return nil
	}
	if err := hub.OpenStateDir(s.StateDir, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	log := filepath.Join(s.StateDir, hub.LogFile)
	if running, err = c.launch(ctx, s, log); err != nil {
		return fmt.Errorf("start a hub in the background: %w", err)
	}
	c.std.say("A hub runs in the background, as process %d. Clients that start the hub with this config join it.\n  "+
		"config: %s\n  log:    %s\n"+
		"  stop:   %s", running.PID(), hub.Absolute(s.Path), log, hub.CommandLine(s.StateDir, "stop"))
	if here := unsettled(s); len(here) > 0 {
		c.std.note(
			"Clients that start in another directory have a hub of their own: give these servers a cwd to prevent "+
				"that: %s",
			strings.Join(here, ", "))
	}
	return nil
}

// launch starts the hub, and returns when clients can join it.
func (c *startCmd) launch(ctx context.Context, s *config.Settings, log string) (*control.Client, error) {
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
	cmd := exec.Command(self, "serve", "--shared", "--state-dir", s.StateDir)
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
	limit := time.After(launchWithin)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if running, err := hub.SharedHub(ctx, s); running != nil || err != nil {
			return running, err
		}
		select {
		case err := <-ended:
			if running, _ := hub.SharedHub(ctx, s); running != nil { // another one was faster
				return running, nil
			}
			return nil, fmt.Errorf("it has ended: %w\n%s", err, since(log, before))
		case <-limit:
			return nil, fmt.Errorf("it does not answer after %s: see %s", launchWithin, log)
		case <-ctx.Done():
			return nil, errors.Join(errors.New("interrupted"), cmd.Process.Kill())
		case <-again.C:
		}
	}
}

// launchWithin bounds the start of a hub in the background, which does not wait for its servers.
const launchWithin = time.Minute

// since returns the end of what a file holds from an offset on.
func since(file string, offset int64) string {
	const most = 4 << 10
	data, err := os.ReadFile(file)
	if err != nil || int64(len(data)) < offset {
		return ""
	}
	text := data[offset:]
	return string(text[max(0, len(text)-most):])
}

func (c *startCmd) stop(ctx context.Context) error {
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
		if running.Config() == "" || c.configPath != "" && running.Config() != hub.Absolute(c.configPath) {
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
