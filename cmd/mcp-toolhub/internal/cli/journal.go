package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

const journalHelp = `Print the journal as objects of Agent Tool 0.2.0, one JSON object a line, oldest file first.

DIR is the journal's directory; by default persist.journal.dir of the config, or journal/ in the
state directory. Hubs may be running.`

func journalCommand(a *app) *cobra.Command {
	cmd := leaf("journal [DIR]", "Print the journal as objects of Agent Tool, one a line", journalHelp,
		func(_ context.Context, args []string) error {
			if len(args) == 0 {
				from, err := a.kept()
				if err != nil {
					return err
				}
				args = []string{from.Journal.Dir}
			}
			out := bufio.NewWriter(a.std.out)
			err := persist.Read(args[0], func(object json.RawMessage) bool {
				_, err := out.Write(append(object, '\n'))
				return err == nil
			})
			return errors.Join(err, out.Flush())
		}, `mcp-toolhub journal | jq -c 'select(.object == "tool_result" and .is_error)'`)
	cmd.Args = cobra.MaximumNArgs(1)
	return cmd
}
