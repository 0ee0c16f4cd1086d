// Package cli is the command line of mcp-toolhub: one file per command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/internal/secret"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// exitCode is an exit code of the program. The first help lists all of them.
type exitCode int

const (
	exitOK          exitCode = 0
	exitFailure     exitCode = 1   // something failed while the command ran
	exitUsage       exitCode = 2   // the command line is wrong
	exitConfig      exitCode = 3   // the config file is missing or has faults
	exitNotReady    exitCode = 4   // a server is not ready
	exitToolError   exitCode = 5   // the tool answered with an error
	exitInterrupted exitCode = 130 // stopped by a second signal, or while nothing was being served
)

// of returns err with the code, unless it has one; nil where err is nil.
func (c exitCode) of(err error) error {
	if err == nil || errors.As(err, new(*exitError)) {
		return err
	}
	return &exitError{c, err}
}

// errorf returns an error with the code.
func (c exitCode) errorf(format string, args ...any) error {
	return &exitError{c, fmt.Errorf(format, args...)}
}

// Main runs the program's command line, and ends the process with one of the exit codes above.
func Main() {
	run.Main()
	os.Exit(int(runLine(os.Args[1:], stdStreams())))
}

// streams holds what commands use of the process.
type streams struct {
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) (string, bool)
	adjust func(*config.Settings) // sees every config that was read, before it is used; nil: none
}

func stdStreams() streams {
	return streams{in: os.Stdin, out: os.Stdout, err: os.Stderr, getenv: os.LookupEnv}
}

// runLine runs one command line and returns the exit code. No other place prints errors.
func runLine(args []string, std streams) exitCode {
	ctx, stop := interruptible()
	defer stop()
	app := &app{std: std}
	root := app.root()
	root.SetArgs(args)
	root.SetIn(std.in)
	root.SetOut(std.out)
	root.SetErr(std.err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if !errors.As(err, new(*exitError)) { // cobra's own errors are about the command line
		err = exitUsage.errorf("%w; see mcp-toolhub --help", err)
	}
	var coded *exitError
	errors.As(err, &coded)
	var faults textfile.Faults
	switch {
	case errors.As(err, &faults): // lines of their own, each with its place
		fmt.Fprintln(std.err, strings.TrimSpace(err.Error()))
	case coded.err != nil:
		fmt.Fprintln(std.err, "mcp-toolhub:", strings.TrimSpace(err.Error()))
	}
	return coded.code
}

// exitError ends the program with a code; err is printed unless it is nil.
type exitError struct {
	code exitCode
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// interruptible returns a context that ends at the first SIGINT or SIGTERM, or when the terminal closes, with the cause
// errSignal. At the second one the context of untilKilled ends.
func interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if isTerminal(os.Stderr) {
		signal.Notify(signals, syscall.SIGHUP) // the terminal is closed; without one it asks for a reload, see hangups
	}
	kill, killNow := context.WithCancelCause(context.Background())
	done := make(chan struct{})
	go func() {
		var first os.Signal
		select {
		case first = <-signals:
			cancel(errSignal)
		case <-done:
			return
		}
		select {
		case second := <-signals:
			signal.Stop(signals) // a third signal ends the process at once
			killNow(fmt.Errorf("killed by a second signal (%s, after %s): calls that were open are cut off", second,
				first))
		case <-done:
		}
	}()
	return context.WithValue(ctx, killKey{}, kill), func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
		killNow(nil)
	}
}

var errSignal = errors.New("interrupted")

// killKey carries the context that ends at the second signal.
type killKey struct{}

// untilKilled returns a context for the time after the first signal: it ends at the second.
func untilKilled(ctx context.Context) context.Context {
	if kill, ok := ctx.Value(killKey{}).(context.Context); ok {
		return kill
	}
	return context.WithoutCancel(ctx)
}

// app holds what all commands share: the streams, the environment, and the flags that more than one command has.
type app struct {
	std        streams
	configPath string
	stateDir   string
	rules      string
	logLevel   string
	logFormat  string
	format     string // -o of the commands that have it: table or json

	terminalOnce sync.Once
	shared       *terminal // see terminal

	known secret.Known // the secrets of the config, as it was read last and before

	strict    bool // a server's entry that refers to what is missing is a fault of the config
	distrusts bool // the person at the terminal does not trust the config in the current directory
}

const rootHelp = `One MCP endpoint in front of many MCP servers. Begin with: mcp-toolhub setup

Exit codes: 1 it failed, 2 the command line is wrong, 3 the config is,
4 a server is not ready, 5 the tool has failed, 130 interrupted.`

// rootUsage is the first help, which fits on one screen.
const rootUsage = `Usage: mcp-toolhub COMMAND
{{range $g := .Groups}}
{{.Title}}{{range $.Commands}}{{if eq .GroupID $g.ID}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}
{{end}}
More: version, completion, man, hooks, journal, events, evidence, eval, schema, demo-server
Flags of all commands: -c FILE (the config), --state-dir, --rules, --log-level, --log-format, --help
`

// groups returns the commands below the root as its help shows them: one file each. It only names
// those without a title.
func groups() []struct {
	title    string
	commands []func(*app) *cobra.Command
} {
	type of = []func(*app) *cobra.Command
	return []struct {
		title    string
		commands of
	}{
		{"Begin:", of{setupCommand, connectCommand, undoCommand, doctorCommand, uninstallCommand}},
		{"The hub:", of{startCommand, stopCommand, restartCommand, statusCommand, logsCommand, uiCommand}},
		{"Servers:", of{serversCommand, addCommand, removeCommand, enableCommand, disableCommand, importCommand,
			loginCommand, logoutCommand, secretsCommand}},
		{"Tools and calls:", of{toolsCommand, callsCommand, approvalsCommand, policyCommand}},
		{"For clients and teams:", of{serveCommand, serviceCommand, checkCommand, allowConfigCommand}},
		{"", of{versionCommand, hooksCommand, journalCommand, evidenceCommand, eventsCommand, evalCommand, schemaCommand,
			demoServerCommand, manCommand}},
	}
}

// runner is a function that a command runs. It takes no word, one word, any words, or what cobra gives.
type runner interface {
	func(context.Context) error | func(context.Context, string) error | func(context.Context, []string) error |
		func(*cobra.Command, []string) error
}

// leaf returns a command that runs run. An error without a code is a failure.
func leaf[F runner](use, short, long string, run F, examples ...string) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long}
	if len(examples) > 0 {
		cmd.Example = "  " + strings.Join(examples, "\n  ")
	}
	var do func(*cobra.Command, []string) error
	switch run := any(run).(type) {
	case func(context.Context) error:
		cmd.Args, do = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return run(cmd.Context()) }
	case func(context.Context, string) error:
		cmd.Args = cobra.ExactArgs(1)
		do = func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args[0]) }
	case func(context.Context, []string) error:
		do = func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args) }
	case func(*cobra.Command, []string) error:
		do = run
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return exitFailure.of(do(cmd, args)) }
	return cmd
}

// group returns a command that only has others below it. Alone it does what the first of those does
// that lists, or says how things are.
func group(use, short, long string, below ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	if i := slices.IndexFunc(below, func(c *cobra.Command) bool {
		return slices.Contains([]string{"list", "status", "report", "tail"}, c.Use)
	}); i >= 0 {
		cmd.RunE = func(parent *cobra.Command, args []string) error {
			below[i].SetContext(parent.Context())
			return below[i].RunE(below[i], args)
		}
	}
	cmd.AddCommand(below...)
	return cmd
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "mcp-toolhub",
		Short:         "One MCP endpoint in front of many MCP servers",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionText(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := run.Conceal(); err != nil {
				a.std.warn("%v", err)
			}
			if f := cmd.Flags().Lookup("output"); f != nil && f.Shorthand == "o" &&
				!slices.Contains(formatsOf(f), f.Value.String()) {
				return exitUsage.errorf("output format %q is not known: use %s", f.Value,
					strings.Join(formatsOf(f), " or "))
			}
			return nil
		},
		Args:              unknownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetUsageTemplate("{{if .HasParent}}" + root.UsageTemplate() + "{{else}}" + rootUsage + "{{end}}")
	root.SetVersionTemplate("{{.Version}}\n")
	flags := root.PersistentFlags()
	const configUsage = "config `file` (or $MCP_TOOLHUB_CONFIG, ./mcp-toolhub.yaml, your own)"
	flags.FuncP("config", "c", configUsage, func(path string) error {
		if a.configPath != "" && path != a.configPath {
			return fmt.Errorf("it is also given as %q: give it once", a.configPath)
		}
		a.configPath = path
		return nil
	})
	flags.StringVar(&a.stateDir, "state-dir", "",
		"`directory` for all that the hub writes (default: your state directory)")
	flags.StringVar(&a.rules, "rules", "", "`file` of permission rules, besides those of the config")
	flags.StringVar(&a.logLevel, "log-level", "", "debug, info, warn or error (default: the config's, or info)")
	flags.StringVar(&a.logFormat, "log-format", "",
		"auto, text or json (default: the config's, or auto: text on a terminal)")
	cobra.EnableCommandSorting = false // they stand as groups has them
	for _, g := range groups() {
		if g.title != "" {
			root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		}
		for _, command := range g.commands {
			cmd := command(a)
			cmd.GroupID, cmd.Hidden = g.title, g.title == ""
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommandGroupID(groups()[0].title)
	return root
}

// versionText says which program this is.
func versionText() string {
	return fmt.Sprintf("mcp-toolhub %s (%s, %s/%s)", hub.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func versionCommand(a *app) *cobra.Command {
	return leaf("version", "Print the version", "", func(context.Context) error {
		return a.std.print([]byte(versionText()))
	})
}
