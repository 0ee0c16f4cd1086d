package cli

import (
	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

func schemaCommand(a *app) *cobra.Command {
	return group("schema", "Print JSON Schemas", "", &cobra.Command{
		Use: "config", Short: "Print the JSON Schema of the config file, for editors", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.std.out.Write(config.Schema())
			return err
		},
	})
}
