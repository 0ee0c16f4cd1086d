package config

import (
	"cmp"
	"path/filepath"
	"runtime"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
)

// commands is what commands may do: of code.run_command, and of declarative tools.
type commands struct {
	enabled             located[bool]
	root                located[string]
	roots               []located[string]
	env                 []string
	timeout, maxTimeout located[time.Duration]
	stdout, stderr      int64
}

// commandsFields are the keys that both have.
func commandsFields(what, stdout string) []field[commands] {
	return []field[commands]{
		key("enabled", "Whether there are such tools (default true).", in[bool]{boolean{}},
			func(c *commands) *located[bool] { return &c.enabled }),
		key("roots", "Directories in which "+what+" may run, besides the project.", list[located[string]]{in[string]{expanded}},
			func(c *commands) *[]located[string] { return &c.roots }),
		key("env", "Names of variables that are passed on, besides PATH, HOME, TMPDIR and a few more. Nothing else of the hub's environment is.",
			list[string]{text{check: variableKey}}, func(c *commands) *[]string { return &c.env }),
		key("stdout_limit", "How much of the output is kept (default "+stdout+").", size{1, command.MostOutput},
			func(c *commands) *int64 { return &c.stdout }),
		key("stderr_limit", "How much of the error output is kept (default 16 KiB).", size{1, command.MostOutput},
			func(c *commands) *int64 { return &c.stderr }),
	}
}

func runCommandShape() object[commands] {
	return object[commands]{fields: append(commandsFields("commands", "64 KiB"),
		key("timeout", "How long a command may run (default 2m, at most 10m). A call can ask for less, never for more.",
			in[time.Duration]{duration{min: time.Millisecond, max: command.DefaultMaxTimeout}},
			func(c *commands) *located[time.Duration] { return &c.timeout }))}
}

func declarativeShape() object[commands] {
	long := in[time.Duration]{duration{min: time.Millisecond, max: command.MostTimeout}}
	return object[commands]{fields: append(commandsFields("their commands", "1 MiB"),
		key("root", "Where they run that name no directory. Relative to ${workspaceFolder}; default: the root of code, otherwise the working directory.",
			in[string]{expanded}, func(c *commands) *located[string] { return &c.root }),
		key("timeout", "How long a command may run whose file does not say (default 2m).", long,
			func(c *commands) *located[time.Duration] { return &c.timeout }),
		key("max_timeout", "The most that a file can say (default 10m).", long,
			func(c *commands) *located[time.Duration] { return &c.maxTimeout }))}
}

func (c *commands) on() bool { return !c.enabled.present || c.enabled.value }

// bounds are the settings of c, without a root.
func (r *reader) bounds(c *commands) command.Config {
	out := command.Config{Env: c.env, Timeout: c.timeout.value, MaxTimeout: c.maxTimeout.value, StdoutLimit: int(c.stdout), StderrLimit: int(c.stderr)}
	for _, dir := range c.roots {
		out.Roots = append(out.Roots, r.vars.path(dir.value))
	}
	timeout, most := cmp.Or(out.Timeout, command.DefaultTimeout), cmp.Or(out.MaxTimeout, command.DefaultMaxTimeout)
	switch {
	case c.maxTimeout.ok && timeout > most:
		faultOf(r, c.maxTimeout, "max_timeout is shorter than timeout", "raise it, or lower timeout")
	case c.timeout.ok && timeout > most:
		faultOf(r, c.timeout, "timeout is longer than max_timeout", "lower it, or raise max_timeout")
	}
	return out
}

func (r *reader) runCommand(c located[commands]) code.RunConfig {
	if !c.present || !c.value.on() {
		return code.RunConfig{}
	}
	return code.RunConfig{Enabled: true, Bounds: r.bounds(&c.value)}
}

// declarative are the settings of the declared tools, which are those of the user and not of a project.
func (r *reader) declarative(c *commands, project string) declarative.Config {
	if !c.on() {
		return declarative.Config{}
	}
	out := declarative.Config{Enabled: true, Bounds: r.bounds(c)}
	out.Bounds.Root = cmp.Or(r.vars.path(c.root.value), project)
	if dir := r.vars.env.configDir(runtime.GOOS); dir != "" {
		out.Dir = filepath.Join(dir, program, "tools")
	}
	return out
}
