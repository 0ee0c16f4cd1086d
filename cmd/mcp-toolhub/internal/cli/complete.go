package cli

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// unknownCommand refuses words that are no subcommand, and says which is meant.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return exitUsage.errorf("unknown command %q for %q: %s", args[0], cmd.CommandPath(),
		textfile.DidYouMean(args[0], names, "see "+cmd.CommandPath()+" --help"))
}

// completable holds the names that the shell can complete.
type completable struct{ servers, profiles, tools []string }

// complete completes the first argument with the names that choose returns. profile is that whose tools they are; nil
// where that does not matter.
func (a *app) complete(profile *string, choose func(completable) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		of := namespace.DefaultProfile
		if profile != nil {
			of = *profile
		}
		names, err := a.completable(cmd.Context(), of)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp // a shell is no place for errors
		}
		return choose(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag completes the value of a flag as complete does an argument.
func (a *app) completeFlag(cmd *cobra.Command, flag string, choose func(completable) []string) {
	f := a.complete(nil, choose)
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, word string) ([]string,
		cobra.ShellCompDirective) {
		return f(cmd, nil, word)
	}) // the flag is there
}

func serverNames(c completable) []string  { return c.servers }
func profileNames(c completable) []string { return c.profiles }
func toolNames(c completable) []string    { return c.tools }

// completable reads the names from the config and from the catalogs of an earlier start. It starts
// nothing, and asks nobody.
func (a *app) completable(ctx context.Context, profile string) (c completable, err error) {
	a.distrusts = true
	s, err := a.load(ctx)
	if err != nil {
		return c, err
	}
	catalogs, err := knownCatalogs(s)
	if err != nil {
		return c, err
	}
	names := namespace.New(s.Profiles)
	names.Update(catalogs)
	c.servers, c.profiles = s.Upstream.IDs(), (&hub.Configured{Settings: s}).Profiles()
	surface, err := names.Surface(profile, hub.LocalActor().Client)
	if err != nil {
		return c, err
	}
	for _, l := range surface.Listed {
		c.tools = append(c.tools, l.Name)
	}
	return c, nil
}

// knownCatalogs returns what the toolsets offer, and what servers offered at an earlier start. It starts nothing.
func knownCatalogs(s *config.Settings) ([]tool.Catalog, error) {
	logger := slog.New(slog.DiscardHandler)
	var err error
	if s.Upstream.Catalogs, err = persist.OpenCatalogs(filepath.Join(s.StateDir, "catalogs")); err != nil {
		return nil, err
	}
	group, err := upstream.NewGroup(s.Upstream, logger)
	if err != nil {
		return nil, err
	}
	own, err := hub.NewBuiltins(s, command.NewRunner("", logger), logger)
	if err != nil {
		return nil, err
	}
	return append(own.Catalogs(), group.Catalogs()...), nil
}
