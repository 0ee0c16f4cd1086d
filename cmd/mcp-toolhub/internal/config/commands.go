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
	enabled shape.Located[bool] // of declarative tools
	root    shape.Located[string]
	roots   []shape.Located[string]
	env     []string
	timeout time.Duration
}

func runCommandKeys(c *commands) []shape.Field {
	return []shape.Field{
		shape.Key("roots", "Directories in which commands may run, besides the project.", shape.ListAt(expanded),
			&c.roots),
		shape.Key("env",
			"Names of variables that are passed on, besides PATH, HOME, TMPDIR and a few more. Nothing else of the "+
				"hub's environment is.",
			shape.List[string]{Of: shape.Text{Check: variableKey}}, &c.env),
		shape.Key("timeout",
			"How long a command may run, at most 10m. A call can ask for less, never for more. Without this key a "+
				"command may run for 2m, and for up to 10m where its call asks for that.",
			shape.Duration{Min: time.Millisecond, Max: 10 * time.Minute}, &c.timeout),
	}
}

func declarativeKeys(c *commands) []shape.Field {
	return []shape.Field{
		shape.KeyAt("enabled", "Whether there are such tools (default true).", shape.Boolean{}, &c.enabled),
		shape.KeyAt("root",
			"Where they run that name no directory. Relative to ${workspaceFolder}; default: the root of code, "+
				"otherwise the working directory.",
			expanded, &c.root),
		shape.Key("roots", "Directories in which their commands may run, besides the project.", shape.ListAt(expanded),
			&c.roots),
	}
}

// bounds returns the settings of c, without a root.
func (r *reader) bounds(c *commands) command.Config {
	out := command.Config{Env: c.env, Timeout: c.timeout}
	for _, dir := range c.roots {
		out.Roots = append(out.Roots, r.vars.path(dir.Value))
	}
	return out
}

func (r *reader) runCommand(c shape.Located[commands]) code.RunConfig {
	if !c.Present {
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
