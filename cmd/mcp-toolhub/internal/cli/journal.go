package cli

import (
	"bufio"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/persist"
)

const journalHelp = `Print the journal as objects of Agent Tool 0.2.0, one JSON object a line, oldest file first.

The files of the journal hold few lines a call. This command prints what follows from
them: invocations, results, permission decisions, progress, events. DIR is the journal's
directory; by default it is journal/ in the state directory, or what persist.journal.dir of
the config names. Hubs may be running.`

func journalCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "journal [DIR]", Short: "Print the journal as objects of Agent Tool, one a line", Long: journalHelp,
		Args:    cobra.MaximumNArgs(1),
		Example: "  mcp-toolhub journal | jq -c 'select(.object == \"tool_result\" and .is_error)'",
		RunE: func(_ *cobra.Command, args []string) error {
			dir := ""
			if len(args) > 0 {
				dir = args[0]
			} else {
				from, err := a.kept()
				if err != nil {
					return err
				}
				dir = from.Journal.Dir
			}
			out := bufio.NewWriter(a.std.out)
			err := persist.Read(dir, func(object json.RawMessage) bool {
				_, err := out.Write(append(object, '\n'))
				return err == nil
			})
			return errors.Join(err, out.Flush())
		},
	}
}
