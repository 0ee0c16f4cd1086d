package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

const checkHelp = `Read the config file and report every fault in it at once, each with its place, its key
and what to do, and so for rule files and remembered answers. With --connect, also start every server and say which are ready.

No value of the config is ever printed.`

func (a *app) checkCommand() *cobra.Command {
	var connect bool
	cmd := &cobra.Command{
		Use: "check", Short: "Check the config file", Long: checkHelp, Args: cobra.NoArgs,
		Example: "  mcp-toolhub check --config mcp-toolhub.yaml --connect",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.loadToCheck(cmd.Context(), connect)
			if err != nil {
				return a.withFaultyGrants(err)
			}
			if !connect { // otherwise the hub that is started says it
				a.warn(s)
			}
			if err := checkParts(s); err != nil {
				return &exitError{exitConfig, err}
			}
			fmt.Fprintf(a.std.out, "%s: ok: %s, %s\n", s.Path, count(len(s.Upstream.Servers), "server"), count(max(1, len(s.Profiles)), "profile"))
			if !connect {
				return nil
			}
			return a.withHub(cmd.Context(), func(h *hub) error { return a.reportServers(h.ownHealth(), tableFlags{format: "table"}) })
		},
	}
	cmd.Flags().BoolVar(&connect, "connect", false, "start every server and report how it went")
	return cmd
}

// loadToCheck reads the config that is to be checked. Nothing of it runs, so it needs no trust; with connect it does.
func (a *app) loadToCheck(ctx context.Context, connect bool) (*config.Settings, error) {
	if connect {
		return a.load(ctx)
	}
	found, err := a.find()
	if err != nil {
		return nil, err
	}
	s, err := a.read(found[0])
	var untrusted *config.UntrustedError
	if !errors.As(err, &untrusted) {
		return s, err
	}
	if s, err = a.read(config.Found{Path: found[0].Path}); err == nil {
		s.Warnings = append(s.Warnings, untrusted.Warning())
	}
	return s, err
}

// warn prints the warnings of a config.
func (a *app) warn(s *config.Settings) {
	for _, w := range s.Warnings {
		fmt.Fprintf(a.std.err, "warning: %s\n", w)
	}
}

// withFaultyGrants is err with what is wrong with the remembered answers.
func (a *app) withFaultyGrants(err error) error {
	state, stateErr := config.StateDir(a.stateDir, a.std.getenv)
	if stateErr != nil {
		return err
	}
	_, grantsErr := policy.OpenGrants(policy.GrantOptions{File: filepath.Join(state, grantsFile)})
	return &exitError{exitConfig, errors.Join(err, grantsErr)}
}

// reportServers prints the state of each server and fails where one that should be ready is not.
func (a *app) reportServers(h downstream.Health, f tableFlags) error {
	if err := a.printServers(h, f); err != nil {
		return failed(err)
	}
	for _, s := range h.Servers {
		if s.State != tool.ServerReady && s.State != tool.ServerStopped {
			return &exitError{exitNotReady, fmt.Errorf("server %q is not ready: %s", s.Server, s.LastError)}
		}
	}
	return nil
}
