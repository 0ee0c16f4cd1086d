package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/batch"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/code"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/declarative"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/results"
	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// builtins holds the toolsets of one version of the settings; nil those that the settings do not enable.
type builtins struct {
	code     *code.Toolset
	declared *declarative.Toolset
}

// NewBuiltins makes the toolsets of the settings. The tools of code cannot reach the state
// directory: a program that read its tokens could answer approvals. They cannot write the files
// that declare tools, or that the hub goes by: a program that changed the policy would need no permission.
func NewBuiltins(s *config.Settings, runner *command.Runner, logger *slog.Logger) (*builtins, error) {
	own := &builtins{}
	environ := os.Environ()
	var err, codeErr error
	if s.Code.Enabled {
		s.Code.Secrets = append(s.Code.Secrets, s.StateDir)
		if s.Declarative.Dir != "" {
			s.Code.SensitiveDirs = append(s.Code.SensitiveDirs, s.Declarative.Dir)
		}
		files, err := ownFiles(s)
		if err != nil {
			return nil, err
		}
		s.Code.Protected = append(s.Code.Protected, files...)
		s.Code.Run.Bounds.Environ, s.Code.Run.Runner = environ, runner
		own.code, codeErr = code.New(s.Code)
	}
	if s.Declarative.Enabled {
		s.Declarative.Bounds.Environ, s.Declarative.Runner, s.Declarative.Logger = environ, runner, logger
		if own.declared, err = declarative.New(s.Declarative); err != nil {
			return nil, errors.Join(codeErr, err)
		}
		for _, p := range own.declared.Problems() {
			logger.Warn("a declared tool is left out", "file", p.File, "error", p.Error())
		}
	}
	if codeErr != nil {
		return nil, codeErr
	}
	return own, nil
}

// ownFiles returns the files that the hub goes by: whoever could write them would need no permission.
func ownFiles(s *config.Settings) ([]string, error) {
	var all []string
	for _, file := range append([]string{s.Path}, s.RuleFiles...) {
		if file == "" { // there is none
			continue
		}
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, fmt.Errorf("find %q: %w", file, err)
		}
		all = append(all, path)
	}
	return all, nil
}

// Catalogs returns what the toolsets offer. Declared tools are a toolset where a file declares one, even with faults.
func (b *builtins) Catalogs() []tool.Catalog {
	var all []tool.Catalog
	if b.code != nil {
		all = append(all, b.code.Catalog())
	}
	if b.declared != nil {
		if c := b.declared.Catalog(); len(c.Tools)+len(c.Excluded) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// runCommand runs commands of its caller.
const runCommand = tool.Name(code.Name + ".run_command")

// sources tells permission about the toolsets.
func (b *builtins) sources(s *config.Settings) map[string]gate.ToolSource {
	all := make(map[string]gate.ToolSource)
	if b.code != nil {
		o := gate.ToolSource{Trust: true, Dir: s.Code.Root, WriteRoots: s.Code.AllowedWriteRoots,
			Inside: code.Name + ".search"}
		if b.code.RunsCommands() {
			if s.Code.Root != "" { // a command runs in the project, wherever files may be written
				o.Dirs = map[tool.Name]string{runCommand: s.Code.Root}
			}
			o.Commands, o.Env = b.code, map[tool.Name][]string{runCommand: b.code.Env()}
		}
		all[code.Name] = o
	}
	if b.declared != nil {
		all[declarative.Name] = gate.ToolSource{Trust: true, Dir: s.Declarative.Bounds.Root, Dirs: b.declared.Dirs(),
			Env: b.declared.Env()}
	}
	return all
}

// builtIn executes with the toolsets in force.
type builtIn struct{ surfaces *surfaces }

func (b builtIn) Execute(ctx context.Context, e *tool.Execution) (tool.Reply, error) {
	own := b.surfaces.Now().Own
	switch source := e.Tool.Name.Source(); {
	case source == code.Name && own.code != nil:
		return own.code.Execute(ctx, e)
	case source == declarative.Name && own.declared != nil:
		return own.declared.Execute(ctx, e)
	}
	return tool.Reply{}, &tool.Failure{Class: tool.ClassDependencyUnavailable,
		Message: "the toolset has been taken out of the hub's config: list the tools again"}
}

// Tools returns the table of the hub's own tools. A new tool is implemented in a package and added here.
func Tools(h *Hub) []*tool.HubTool {
	return append(deferred.HubTools(func() *deferred.Loader { return h.Surfaces.loader }),
		results.HubTool(h.resultReader), batch.HubTool(batch.Options{
			Invoke: func(ctx context.Context, c *invoke.Call) invoke.Outcome { return h.pipeline.Invoke(ctx, c) },
			Reads:  func(t *tool.Tool) bool { return h.Surfaces.Now().Gate.Facts(t).ReadOnly.Value },
		}))
}

// HubTool returns the entry of that name; nil if there is none.
func (h *Hub) HubTool(name tool.Name) *tool.HubTool {
	if i := slices.IndexFunc(h.hubTools, func(t *tool.HubTool) bool { return t.Name == name }); i >= 0 {
		return h.hubTools[i]
	}
	return nil
}

// ToolNames returns the names of the hub's own tools: rules may name them.
func ToolNames() (names []string) {
	for _, t := range Tools(&Hub{}) {
		names = append(names, string(t.Name))
	}
	return names
}
