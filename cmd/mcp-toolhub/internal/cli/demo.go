package cli

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/demo"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
)

const demoHelp = `A small honest MCP server on stdin and stdout, to try a client or the hub with: tools
with structured output, progress, cancellation, an error and an elicitation; a resource,
a template, a prompt, completion and logging.`

func demoServerCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "demo-server", Short: "Run a small MCP server to try things with", Long: demoHelp, Args: cobra.NoArgs,
		// the guard of a hub finds its children by their environment
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Run(cmd.Context(), io.NopCloser(a.std.in), nopWriteCloser{a.std.out}, hub.Version())
		},
	}
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }
