package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
)

const uninstallHelp = `Take the hub out of your clients, stop it and its service, and ask whether to
remove your config, and the records, secrets and sign-ins in the state directory.
The program itself stays: remove it as you have installed it.`

func uninstallCommand(a *app) *cobra.Command {
	c := &uninstallCmd{app: a}
	cmd := leaf("uninstall", "Take the hub out of clients and system again", uninstallHelp, c.run,
		"mcp-toolhub uninstall")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask, and keep config and records")
	return cmd
}

// uninstallCmd runs the command "uninstall".
type uninstallCmd struct {
	*app
	yes bool
}

func (c *uninstallCmd) run(ctx context.Context) error {
	clients := connectCmd{app: c.app, all: true, yes: c.yes}
	if err := clients.undo(ctx, nil); err != nil && !errors.Is(err, errNotConnected) {
		return err
	}
	if u, err := (&serviceCmd{app: c.app}).installed(); err == nil && u != nil {
		if err := (&serviceCmd{app: c.app}).remove(ctx); err != nil {
			return err
		}
	}
	if err := (startCmd{c.app}).stop(ctx); err != nil {
		return err
	}
	if c.yes {
		return nil
	}
	path := config.UserFile(c.std.getenv)
	if _, err := os.Stat(path); err == nil {
		if err := c.drop(ctx, "config "+path, func() error { return os.Remove(path) }); err != nil {
			return err
		}
	}
	state, err := c.findState()
	if err != nil {
		return err
	}
	if _, err := os.Stat(state); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return c.drop(ctx, "records, secrets and sign-ins in "+state, func() (err error) {
		for _, name := range hub.OwnState { // the directory may hold more
			err = errors.Join(err, os.RemoveAll(filepath.Join(state, name)))
		}
		return err
	})
}

// drop removes something if the person at the terminal says so.
func (c *uninstallCmd) drop(ctx context.Context, what string, remove func() error) error {
	ok, err := c.confirm(ctx, printable(fmt.Sprintf("Remove your %s? It cannot be brought back. [y/N]: ", what)))
	if err != nil || !ok {
		return err
	}
	return remove()
}
