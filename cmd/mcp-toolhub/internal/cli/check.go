package cli

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

const checkHelp = `Read the config file and report every fault in it at once, each with its place, its key
and what to do, and so for rule files and remembered answers. With --connect, also start every
server and say which are ready.

No value of the config is ever printed.`

// checkCmd runs the command "check".
type checkCmd struct {
	*app
	connect bool
}

func checkCommand(a *app) *cobra.Command {
	c := &checkCmd{app: a}
	cmd := leaf("check", "Check the config file", checkHelp, c.run,
		"mcp-toolhub check --config mcp-toolhub.yaml --connect")
	cmd.Flags().BoolVar(&c.connect, "connect", false, "start every server and report how it went")
	return cmd
}

func (c *checkCmd) run(ctx context.Context) error {
	c.strict = true
	s, err := c.load(ctx)
	if err != nil {
		return c.withFaultyGrants(err)
	}
	if !c.connect { // otherwise the hub that is started says it
		c.warn(s)
	}
	if err := hub.CheckSettings(s); err != nil {
		return exitConfig.of(err)
	}
	c.std.say("%s: ok: %s, %s", s.Path, textfile.Count(len(s.Upstream.Servers), "server"),
		textfile.Count(max(1, len(s.Profiles)), "profile"))
	if !c.connect {
		return nil
	}
	return c.startedServers(ctx, false)
}

// load reads the config that is to be checked. Nothing of it runs, so it needs no trust; with --connect it does.
func (c *checkCmd) load(ctx context.Context) (*config.Settings, error) {
	if c.connect {
		return c.app.load(ctx)
	}
	found, err := c.find()
	if err != nil {
		return nil, err
	}
	s, err := c.read(found[0])
	var untrusted *config.UntrustedError
	if !errors.As(err, &untrusted) {
		return s, err
	}
	if s, err = c.read(config.Found{Path: found[0].Path}); err == nil {
		s.Warnings = append(s.Warnings, untrusted.Warning())
	}
	return s, err
}

// withFaultyGrants adds the faults of the remembered answers to err.
func (c *checkCmd) withFaultyGrants(err error) error {
	state, stateErr := c.findState()
	if stateErr != nil {
		return err
	}
	_, grantsErr := policy.OpenGrants(policy.GrantOptions{File: filepath.Join(state, hub.GrantsFile)})
	return exitConfig.of(errors.Join(err, grantsErr))
}

func schemaCommand(a *app) *cobra.Command {
	return group("schema", "Print JSON Schemas", "",
		leaf("config", "Print the JSON Schema of the config file, for editors", "", func(context.Context) error {
			_, err := a.std.out.Write(config.Schema())
			return err
		}))
}
