package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const searchHelp = `Search the tools as a model would with ` + string(deferred.SearchName) + `,
whether they are deferred or not.

QUERY is words for what you want to do, select:NAME,NAME for tools of these names, or regex:PATTERN (RE2).
Exit code 0 where something was found, 1 otherwise.`

// searchCmd runs the command "tools search".
type searchCmd struct {
	*toolsCmd
	servers []string
	limit   int
}

func searchCommand(t *toolsCmd) *cobra.Command {
	c := &searchCmd{toolsCmd: t}
	cmd := leaf("search QUERY", "Search the tools as a model would", searchHelp, c.run,
		"mcp-toolhub tools search add two numbers")
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.Flags().StringSliceVar(&c.servers, "server", nil, "only tools of this `server`; may be given more than once")
	c.completeFlag(cmd, "server", serverNames)
	cmd.Flags().IntVar(&c.limit, "limit", 10, "how many tools at most, 1 to 50")
	return cmd
}

func (c *searchCmd) run(ctx context.Context, words []string) error {
	return c.with(ctx, "", func(t toolbox) error { return c.search(ctx, t, strings.Join(words, " ")) })
}

func (c *searchCmd) search(ctx context.Context, t toolbox, query string) error {
	question := map[string]any{"query": query, "limit": c.limit}
	if len(c.servers) > 0 {
		question["servers"] = c.servers
	}
	arguments, _ := json.Marshal(question) // texts and a number
	result, err := t.Call(ctx, string(deferred.SearchName), arguments, func(tool.Progress) {})
	var rpc *tool.RPCError
	switch {
	case errors.As(err, &rpc):
		return fmt.Errorf("search: %s (JSON-RPC error %d): is that hub as new as this command?",
			printable(rpc.Message), rpc.Code)
	case err != nil:
		return fmt.Errorf("search: %w", err)
	}
	answer, err := hub.ReadSearch(result)
	if refused := hub.RefusedSearch(""); errors.As(err, &refused) {
		return exitToolError.of(refused)
	}
	if err != nil {
		return err
	}
	found := error(nil)
	if len(answer.Matches) == 0 {
		found = exitFailure.of(errors.New("nothing was found: " + printable(answer.Next.Hint)))
	}
	if c.json() {
		var indented bytes.Buffer
		if err := json.Indent(&indented, answer.Structured, "", "  "); err != nil {
			return err
		}
		return errors.Join(c.std.print(indented.Bytes()), found)
	}
	table := newTable("NAME", "SCORE", "MATCHED", "DESCRIPTION")
	for _, m := range answer.Matches {
		table.add(printable(m.Name), fmt.Sprintf("%.2f", m.Score), printable(strings.Join(m.Why, ",")),
			hidden.Summary(m.Summary, 80))
	}
	if err := c.std.printTable(table); err != nil {
		return err
	}
	notes := answer.Unknown()
	if own, ok := t.(hub.OwnTools); ok {
		surface, err := own.Surface()
		if err != nil {
			return err
		}
		c.printMissing(own.Hub, surface)
	} else {
		notes = append(notes, answer.Away()...)
	}
	for _, n := range append(notes, answer.Notes...) {
		c.std.note("%s", printable(n))
	}
	return found
}
