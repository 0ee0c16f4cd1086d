package declarative

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// shellProgram runs texts of command_type shell.
const shellProgram = "/bin/sh"

// run runs the command of d. reply gets the result that it printed; what is too long for that is an artifact.
func (t *Toolset) run(ctx context.Context, d *definition, e *tool.Execution, reply *tool.Reply) error {
	argv, variables, err := d.expand(e.Arguments)
	if err != nil {
		return &tool.Failure{Class: tool.ClassInvalidArguments, Message: err.Error()}
	}
	spec, err := t.spec(d, argv)
	if err != nil {
		return err
	}
	var secrets []string
	spec.Env, secrets = t.bounds.Environment(d.env...)
	spec.Env = append(spec.Env, variables...) // of two of one name the last one counts
	spec.Stdin = append(append([]byte{}, e.Arguments...), '\n')
	spec.Progress = command.Report(e.Progress)
	outcome, err := t.runner.Run(ctx, spec)
	if err != nil {
		return command.NotRun(ctx, err, &tool.Failure{Class: tool.ClassSetupRequired, Code: command.CodeNotExecutable,
			Message: fmt.Sprintf("the program of %s could not be started: tell the person, who has declared it in %s",
				d.tool.Name, d.path)})
	}
	mapping := outcome.Mapping(spec.Dir)
	mapping.Source, mapping.ToolName = Name, e.Tool.Native
	reply.Mapping = mapping
	reply.Artifacts = outcome.Shorten(d.name, cmp.Or(d.stdout, defaultStdout), cmp.Or(d.stderr, command.StderrLimit),
		secrets)
	if text := outcome.Stderr.Text(secrets); text != "" {
		t.logger.Debug("a declared tool wrote to its standard error", "tool", d.tool.Name, "stderr",
			hidden.Cut(text, 4<<10))
	}
	switch outcome.Ending {
	case command.Exited, command.Signaled:
		t.hint(d, &outcome)
		reply.Result, err = d.result(&outcome, secrets)
		return err
	}
	return outcome.Failure("")
}

// hint says once in the log that a tool prints what looks like a tool result, if its file says nothing
// of output.
func (t *Toolset) hint(d *definition, o *command.Outcome) {
	if d.output != "" || o.Ending != command.Exited || o.ExitCode != 0 || o.Stdout.Truncated() {
		return
	}
	raw, _ := o.Stdout.Raw()
	if _, err := readResult(raw); err != nil {
		return
	}
	d.warn.Do(func() {
		t.logger.Warn(`a declared tool prints JSON that looks like a tool result, and its caller gets that as plain `+
			`text: write "output": "result" into its file, or "output": "text" if plain text is meant`,
			"tool", d.tool.Name, "file", d.path)
	})
}

// expand returns the command for the arguments of a call, the program first, and the variables
// NAME=value that it gets.
func (d *definition) expand(arguments json.RawMessage) (argv, variables []string, err error) {
	values := make(map[string]json.RawMessage)
	if err := rawjson.Members(arguments, func(m rawjson.Member) bool {
		values[m.Name()] = m.Value
		return true
	}); err != nil {
		return nil, nil, errors.New("the arguments are no JSON object: send one")
	}
	argv = []string{d.program}
	if d.shell {
		argv = []string{"sh", "-c", d.script, "sh"}
	}
	for _, t := range d.arguments {
		word, err := t.expand(values)
		if err != nil {
			return nil, nil, err
		}
		argv = append(argv, word)
	}
	for _, t := range d.variables {
		value, err := t.expand(values)
		if err != nil {
			return nil, nil, err
		}
		variables = append(variables, variablePrefix+t[0].name+"="+value)
	}
	return argv, variables, nil
}

// spec finds the program and the directory.
func (t *Toolset) spec(d *definition, argv []string) (command.Spec, error) {
	s := command.Spec{Argv: argv, Timeout: t.Timeout(d.tool.Native),
		StdoutLimit: max(d.stdout, command.MostKept), StderrLimit: max(d.stderr, command.MostKept)}
	program := d.program
	if d.shell {
		program = shellProgram
	}
	var err error
	if s.Dir, err = t.bounds.Dir(d.workingDir); err == nil {
		s.Program, err = t.bounds.Find(program, s.Dir)
	}
	if err == nil {
		return s, nil
	}
	return s, command.Refusal(tool.ClassSetupRequired, fmt.Sprintf(
		"%s cannot run here: %s; tell the person, who has declared it in %s", d.tool.Name, err, d.path), err)
}
