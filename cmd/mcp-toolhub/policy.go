package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

const policyTestHelp = `Run a table of calls through the policy and say which are not decided as wanted.

FILE is YAML or JSON with the keys calls, tools and policy:

  calls:
    - {call: mcp.git.push, args: {branch: main}, want: deny, rule: user/main}
  tools:                        # what the tools are, where no server is to be started
    mcp.git.push: {read_only: false}
  policy:                       # instead of the config's
    mode: default
    rules: [{id: main, match: "mcp.git.*", then: deny}]

Tools that the table does not describe are those of the config's servers, which are
started for the purpose. Exit code 0 where all calls are decided as wanted, 1 otherwise.`

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Test and explain permission", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var format, arguments string
	call := policy.Request{Actor: tool.Actor{Name: "local"}}
	cmd.PersistentFlags().StringVarP(&format, "output", "o", "table", "table or json")
	test := &cobra.Command{
		Use: "test FILE", Short: "Run a table of calls through the policy", Long: policyTestHelp, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.testPolicy(cmd.Context(), format, args[0]) },
	}
	explain := &cobra.Command{
		Use: "explain TOOL", Short: "Explain what happens to a call, with every rule that was looked at", Args: cobra.ExactArgs(1),
		Example: `  mcp-toolhub policy explain mcp.git.push --args '{"branch": "main"}' --door http --as alice`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if door := call.Actor.Door; !slices.Contains([]string{"stdio", "http", "cli"}, door) {
				return &exitError{exitUsage, fmt.Errorf("door %q is not known: use stdio, http or cli", door)}
			}
			if call.Actor.Door == "cli" && !cmd.Flags().Changed("as") {
				call.Actor.Name = ownTools{}.actor().Name
			}
			input, err := a.readArguments(arguments)
			if err != nil {
				return err
			}
			call.Input = input
			return a.explainPolicy(cmd.Context(), format, tool.Name(args[0]), call)
		},
	}
	explain.Flags().StringVar(&arguments, "args", "{}", "arguments as a JSON object; @FILE reads them from a file, @- from stdin")
	explain.Flags().StringVar(&call.Actor.Name, "as", "local", "the `caller`: the name of a token; at door cli your own by default")
	explain.Flags().StringVar(&call.Actor.Door, "door", "stdio", "how the caller comes in: stdio, http or cli, which is tools call")
	explain.Flags().StringVar(&call.Profile, "profile", namespace.DefaultProfile, "the `profile` that the caller uses")
	explain.ValidArgsFunction = a.complete(&call.Profile, toolNames)
	a.completeFlag(explain, "profile", profileNames)
	cmd.AddCommand(test, explain)
	return cmd
}

// known fills in what the hub knows of a call.
func (h *hub) known(ctx context.Context, name tool.Name, r *policy.Request) error {
	if name == tool.MetaCall {
		return fmt.Errorf("a call through %s is decided as one of the tool that it names: write that tool's name", name)
	}
	t := h.named(r.Profile, r.Actor.Client, string(name))
	if t == nil && name == tool.MetaSearch {
		t = h.searchTool(r.Profile, r.Actor.Client)
	}
	if t == nil {
		hint := "write a name that mcp-toolhub tools list prints"
		if surface, err := h.Surface(r.Profile, ownTools{}.actor()); err == nil {
			hint = toolMeant(string(name), surface, hint)
		}
		return fmt.Errorf("no server offers the tool %q: %s", string(name), hint)
	}
	if r.Input == nil {
		r.Input = json.RawMessage(`{}`)
	}
	full, err := h.gate.Load().Request(ctx, gate.Call{Invocation: r.Invocation, Tool: t, Input: r.Input, Meta: r.Meta, Actor: r.Actor, Profile: r.Profile})
	if err != nil {
		return err
	}
	full.Now = r.Now
	if r.CWD != "" {
		full.CWD = r.CWD
	}
	*r = full
	return nil
}

// named returns the tool that goes by the name in the profile, whether or not the policy shows it; nil where there is none.
func (h *hub) named(profile string, client tool.Client, name string) *tool.Tool {
	if t := h.present(tool.Name(name)); t != nil {
		return t
	}
	full, err := h.names.Load().Surface(profile, client)
	if err != nil {
		return nil
	}
	if l, ok := full.Resolve(name); ok {
		return l.Tool
	}
	return nil
}

// searchTool is the hub's tool_search of a profile, also where the policy leaves it out; nil where there is no such profile.
func (h *hub) searchTool(profile string, client tool.Client) *tool.Tool {
	full, err := h.names.Load().Surface(profile, client)
	if err != nil {
		return nil
	}
	if l, ok := h.loader.Surface(full, client).Resolve(string(tool.MetaSearch)); ok {
		return l.Tool
	}
	return nil
}

// warnOfCaller warns of a caller whom nobody can be: over HTTP callers are called as their tokens are.
func (a *app) warnOfCaller(s *config.Settings, caller tool.Actor) {
	known := []string{"local", ownTools{}.actor().Name}
	for _, t := range s.Downstream.Auth.Tokens {
		known = append(known, t.Name)
	}
	if !slices.Contains(known, caller.Name) {
		fmt.Fprintf(a.std.err, "warning: no token is called %q: %s\n", caller.Name,
			textfile.DidYouMean(caller.Name, known, "callers are the names in hub.auth.tokens, and local where there are none"))
	}
}

func (a *app) explainPolicy(ctx context.Context, format string, name tool.Name, r policy.Request) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	w := want{tool: string(name), profile: r.Profile}
	if name == tool.MetaCall || name == tool.MetaSearch {
		w.tool = "" // no server offers it
	}
	return a.withHubFor(ctx, w, func(h *hub) error {
		a.warnOfCaller(h.settings.Load(), r.Actor)
		if err := h.known(ctx, name, &r); err != nil {
			return failed(err)
		}
		for i := range r.Targets[:min(len(r.Targets), gate.MaxAims)] {
			r.Targets[i].Twins()
		}
		x := h.gate.Load().Engine().Explain(ctx, r)
		surface, err := h.Surface(r.Profile, r.Actor)
		if err != nil {
			return failed(err)
		}
		x.Deferred = surface.IsDeferred(r.Tool.Name)
		if format == "json" {
			return a.printJSON(x)
		}
		if err := x.WriteText(a.std.out); err != nil {
			return failed(err)
		}
		return nil
	})
}

func (a *app) testPolicy(ctx context.Context, format, file string) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return failed(fmt.Errorf("read table: %w", err))
	}
	table, err := policy.ParseTable(file, data)
	if err != nil {
		return &exitError{exitConfig, err}
	}
	if table.Complete() {
		return a.runTable(format, table, nil, nil)
	}
	return a.withHubFor(ctx, want{}, func(h *hub) error {
		return a.runTable(format, table, h.gate.Load().Engine(), func(name tool.Name, r *policy.Request) error { return h.known(ctx, name, r) })
	})
}

func (a *app) runTable(format string, table *policy.Table, e *policy.Engine, lookup policy.Lookup) error {
	results, err := table.Run(e, lookup)
	if err != nil {
		return failed(err)
	}
	failures := 0
	if format == "json" {
		err = policy.WriteResultsJSON(a.std.out, results)
		for _, r := range results {
			if !r.Passed {
				failures++
			}
		}
	} else {
		failures, err = policy.WriteResults(a.std.out, results)
	}
	switch {
	case err != nil:
		return failed(err)
	case failures > 0:
		return failed(fmt.Errorf("not decided as wanted: %s", count(failures, "call")))
	}
	return nil
}
