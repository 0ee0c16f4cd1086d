package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
)

// manCommand writes what packages install beside the program: a manual page for each command, and
// the completions of shells. cobra's own manual pages take a help text for Markdown, which runs its
// lists into paragraphs.
func manCommand(a *app) *cobra.Command {
	cmd := leaf("man DIR", "Write manual pages and completions of shells for packages", "",
		func(cmd *cobra.Command, args []string) error { return writePages(cmd.Root(), args[0]) })
	cmd.Args, cmd.Hidden = cobra.ExactArgs(1), true
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
		for _, below := range visible(cmd) {
			if err := walk(below); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(root); err != nil {
		return err
	}
	for file, write := range map[string]func(string) error{
		"bash": func(file string) error { return root.GenBashCompletionFileV2(file, true) },
		"zsh":  root.GenZshCompletionFile,
		"fish": func(file string) error { return root.GenFishCompletionFile(file, true) },
	} {
		if err := write(filepath.Join(dir, root.Name()+"."+file)); err != nil {
			return err
		}
	}
	return nil
}

// visible are the commands below cmd that help lists.
func visible(cmd *cobra.Command) (below []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion" {
			below = append(below, c)
		}
	}
	return below
}

// manPage is the page of one command, for man(1).
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q\n.nh\n.ad l\n", strings.ToUpper(name), "mcp-toolhub "+hub.Version())
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n.SH DESCRIPTION\n", roff(name), roff(cmd.Short),
		roff(cmd.UseLine()))
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	b.WriteString(manText(about))
	manFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	manFlags(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n.nf\n" + roff(strings.Trim(cmd.Example, "\n")) + "\n.fi\n")
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-"))
	}
	for _, below := range visible(cmd) {
		also = append(also, name+"-"+below.Name())
	}
	if len(also) > 0 {
		b.WriteString(".SH SEE ALSO\n")
		for _, page := range also {
			b.WriteString(".BR " + roff(page) + " (1)\n")
		}
	}
	return b.String()
}

// manText is a help text: paragraphs, of which those with indented lines stay as they are.
func manText(text string) string {
	var b strings.Builder
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if strings.Contains(paragraph, "\n  ") || strings.HasPrefix(paragraph, "  ") {
			b.WriteString(".PP\n.nf\n" + roff(paragraph) + "\n.fi\n")
		} else {
			b.WriteString(".PP\n" + roff(paragraph) + "\n")
		}
	}
	return b.String()
}

func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		flag := "--" + f.Name
		if f.Shorthand != "" {
			flag = "-" + f.Shorthand + ", " + flag
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(flag+" "+value)), roff(usage))
	})
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
