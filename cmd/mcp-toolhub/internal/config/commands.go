package config

import (
	"cmp"
	"path/filepath"
	"runtime"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
)

// declarativeToolset is the key toolsets.declarative.
type declarativeToolset struct {
	enabled shape.Located[bool]
	command.Config
}

func runCommandKeys(c *command.Config) []shape.Field {
	return []shape.Field{
		shape.Key("roots", "Directories in which commands may run, besides the project.", shape.List[string]{Of: expanded},
			&c.Roots),
		shape.Key("env",
			"Names of variables that commands get, besides PATH, HOME, TMPDIR and a few more.",
			shape.List[string]{Of: shape.Text{Check: variableKey}}, &c.Env),
		shape.Key("timeout",
			"How long a command may run, at most 10m; a call can ask for less. Default: 2m, or up to 10m if its "+
				"call asks for that.",
			shape.Duration{Min: time.Millisecond, Max: 10 * time.Minute}, &c.Timeout),
	}
}

func declarativeKeys(c *declarativeToolset) []shape.Field {
	return []shape.Field{
		shape.KeyAt("enabled", "Whether there are such tools (default true).", shape.Boolean{}, &c.enabled),
		shape.Key("root",
			"Where they run by default. Relative to ${workspaceFolder}; default: the root of code, otherwise the "+
				"working directory.",
			expanded, &c.Root),
		shape.Key("roots", "Directories in which their commands may run, besides the project.",
			shape.List[string]{Of: expanded},
			&c.Roots),
	}
}

// declarative are the settings of the declared tools, which are those of the user and not of a project.
func (r *reader) declarative(c *declarativeToolset, project string) declarative.Config {
	if !c.enabled.Or(true) {
		return declarative.Config{}
	}
	out := declarative.Config{Enabled: true, Bounds: c.Config}
	out.Bounds.Root = cmp.Or(r.vars.path(c.Root), project)
	r.vars.paths(c.Roots)
	if dir := r.vars.env.configDir(runtime.GOOS); dir != "" {
		out.Dir = filepath.Join(dir, program, "tools")
	}
	return out
}
