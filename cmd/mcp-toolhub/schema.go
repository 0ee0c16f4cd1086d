package main

import (
	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
)

func (a *app) schemaCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "schema", Short: "Print JSON Schemas", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "config", Short: "Print the JSON Schema of the config file, for editors", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if _, err := a.std.out.Write(config.Schema()); err != nil {
				return failed(err)
			}
			return nil
		},
	})
	return cmd
}
