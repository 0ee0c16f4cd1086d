package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

func schemaCommand(a *app) *cobra.Command {
	return group("schema", "Print JSON Schemas", "",
		leaf("config", "Print the JSON Schema of the config file, for editors", "", func(context.Context) error {
			_, err := a.std.out.Write(config.Schema())
			return err
		}))
}
