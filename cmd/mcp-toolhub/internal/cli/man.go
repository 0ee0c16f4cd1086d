package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
)

// manCommand prints what packages install beside the program: a manual page with all commands.
func manCommand(a *app) *cobra.Command {
	return leaf("man", "Print the manual page", "", func(cmd *cobra.Command, _ []string) error {
		return a.std.print([]byte(manPage(cmd.Root())))
	})
}

// manPage is the page of the program, for man(1): the help of each command as a terminal shows it.
func manPage(root *cobra.Command) string {
	root.InitDefaultHelpFlag()
	var page strings.Builder
	fmt.Fprintf(&page, ".TH MCP-TOOLHUB 1 \"\" \"mcp-toolhub %s\"\n.SH NAME\nmcp\\-toolhub \\- %s\n", hub.Version(),
		roff(root.Short))
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		fmt.Fprintf(&page, ".SH %s\n.nf\n%s\n.fi\n", roff(cmd.CommandPath()),
			roff(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short+".")+"\n\n"+cmd.UsageString())))
		for _, below := range cmd.Commands() {
			if !slices.Contains([]string{"help", "completion", "man"}, below.Name()) {
				walk(below)
			}
		}
	}
	walk(root)
	return page.String()
}

// roff escapes what means something to troff: backslashes, hyphens, and points and quotes at the beginning of a line.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
