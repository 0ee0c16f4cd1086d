package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

const allowHelp = `Allow a config that lies in the current directory, and show what it makes the hub do.

A file mcp-toolhub.yaml (.yml, .json, .jsonc) may come with a cloned repository. So the hub
uses it only after you have allowed it. At a terminal the hub asks. Elsewhere it leaves the
file out with a warning, and uses your own config. That holds for the file at its path with
its content, and for the content of all files that it reads: rule files, envFile, ${file:…}.
It does not hold for programs that the file names. A running hub keeps its settings when the
file changes, until you allow it again.

A file that you name with --config, or $MCP_TOOLHUB_CONFIG, needs no such command. The
command has nothing to do with trust: true of a server, which is about its tools.`

// trustCmd runs the command "allow-config", which was called trust.
type trustCmd struct {
	*app
	no bool // --revoke
}

func allowConfigCommand(a *app) *cobra.Command {
	c := &trustCmd{app: a}
	cmd := leaf("allow-config [FILE]", "Allow the config in the current directory", allowHelp, c.run,
		"mcp-toolhub allow-config", "mcp-toolhub allow-config --revoke ~/project/mcp-toolhub.yaml")
	cmd.Aliases = []string{"trust"}
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"yaml", "yml", "json", "jsonc"}, cobra.ShellCompDirectiveFilterFileExt
	}
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.Flags().BoolVar(&c.no, "revoke", false, "allow the file no longer")
	return cmd
}

func (c *trustCmd) run(_ context.Context, args []string) error {
	path, err := c.path(args)
	if err != nil {
		return err
	}
	if c.no {
		return c.revoke(path)
	}
	return c.give(path)
}

// path returns the path of the config file that the command line is about.
func (c *trustCmd) path(args []string) (string, error) {
	path := cmp.Or(strings.Join(args, ""), c.configPath)
	if path != "" {
		if !config.IsProject(path) {
			return "", exitUsage.errorf(
				"allow %q: no hub uses a file of that name unless you name it with --config, which "+
					"needs no such command: only mcp-toolhub.yaml, .yml, .json and .jsonc are looked for in a directory",
				path)
		}
		return path, nil
	}
	found, err := c.find()
	if err == nil && found[0].Project {
		return found[0].Path, nil
	}
	return "", exitUsage.errorf("there is no mcp-toolhub.yaml (.yml, .json, .jsonc) in this directory: name the file")
}

func (c *trustCmd) give(path string) error {
	s, err := c.read(config.Found{Path: path})
	if err != nil {
		return err
	}
	c.warn(s)
	if err := s.Trust(); err != nil {
		return err
	}
	c.std.say("allowed: %s", s.Path)
	printUses(c.std.out, s)
	return nil
}

func (c *trustCmd) revoke(path string) error {
	state, err := config.StateDir(c.stateDir, c.std.getenv)
	if err != nil {
		return err
	}
	was, err := config.Distrust(state, path)
	if err != nil {
		return err
	}
	if !was {
		return fmt.Errorf("%q was not allowed: mcp-toolhub allow-config takes its path", path)
	}
	c.std.say("allowed no longer: %s", path)
	return nil
}

// printUses prints what a config makes the hub do.
func printUses(w io.Writer, s *config.Settings) {
	for _, use := range s.Uses {
		fmt.Fprintf(w, "  %s\n", use)
	}
}

// askTrust asks the person at the terminal whether to trust a config, and returns its settings
// where they do. Where nobody can be asked, or the person does not, it returns nothing.
func (a *app) askTrust(ctx context.Context, u *config.UntrustedError) (*config.Settings, error) {
	t := a.terminal()
	if t == nil || u.Settings == nil || a.distrusts {
		return nil, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	state := "you have not allowed it yet"
	if u.Changed {
		state = "it, or a file that it reads, has changed since you allowed it"
	}
	a.std.note("This directory has a config of its own, %s: %s. It makes the hub do this:", printable(u.Path), state)
	printUses(a.std.err, u.Settings)
	ok, err := t.yes(ctx, "Allow it? [y/N]: ")
	if a.distrusts = err == nil && !ok; err != nil || !ok {
		return nil, err
	}
	if err := u.Settings.Trust(); err != nil {
		return nil, err
	}
	return u.Settings, exitConfig.of(a.addRules(u.Settings))
}
