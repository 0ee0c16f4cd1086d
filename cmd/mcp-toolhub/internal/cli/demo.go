package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/demo"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
)

const demoHelp = `A small honest MCP server on stdin and stdout, to try a client or the hub with: tools
with structured output, progress, cancellation, an error and an elicitation; a resource,
a template, a prompt, completion and logging.`

func demoServerCommand(a *app) *cobra.Command {
	cmd := leaf("demo-server", "Run a small MCP server to try things with", demoHelp, func(ctx context.Context) error {
		return demo.Run(ctx, io.NopCloser(a.std.in), nopWriteCloser{a.std.out}, hub.Version())
	})
	// the guard of a hub finds its children by their environment
	cmd.PersistentPreRunE = func(*cobra.Command, []string) error { return nil }
	return cmd
}

type nopWriteCloser struct{ io.Writer }

func (nopWriteCloser) Close() error { return nil }
