package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// enableCommands adds code.run_command to the tools.
func (t *Toolset) enableCommands(cfg RunConfig) error {
	t.mostCommandTime = cmp.Or(cfg.Bounds.Timeout, mostCommandTime)
	cfg.Bounds.Root = t.root
	bounds, err := command.NewBounds(cfg.Bounds)
	if err != nil {
		return fmt.Errorf("code: run_command: %w", err)
	}
	if cfg.Runner == nil {
		return errors.New("code: run_command: there is nothing that runs commands")
	}
	t.bounds, t.runner = bounds, cfg.Runner
	// In the schema, so that a call for more is refused before anybody is asked.
	declaration, err := declared(runCommand, `"usual_ms"`, fmt.Sprint(bounds.Config().Timeout.Milliseconds()),
		`"most_ms"`, fmt.Sprint(t.mostCommandTime.Milliseconds()))
	if err != nil {
		return err
	}
	declaration.Tags = []string{"dangerous", "code"}
	t.catalog.Tools = append(t.catalog.Tools, declaration)
	t.catalog.Title, t.catalog.Tags = "Project files and commands", []string{"code", "filesystem"}
	t.catalog.Instructions += " Commands run there, without a shell."
	return nil
}

// RunsCommands reports whether code.run_command is one of the tools.
func (t *Toolset) RunsCommands() bool { return t.runner != nil }

// Dir is the directory in which a command runs whose argument cwd is given, with every link
// followed; "" for none. Call it only where RunsCommands.
func (t *Toolset) Dir(given string) (string, error) {
	at, err := t.locate(cmp.Or(given, "."))
	if err != nil {
		return "", errors.New(messageOf(err))
	}
	return t.bounds.Dir(at)
}

// Find is the file that a command beginning with name starts in dir, with every link followed. Call it only where
// RunsCommands.
func (t *Toolset) Find(name, dir string) (string, error) { return t.bounds.Find(name, dir) }

// Env are the names of the variables that a command gets. Call it only where RunsCommands.
func (t *Toolset) Env() []string { return t.bounds.Names() }

// stdoutLimit bounds the bytes of an output in an answer.
const stdoutLimit = 64 << 10

// ran is the structured content of code.run_command: what is known of a command that has run.
type ran struct {
	Program         string         `json:"program"`
	CWD             string         `json:"cwd"`
	Ending          command.Ending `json:"ending"`
	ExitCode        *int           `json:"exit_code,omitempty"`
	Signal          string         `json:"signal,omitempty"`
	DurationMS      int64          `json:"duration_ms"`
	Stdout          string         `json:"stdout"`
	Stderr          string         `json:"stderr"`
	StdoutBytes     int64          `json:"stdout_bytes"`
	StderrBytes     int64          `json:"stderr_bytes"`
	StdoutTruncated bool           `json:"stdout_truncated"`
	StderrTruncated bool           `json:"stderr_truncated"`
}

// runCommand runs argv. A command that fails is an answer with isError; one that was ended is a
// failure that carries what it had written by then.
func (t *Toolset) runCommand(ctx context.Context, e *tool.Execution) (answer, error) {
	limits := t.bounds.Config()
	args := struct {
		Argv    []string
		CWD     string
		Timeout integer `json:"timeout_ms"`
	}{CWD: ".", Timeout: integer(limits.Timeout.Milliseconds())}
	if err := readArguments(e, &args); err != nil {
		return answer{}, err
	}
	argv, cwd, timeout := args.Argv, args.CWD, time.Duration(args.Timeout)*time.Millisecond
	if argv[0] == "" || strings.ContainsRune(strings.Join(argv, ""), 0) {
		return answer{}, invalid("",
			`argument "argv" names no program, or holds a NUL character, which no argument of a program can: send the `+
				"program first, then its arguments, one string each")
	}
	found, err := t.findCommand(argv[0], cwd, e.Command)
	if err != nil {
		return answer{}, err
	}
	if e.Command != nil && *e.Command != found {
		return answer{}, failure(tool.ClassPermissionDenied, command.CodeChanged,
			"%q is another program, or its directory "+
				"another one, than when the call was permitted: nothing ran; call again", hidden.Cut(argv[0], 200))
	}
	env, secrets := t.bounds.Environment()
	outcome, err := t.runner.Run(ctx, command.Spec{
		Program: found.Program, Argv: argv, Dir: found.Dir, Env: env, Timeout: timeout,
		StdoutLimit: command.MostKept, StderrLimit: command.MostKept,
		Progress: command.Report(e.Progress),
	})
	if err != nil {
		return answer{}, command.NotRun(ctx, err, failure(tool.ClassExecutionFailed, command.CodeNotExecutable,
			"%q could not be started: name a program of this machine, or a script that begins with #! and an interpreter "+
				"that is installed", hidden.Cut(argv[0], 200)))
	}
	artifacts := outcome.Shorten(filepath.Base(argv[0]), stdoutLimit, command.StderrLimit, secrets)
	a, err := t.answerOf(ctx, found, &outcome, secrets)
	a.artifacts, a.mapping = artifacts, outcome.Mapping(found.Dir)
	return a, err
}

// findCommand finds the program and the directory of a command. A sensitive directory is one that it was permitted for.
func (t *Toolset) findCommand(name, cwd string, permitted *tool.Command) (tool.Command, error) {
	at, err := t.locate(cwd)
	if err != nil {
		return tool.Command{}, err
	}
	dir, err := t.bounds.Dir(at)
	if err != nil {
		return tool.Command{}, command.Refusal(tool.ClassInvalidArguments, err.Error(), err)
	}
	switch {
	case t.never.Match(dir):
		return tool.Command{}, openFailure(cwd, errNever)
	case permitted == nil && t.sensitive.Match(dir):
		return tool.Command{}, openFailure(cwd, errSensitive)
	}
	program, err := t.bounds.Find(name, dir)
	if err != nil {
		return tool.Command{}, command.Refusal(tool.ClassInvalidArguments, err.Error(), err)
	}
	return tool.Command{Program: program, Dir: dir}, nil
}

// messageOf returns the message of a failure for people.
func messageOf(err error) string {
	var f *tool.Failure
	if errors.As(err, &f) {
		return f.Message
	}
	return err.Error()
}

func (t *Toolset) answerOf(ctx context.Context, found tool.Command, o *command.Outcome, secrets []string) (answer,
	error) {
	facts := ran{
		Program: found.Program, CWD: t.show(found.Dir), Ending: o.Ending, Signal: o.Signal,
		DurationMS: o.Took.Milliseconds(),
		Stdout:     o.Stdout.Text(secrets), StdoutBytes: o.Stdout.Bytes, StdoutTruncated: o.Stdout.Truncated(),
		Stderr: o.Stderr.Text(secrets), StderrBytes: o.Stderr.Bytes, StderrTruncated: o.Stderr.Truncated(),
	}
	switch o.Ending {
	case command.Exited:
		facts.ExitCode = &o.ExitCode
	case command.Signaled:
	default:
		f := o.Failure(", in the hub's config")
		f.Cause = ctx.Err()
		if detail, err := rawjson.Encode(facts); err == nil {
			f.Detail = string(detail)
		}
		return answer{}, f
	}
	return answer{text: facts.text(), structured: facts, isError: o.Ending != command.Exited || o.ExitCode != 0}, nil
}

// text is for clients that do not show structured content.
func (r *ran) text() string {
	var b strings.Builder
	how := "ended by a signal: " + r.Signal
	if r.ExitCode != nil {
		how = fmt.Sprintf("exit code %d", *r.ExitCode)
	}
	fmt.Fprintf(&b, "%s after %d ms\n", how, r.DurationMS)
	for _, out := range []struct{ name, text string }{{"stdout", r.Stdout}, {"stderr", r.Stderr}} {
		if out.text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s", out.name, out.text)
			if !strings.HasSuffix(out.text, "\n") {
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}
