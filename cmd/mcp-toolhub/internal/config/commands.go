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

// commands bounds the commands of code.run_command, or of declarative tools.
type commands struct {
	enabled             located[bool]
	root                located[string]
	roots               []located[string]
	env                 []string
	timeout, maxTimeout located[time.Duration]
	stdout, stderr      int64
}

// commandsKeys returns the keys that both have.
func commandsKeys(c *commands, what, stdout string) []field {
	return []field{
		keyAt("enabled", "Whether there are such tools (default true).", boolean{}, &c.enabled),
		key("roots", "Directories in which "+what+" may run, besides the project.", listAt(expanded), &c.roots),
		key("env", "Names of variables that are passed on, besides PATH, HOME, TMPDIR and a few more. Nothing else of the hub's environment is.",
			list[string]{text{check: variableKey}}, &c.env),
		key("stdout_limit", "How much of the output is kept (default "+stdout+").", size{1, command.MostOutput}, &c.stdout),
		key("stderr_limit", "How much of the error output is kept (default 16 KiB).", size{1, command.MostOutput}, &c.stderr),
	}
}

func runCommandKeys(c *commands) []field {
	return append(commandsKeys(c, "commands", "64 KiB"),
		keyAt("timeout", "How long a command may run (default 2m, at most 10m). A call can ask for less, never for more.",
			duration{min: time.Millisecond, max: command.DefaultMaxTimeout}, &c.timeout))
}

func declarativeKeys(c *commands) []field {
	long := duration{min: time.Millisecond, max: command.MostTimeout}
	return append(commandsKeys(c, "their commands", "1 MiB"),
		keyAt("root", "Where they run that name no directory. Relative to ${workspaceFolder}; default: the root of code, otherwise the working directory.",
			expanded, &c.root),
		keyAt("timeout", "How long a command may run whose file does not say (default 2m).", long, &c.timeout),
		keyAt("max_timeout", "The most that a file can say (default 10m).", long, &c.maxTimeout))
}

// bounds returns the settings of c, without a root. It reports a timeout over the most.
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
		faultOf(r, c.timeout, "timeout is longer than max_timeout", "lower it, or raise max_timeout (default 10m)")
	}
	return out
}

func (r *reader) runCommand(c located[commands]) code.RunConfig {
	if !c.present || !c.value.enabled.or(true) {
		return code.RunConfig{}
	}
	return code.RunConfig{Enabled: true, Bounds: r.bounds(&c.value)}
}

// declarative are the settings of the declared tools, which are those of the user and not of a project.
func (r *reader) declarative(c *commands, project string) declarative.Config {
	if !c.enabled.or(true) {
		return declarative.Config{}
	}
	out := declarative.Config{Enabled: true, Bounds: r.bounds(c)}
	out.Bounds.Root = cmp.Or(r.vars.path(c.root.value), project)
	if dir := r.vars.env.configDir(runtime.GOOS); dir != "" {
		out.Dir = filepath.Join(dir, program, "tools")
	}
	return out
}
