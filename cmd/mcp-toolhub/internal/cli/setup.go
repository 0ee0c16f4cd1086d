package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

const setupHelp = `Set everything up, step by step:

  import    take the servers of your MCP clients into the hub's config
  start     start a hub in the background, which your clients join
  check     look whether each server is ready, and sign in to those that ask for it
  connect   write the hub into your clients, in the place of the servers that are ready

What would change is shown, and you are asked before: about the config, the hub in the background,
each sign-in and the clients. A server that is not ready stays in its client. Run it again at any
time: what is changed already stays as it is.`

// setupCmd runs the command "setup".
type setupCmd struct {
	*app
	yes bool

	unready []string // servers that were not ready
}

func setupCommand(a *app) *cobra.Command {
	c := &setupCmd{app: a}
	cmd := leaf("setup", "Set everything up: import, start, check, connect", setupHelp, c.run,
		"mcp-toolhub setup")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask, and sign in nowhere")
	return cmd
}

// run makes the steps one after the other.
func (c *setupCmd) run(ctx context.Context) error {
	for i, step := range []struct {
		name string
		run  func(context.Context) error
	}{{"import", c.bring}, {"start", c.start}, {"check", c.check}, {"connect", c.connect}} {
		if i > 0 { // import makes a config where there is none
			if err := c.configured(); err != nil {
				return err
			}
		}
		c.std.say("== %s", step.name)
		err := step.run(ctx)
		if errors.Is(err, errNobody) {
			return exitUsage.errorf("%w; import --dry-run and connect --dry-run show what would change", errNobody)
		}
		if err != nil {
			return err
		}
	}
	c.std.say("Done. mcp-toolhub status shows how the hub is, mcp-toolhub ui opens its page,\n" +
		"mcp-toolhub undo takes the last change of your clients back.")
	return nil
}

// configured fails where there is no config to go on with.
func (c *setupCmd) configured() error {
	if _, err := c.find(); err != nil {
		return exitConfig.errorf(
			"no server is in the hub's config yet: mcp-toolhub add URL, or mcp-toolhub add NAME -- COMMAND, " +
				"adds one: then setup again")
	}
	return nil
}

func (c *setupCmd) bring(ctx context.Context) error {
	i := importCmd{configEdit: configEdit{app: c.app}, guided: true, yes: c.yes}
	return i.run(ctx)
}

// start starts a hub in the background.
func (c *setupCmd) start(ctx context.Context) error {
	s, err := c.load(ctx)
	if err != nil {
		return err
	}
	if running, _ := hub.SharedHub(ctx, s); running == nil {
		ok, err := c.agree(ctx, c.yes, "Start a hub in the background, which all clients join? [Y/n]: ")
		if err != nil || !ok {
			return err
		}
	}
	return startCmd{c.app}.start(ctx, false)
}

// check waits for every server. One that is not ready holds nobody up; where a sign-in helps, it is offered.
func (c *setupCmd) check(ctx context.Context) error {
	s, err := c.load(ctx)
	if err != nil {
		return err
	}
	report, err := awaited(ctx, c.app, hub.Want{All: true}, c.showWaiting)
	c.std.wait("")
	if err != nil {
		return err
	}
	var asking, ready []string
	for _, st := range report.Servers {
		i := slices.IndexFunc(s.Upstream.Servers, func(one upstream.ServerConfig) bool { return one.ID == st.Server })
		if i < 0 || s.Upstream.Servers[i].Disabled {
			continue
		}
		c.std.say("%s", stateLine(st))
		if isUnready(st) {
			c.unready = append(c.unready, st.Server)
		} else {
			ready = append(ready, st.Server)
		}
		if st.State == tool.ServerNeedsAuth && s.Upstream.Servers[i].SignsIn() && !c.yes {
			asking = append(asking, st.Server)
		}
	}
	for _, id := range asking {
		ok, err := c.confirm(ctx, fmt.Sprintf("Sign in to %s now, in the browser? [Y/n]: ", id))
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
			continue
		}
		c.unready = slices.DeleteFunc(c.unready, func(one string) bool { return one == id })
	}
	if c.yes {
		return nil
	}
	edit := configEdit{app: c.app}
	if err := edit.find(false); err != nil {
		return err
	}
	return edit.offerReaders(ctx, report, ready...)
}

// showWaiting shows on a terminal for which servers the person waits. It reports whether there are none.
func (c *setupCmd) showWaiting(r control.Report) bool {
	var starting []string
	for _, st := range r.Servers {
		if st.State == tool.ServerStarting {
			starting = append(starting, st.Server)
		}
	}
	if len(starting) > 0 {
		c.std.wait(fmt.Sprintf("%d of %s ready, waiting for %s", len(r.Servers)-len(starting),
			textfile.Count(len(r.Servers), "server"), strings.Join(starting, ", ")))
	}
	return len(starting) == 0
}

// connect writes the hub into every client whose file can be read and written.
func (c *setupCmd) connect(ctx context.Context) error {
	to := connectCmd{app: c.app, all: true, stdio: true, replace: true, yes: c.yes, keep: c.unready}
	err := to.connect(ctx, nil)
	if errors.Is(err, errNoClient) {
		c.std.say(
			"no client whose file can be changed was found on this machine: mcp-toolhub connect takes the name of one")
		return nil
	}
	if len(c.unready) > 0 {
		c.std.say("In their clients stay, as they are not ready: %s.\n  Once they are, run: mcp-toolhub connect --all "+
			"--replace", strings.Join(c.unready, ", "))
	}
	return err
}
