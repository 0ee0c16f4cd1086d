package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
)

// manCommand writes what packages install beside the program: a manual page for each command.
func manCommand(a *app) *cobra.Command {
	cmd := leaf("man DIR", "Write manual pages for packages", "",
		func(cmd *cobra.Command, args []string) error { return writePages(cmd.Root(), args[0]) })
	cmd.Args = cobra.ExactArgs(1)
	return cmd
}

func writePages(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root.InitDefaultHelpFlag()
	var walk func(cmd *cobra.Command) error
	walk = func(cmd *cobra.Command) error {
		name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(manPage(cmd)), 0o644); err != nil {
			return err
		}
		for _, below := range cmd.Commands() {
			if !slices.Contains([]string{"help", "completion", "man"}, below.Name()) {
				if err := walk(below); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return walk(root)
}

// manPage is the page of one command, for man(1): its help as a terminal shows it.
func manPage(cmd *cobra.Command) string {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	return fmt.Sprintf(".TH %q 1 \"\" %q\n.SH NAME\n%s \\- %s\n.SH DESCRIPTION\n.nf\n%s\n.fi\n", strings.ToUpper(name),
		"mcp-toolhub "+hub.Version(), roff(name), roff(cmd.Short),
		roff(strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short+".")+"\n\n"+cmd.UsageString())))
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
