package config

import (
	"cmp"
	"path/filepath"
	"runtime"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
)

// commands bounds the commands of code.run_command, or of declarative tools.
type commands struct {
	enabled             shape.Located[bool]
	root                shape.Located[string]
	roots               []shape.Located[string]
	env                 []string
	timeout, maxTimeout shape.Located[time.Duration]
	stdout, stderr      int
}

// commandsKeys returns the keys that both have.
func commandsKeys(c *commands, what, stdout string) []shape.Field {
	return []shape.Field{
		shape.KeyAt("enabled", "Whether there are such tools (default true).", shape.Boolean{}, &c.enabled),
		shape.Key("roots", "Directories in which "+what+" may run, besides the project.", shape.ListAt(expanded),
			&c.roots),
		shape.Key("env",
			"Names of variables that are passed on, besides PATH, HOME, TMPDIR and a few more. Nothing else of the "+
				"hub's environment is.",
			shape.List[string]{Of: shape.Text{Check: variableKey}}, &c.env),
		shape.Key("stdout_limit", "How much of the output is kept (default "+stdout+").",
			shape.Size[int]{Min: 1, Max: command.MostOutput}, &c.stdout),
		shape.Key("stderr_limit", "How much of the error output is kept (default 16 KiB).",
			shape.Size[int]{Min: 1, Max: command.MostOutput}, &c.stderr),
	}
}

func runCommandKeys(c *commands) []shape.Field {
	return append(commandsKeys(c, "commands", "64 KiB"),
		shape.KeyAt("timeout",
			"How long a command may run (default 2m, at most 10m). A call can ask for less, never for more.",
			shape.Duration{Min: time.Millisecond, Max: command.DefaultMaxTimeout}, &c.timeout))
}

func declarativeKeys(c *commands) []shape.Field {
	long := shape.Duration{Min: time.Millisecond, Max: command.MostTimeout}
	return append(commandsKeys(c, "their commands", "1 MiB"),
		shape.KeyAt("root",
			"Where they run that name no directory. Relative to ${workspaceFolder}; default: the root of code, "+
				"otherwise the working directory.",
			expanded, &c.root),
		shape.KeyAt("timeout", "How long a command may run whose file does not say (default 2m).", long, &c.timeout),
		shape.KeyAt("max_timeout", "The most that a file can say (default 10m).", long, &c.maxTimeout))
}

// bounds returns the settings of c, without a root. It reports a timeout over the most.
func (r *reader) bounds(c *commands) command.Config {
	out := command.Config{Env: c.env, Timeout: c.timeout.Value, MaxTimeout: c.maxTimeout.Value, StdoutLimit: c.stdout,
		StderrLimit: c.stderr}
	for _, dir := range c.roots {
		out.Roots = append(out.Roots, r.vars.path(dir.Value))
	}
	timeout, most := cmp.Or(out.Timeout, command.DefaultTimeout), cmp.Or(out.MaxTimeout, command.DefaultMaxTimeout)
	switch {
	case c.maxTimeout.OK && timeout > most:
		shape.FaultOf(r.Reader, c.maxTimeout, "max_timeout is shorter than timeout", "raise it, or lower timeout")
	case c.timeout.OK && timeout > most:
		shape.FaultOf(r.Reader, c.timeout, "timeout is longer than max_timeout",
			"lower it, or raise max_timeout (default 10m)")
	}
	return out
}

func (r *reader) runCommand(c shape.Located[commands]) code.RunConfig {
	if !c.Present || !c.Value.enabled.Or(true) {
		return code.RunConfig{}
	}
	return code.RunConfig{Enabled: true, Bounds: r.bounds(&c.Value)}
}

// declarative are the settings of the declared tools, which are those of the user and not of a project.
func (r *reader) declarative(c *commands, project string) declarative.Config {
	if !c.enabled.Or(true) {
		return declarative.Config{}
	}
	out := declarative.Config{Enabled: true, Bounds: r.bounds(c)}
	out.Bounds.Root = cmp.Or(r.vars.path(c.root.Value), project)
	if dir := r.vars.env.configDir(runtime.GOOS); dir != "" {
		out.Dir = filepath.Join(dir, program, "tools")
	}
	return out
}
