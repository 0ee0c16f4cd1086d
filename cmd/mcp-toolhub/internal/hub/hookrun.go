package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
)

// NewHooks makes the hooks of the settings; nil where there are none.
func NewHooks(s *config.Settings, runner *command.Runner) (*hook.Set, error) {
	if len(s.Hooks.All) == 0 {
		return nil, nil
	}
	bounds, err := command.NewBounds(command.Config{Root: s.Hooks.Dir, Environ: os.Environ()})
	if err != nil {
		return nil, err
	}
	set, problems := hook.New(s.Hooks.All, hook.Options{Runner: hookRunner{bounds, runner}, Dir: bounds.Config().Root})
	var all []error
	for _, p := range problems {
		all = append(all, fmt.Errorf("%s: %w", s.Hooks.All[p.Hook].Place, p.Problem))
	}
	return set, errors.Join(all...)
}

// hookRunner runs the commands of hooks: in a process group of their own, with few variables, and bounded output.
type hookRunner struct {
	bounds *command.Bounds
	runner *command.Runner
}

// Run implements hook.Runner.
func (h hookRunner) Run(ctx context.Context, c hook.Command) (hook.Ended, error) {
	dir, err := h.bounds.Dir(c.Dir)
	if err != nil {
		return hook.Ended{}, err
	}
	program, err := h.bounds.Find(c.Argv[0], dir)
	if err != nil {
		return hook.Ended{}, err
	}
	env, secrets := h.bounds.Environment(c.Env...)
	o, err := h.runner.Run(ctx, command.Spec{Program: program, Argv: c.Argv, Dir: dir, Env: slices.Concat(env, c.Set),
		Stdin: c.Stdin, Timeout: c.Timeout, StdoutLimit: c.MaxBytes, StderrLimit: 16 << 10})
	switch {
	case err != nil:
		return hook.Ended{}, err
	case o.Ending == command.Signaled:
		return hook.Ended{}, fmt.Errorf("the hook was ended by signal %s", o.Signal)
	case o.Ending != command.Exited:
		return hook.Ended{}, fmt.Errorf("the hook was ended: %s", o.Ending)
	}
	out, whole := o.Stdout.Raw()
	return hook.Ended{ExitCode: o.ExitCode, Stdout: out, Stderr: o.Stderr.Text(secrets), Cut: !whole}, nil
}
