package cli

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
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

// policyCmd runs the commands below "policy".
type policyCmd struct {
	*app
	since string // of the commands that look back
}

func policyCommand(a *app) *cobra.Command {
	c := policyCmd{app: a}
	cmd := group("policy", "Test, explain, replay and suggest permission", "",
		leaf("test FILE", "Run a table of calls through the policy", policyTestHelp, c.test), c.explainCommand(),
		c.replayCommand(), c.suggestCommand(), c.reportCommand())
	a.outputFlag(cmd.PersistentFlags())
	return cmd
}

func (c policyCmd) explainCommand() *cobra.Command {
	var arguments string
	call := control.Call{Actor: tool.Actor{Name: "local"}}
	run := func(cmd *cobra.Command, args []string) (err error) {
		if door := call.Actor.Door; !slices.Contains([]string{"stdio", "http", "cli", console.Door}, door) {
			return exitUsage.errorf("door %q is not known: use stdio, http, cli or ui", door)
		}
		if call.Actor.Door == "cli" && !cmd.Flags().Changed("as") {
			call.Actor.Name = hub.LocalActor().Name
		}
		if call.Input, err = c.readArguments(arguments); err != nil {
			return err
		}
		call.Tool, call.JSON = tool.Name(args[0]), c.json()
		return c.explain(cmd.Context(), call)
	}
	cmd := leaf("explain TOOL", "Explain what happens to a call, with every rule that was looked at", "", run,
		`mcp-toolhub policy explain mcp.git.push --args '{"branch": "main"}' --door http --as alice`)
	cmd.Args = cobra.ExactArgs(1)
	cmd.Flags().StringVar(&arguments, "args", "{}",
		"arguments as a JSON object; @FILE reads them from a file, @- from stdin")
	cmd.Flags().StringVar(&call.Actor.Name, "as", "local",
		"the `caller`: the name of a token; at door cli your own by default")
	cmd.Flags().StringVar(&call.Actor.Door, "door", "stdio",
		"how the caller comes in: stdio, http, cli, which is tools call, or ui, which is the page")
	cmd.Flags().StringVar(&call.Actor.Client.Name, "client", "", "what the caller's `client` calls itself")
	cmd.Flags().StringVar(&call.Profile, "profile", namespace.DefaultProfile, "the `profile` that the caller uses")
	cmd.ValidArgsFunction = c.complete(&call.Profile, toolNames)
	c.completeFlag(cmd, "profile", profileNames)
	return cmd
}

// warnOfCaller warns of a caller whom nobody can be: over HTTP callers are called as their tokens are.
func (c policyCmd) warnOfCaller(s *config.Settings, caller tool.Actor) {
	known := []string{"local", hub.LocalActor().Name}
	for _, t := range s.Downstream.Auth.Tokens {
		known = append(known, t.Name)
	}
	if !slices.Contains(known, caller.Name) {
		c.std.warn("no token is called %q: %s", caller.Name,
			textfile.DidYouMean(caller.Name, known,
				"callers are the names in hub.auth.tokens, and local where there are none"))
	}
}

// explain asks the hub that runs, otherwise one of its own.
func (c policyCmd) explain(ctx context.Context, call control.Call) error {
	print := func(s *config.Settings, explain func(context.Context, control.Call) (string, error)) error {
		c.warnOfCaller(s, call.Actor)
		text, err := explain(ctx, call)
		if err != nil {
			return err
		}
		return c.std.print([]byte(text))
	}
	if hubs, _, err := c.running(ctx); err == nil && len(hubs) > 0 && c.rules == "" {
		s, err := c.load(ctx)
		if err != nil {
			return err
		}
		return print(s, hubs[0].Decision)
	}
	w := hub.Want{Tool: string(call.Tool), Profile: call.Profile}
	if slices.Contains(hub.ToolNames(), w.Tool) {
		w.Tool = "" // no server offers it
	}
	return c.withHub(ctx, w, func(h *hub.Hub) error { return print(h.Settings(), hub.Model{Hub: h}.Decision) })
}

func (c policyCmd) test(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read table: %w", err)
	}
	table, err := policy.ParseTable(file, data)
	if err != nil {
		return exitConfig.of(err)
	}
	if table.Complete() {
		return c.runTable(table, nil, nil)
	}
	return c.withHub(ctx, hub.Want{}, func(h *hub.Hub) error {
		return c.runTable(table, h.Surfaces.Now().Gate.Engine,
			func(name tool.Name, r *policy.Request) error { return hub.Known(ctx, h, name, r) })
	})
}

func (c policyCmd) runTable(table *policy.Table, e *policy.Engine, lookup policy.Lookup) error {
	results, err := table.Run(e, lookup)
	if err != nil {
		return err
	}
	if c.json() {
		err = policy.WriteResultsJSON(c.std.out, results)
	} else {
		_, err = policy.WriteResults(c.std.out, results)
	}
	if err != nil {
		return err
	}
	results = slices.DeleteFunc(results, func(r policy.TestResult) bool { return r.Passed })
	if len(results) > 0 {
		return fmt.Errorf("not decided as wanted: %s", textfile.Count(len(results), "call"))
	}
	return nil
}
