package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/persist/limit"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/hook"
	"github.com/mcp-toolhub/mcp-toolhub/policy/target"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// Configured holds what the hub makes of one version of its settings. A reload replaces it as a whole.
type Configured struct {
	Settings *config.Settings
	Own      *builtins
	names    *namespace.Namespace
	Gate     *gate.Gate
	hooks    *hook.Set                // nil where there are none
	limits   map[string]invoke.Limits // by server
	results  *limit.Policy
}

// configure makes the parts that may refuse settings which the config package takes, and starts
// nothing. The error is all that they refuse. table is that of the hub's own tools.
func configure(s *config.Settings, grants *policy.Grants, table []*tool.HubTool, runner *command.Runner,
	logger *slog.Logger) (*Configured, error) {
	c := &Configured{Settings: s, limits: make(map[string]invoke.Limits, len(s.Upstream.Servers)),
		results: limit.New(s.Results)}
	for _, sc := range s.Upstream.Servers {
		c.limits[sc.ID] = invoke.Limits{MaxParallel: sc.MaxParallel, PerSession: sc.Isolated || sc.OAuth.PerCaller}
	}
	var ownErr, gateErr error
	if c.Own, ownErr = NewBuiltins(s, runner, logger); ownErr != nil {
		c.Own = &builtins{}
	}
	c.Gate, gateErr = c.newGate(grants, table)
	c.names = namespace.New(s.Profiles)
	var hooksErr error
	c.hooks, hooksErr = NewHooks(s, runner)
	return c, errors.Join(ownErr, gateErr, hooksErr)
}

// CheckSettings reports what a hub of these settings would refuse.
func CheckSettings(s *config.Settings) error {
	logger := slog.New(slog.DiscardHandler)
	grants, err := OpenGrants(s, false)
	_, partsErr := configure(s, grants, Tools(&Hub{}), command.NewRunner("", logger), logger)
	return errors.Join(err, partsErr)
}

// newGate makes the gate. It decides without remembered answers where grants is nil.
func (c *Configured) newGate(grants *policy.Grants, table []*tool.HubTool) (*gate.Gate, error) {
	wd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	s := c.Settings
	files, err := ownFiles(s)
	if err != nil {
		return nil, err
	}
	o := gate.Options{Dir: wd, Home: homeDir(), State: s.StateDir, Own: files, Sources: c.Own.sources(s),
		Grants: grants, HubTools: table,
		Execution: c.execution}
	for _, server := range s.Upstream.Servers {
		dir := server.Dir
		if dir != "" && !filepath.IsAbs(dir) {
			dir = filepath.Join(wd, dir)
		}
		o.Sources[server.ID] = gate.ToolSource{Trust: server.Trust, Dir: dir,
			Remote: server.Transport != upstream.Stdio}
	}
	p := s.Policy
	p.Limits.SensitivePaths = slices.Clone(p.Limits.SensitivePaths)
	if s.Declarative.Dir != "" { // whoever could write there could declare tools
		p.Limits.SensitivePaths = append(p.Limits.SensitivePaths, target.Literal(s.Declarative.Dir)...)
	}
	return gate.New(p, o)
}

// permitted returns what the policy leaves of a view to a caller.
func (c *Configured) permitted(view string, caller tool.Actor) (*tool.Surface, error) {
	full, err := c.names.Surface(view, caller.Client)
	if err != nil {
		return nil, err
	}
	return c.Gate.Surface(full, caller), nil
}

// Profiles returns the names of all profiles, the default one first.
func (c *Configured) Profiles() []string {
	names := []string{namespace.DefaultProfile}
	for _, p := range c.Settings.Profiles {
		if p.Name != namespace.DefaultProfile {
			names = append(names, p.Name)
		}
	}
	return names
}

// views returns all that clients can be served: the profiles, the default one first, and a direct view of each server.
func (c *Configured) views() []string {
	names := c.Profiles()
	for _, server := range c.Settings.Upstream.Servers {
		if !server.Disabled {
			names = append(names, downstream.DirectView(server.ID))
		}
	}
	return names
}

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
