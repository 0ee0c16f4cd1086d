package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/service"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
)

const serviceInstallHelp = `Let systemd (Linux) or launchd (macOS) run the hub for you, from now on
and after each login.

It serves your config over HTTP, at hub.http.listen or --http. The file for the service manager
is written and the hub is started; run it again after you have moved the config or the program.
Where the manager is not there, the commands that start the hub are printed. On Windows the task
scheduler does this: the command says how.

It has the environment of your login shell, and not what only this terminal has set.`

const serviceRemoveHelp = `Stop the service and remove its file. Config, records and secrets stay.`

// serviceCmd runs the commands below "service".
type serviceCmd struct {
	*app
	address string
	dryRun  bool
}

// serviceEnv are the variables that a service takes along: in which programs are found, and where config and state are.
var serviceEnv = []string{"PATH", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}

// serviceAddress is where a service listens if nobody says where.
const serviceAddress = "127.0.0.1:8808"

func serviceCommand(a *app) *cobra.Command {
	c := &serviceCmd{app: a}
	install := leaf("install", "Let systemd or launchd run the hub", serviceInstallHelp, c.install,
		"mcp-toolhub service install --config ~/.config/mcp-toolhub/config.yaml",
		"mcp-toolhub service install --dry-run")
	install.Flags().StringVar(&c.address, "http", "",
		"listen on `host:port` (default: the config's hub.http.listen, or "+serviceAddress+")")
	remove := leaf("remove", "Stop the service and take it out", serviceRemoveHelp, c.remove)
	install.Flags().BoolVar(&c.dryRun, "dry-run", false, "show what would be written and run, and do nothing")
	status := leaf("status", "Say whether there is a service, and what its manager says of it", "", c.status)
	return group("service", "Run the hub as a service of yours", "", install, remove, status)
}

// unit returns the service that runs h.
func (c *serviceCmd) unit(h service.Hub) (*service.Unit, error) {
	home, _ := os.UserHomeDir() // New says that there is none
	env := config.Env(c.std.getenv)
	u, err := service.New(service.User{OS: runtime.GOOS, ID: os.Getuid(), Home: home, Config: config.UserDir(env)}, h)
	return u, err
}

// installed returns the service that was installed, where its manager is; nil for none.
func (c *serviceCmd) installed() (*service.Unit, error) {
	u, err := c.unit(service.Hub{Program: ownProgram()})
	if err != nil {
		return nil, nil // this system has no services
	}
	have, err := ownFile(u)
	if err != nil || have == "" {
		return nil, err
	}
	if _, err := exec.LookPath(u.Manager()); err != nil {
		return nil, nil
	}
	return u, nil
}

// status prints what the service's manager says of it.
func (c *serviceCmd) status(ctx context.Context) error {
	u, err := c.installed()
	if err != nil {
		return err
	}
	if u == nil {
		return exitNotReady.errorf("there is no service. Install it with: mcp-toolhub service install")
	}
	c.std.say("file  %s\nlog   %s", u.File, u.Log)
	said, err := exec.CommandContext(ctx, u.Status.Args[0], u.Status.Args[1:]...).CombinedOutput()
	c.std.say("%s", printable(strings.TrimSpace(string(said))))
	if err != nil {
		return exitNotReady.errorf("the service does not run. Start it with: mcp-toolhub start")
	}
	return nil
}

func (c *serviceCmd) install(ctx context.Context) error {
	s, err := c.load(ctx)
	if err != nil {
		return err
	}
	c.warn(s)
	h, err := c.hub(s)
	if err != nil {
		return err
	}
	if !c.dryRun {
		if _, err = giveToken(ctx, c.app, s, cmp.Or(c.address, s.Downstream.HTTP.Listen, serviceAddress)); err != nil {
			return err
		}
	}
	u, err := c.unit(h)
	if err != nil {
		return err
	}
	have, err := ownFile(u)
	if err != nil {
		return err
	}
	if c.dryRun {
		c.std.say("%s:\n\n%s", u.File, u.Text)
		return c.all(ctx, u.Start)
	}
	if have != u.Text {
		if err := statefile.Write(u.File, []byte(u.Text)); err != nil {
			return fmt.Errorf("write the service: %w", err)
		}
		c.std.say("wrote %v", u.File)
	}
	if _, err := exec.LookPath(u.Manager()); err != nil {
		c.std.say("%s is not in PATH, so nothing was started. Where it is, run:", u.Manager())
		c.dryRun = true
	}
	if running, _ := hub.SharedHub(ctx, s); running != nil && running.Launched() && !c.dryRun {
		c.std.warn("the service takes the place of the hub in the background, process %d", running.PID())
		if err := running.Stop(ctx); err != nil {
			return err
		}
	}
	if err := c.all(ctx, u.Start); err != nil {
		return fmt.Errorf("%w: log in as this user, without su or sudo, and run mcp-toolhub service "+
			"install again", err)
	}
	if !c.dryRun {
		c.std.say("The hub runs. Its log: %s", u.Log)
	}
	if runtime.GOOS == "linux" {
		c.std.say("It ends when you log out, unless you run: loginctl enable-linger")
	}
	return nil
}

// hub is what the service runs: this program, with the config and the directories of now by their whole paths.
func (c *serviceCmd) hub(s *config.Settings) (service.Hub, error) {
	h := service.Hub{Program: ownProgram()}
	for _, name := range serviceEnv {
		if value, ok := c.std.getenv(name); ok {
			h.Env = append(h.Env, name+"="+value)
		}
	}
	if strings.Contains(filepath.ToSlash(h.Program), "/_npx/") {
		return h, errors.New("npx keeps this program in its cache, from where it may go: npm install -g " +
			"mcp-toolhub, then run that one")
	}
	h.Args = append([]string{"serve"}, hubFlags(c.app, s)...)
	if c.logLevel != "" {
		h.Args = append(h.Args, "--log-level", c.logLevel)
	}
	if c.logFormat != "" {
		h.Args = append(h.Args, "--log-format", c.logFormat)
	}
	listen := s.Downstream.HTTP.Listen
	if c.address != "" || listen == "" {
		listen = cmp.Or(c.address, serviceAddress)
		h.Args = append(h.Args, "--http", listen)
	}
	return h, s.Downstream.CheckListen(listen)
}

func (c *serviceCmd) remove(ctx context.Context) error {
	u, err := c.unit(service.Hub{Program: ownProgram()})
	if err != nil {
		return err
	}
	have, err := ownFile(u)
	if err != nil {
		return err
	}
	if have == "" {
		c.std.say("there is no service: nothing to do")
		return nil
	}
	_, absent := exec.LookPath(u.Manager())
	if absent == nil {
		if err := c.all(ctx, u.Stop); err != nil {
			c.std.warn("%v: the hub may still run", err)
		}
	}
	for _, file := range append([]string{u.File}, u.Links...) {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove the service: %w", err)
		}
	}
	if absent == nil {
		if err := c.all(ctx, u.Stopped); err != nil {
			c.std.warn("%v", err)
		}
	}
	c.std.say("removed %v", u.File)
	return nil
}

// all runs commands and says which; with --dry-run it only says.
func (c *serviceCmd) all(ctx context.Context, commands []service.Command) error {
	for _, command := range commands {
		line := strings.Join(command.Args, " ")
		if c.dryRun {
			fmt.Fprintln(c.std.out, "  "+line)
			continue
		}
		said, err := exec.CommandContext(ctx, command.Args[0], command.Args[1:]...).CombinedOutput()
		if err != nil && !command.MayFail {
			return fmt.Errorf("%s: %w: %s", line, err, strings.TrimSpace(string(said)))
		}
	}
	return nil
}

// ownFile reads the file of the service; "" where there is none. It refuses one that somebody else has written.
func ownFile(u *service.Unit) (string, error) {
	text, err := os.ReadFile(u.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the service: %w", err)
	case !service.Own(string(text)):
		return "", fmt.Errorf("%q was not written by mcp-toolhub service install: move it away first", u.File)
	}
	return string(text), nil
}
