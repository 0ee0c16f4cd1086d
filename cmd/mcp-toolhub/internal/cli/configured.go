package cli

import (
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

// configured holds what the hub makes of one version of its settings. A reload replaces it as a whole.
type configured struct {
	settings *config.Settings
	own      *builtins
	names    *namespace.Namespace
	gate     *gate.Gate
	hooks    *hook.Set                // nil where there are none
	limits   map[string]invoke.Limits // by server
	results  *limit.Policy
}

// configure makes the parts that may refuse settings which the config package takes, and starts
// nothing. The error is all that they refuse. table is that of the hub's own tools.
func configure(s *config.Settings, grants *policy.Grants, table []*tool.HubTool, runner *command.Runner,
	logger *slog.Logger) (*configured, error) {
	c := &configured{settings: s, limits: make(map[string]invoke.Limits, len(s.Upstream.Servers)),
		results: limit.New(s.Results)}
	for _, sc := range s.Upstream.Servers {
		c.limits[sc.ID] = invoke.Limits{MaxParallel: sc.MaxParallel,
			PerSession: sc.Isolated || sc.OAuth.PerCaller}
	}
	var ownErr, gateErr, namesErr error
	if c.own, ownErr = newBuiltins(s, runner, logger); ownErr != nil {
		c.own = &builtins{}
	}
	c.gate, gateErr = c.newGate(grants, table)
	c.names, namesErr = namespace.New(s.Profiles)
	var hooksErr error
	c.hooks, hooksErr = newHooks(s, runner)
	return c, errors.Join(ownErr, gateErr, namesErr, hooksErr, s.Deferred.Check())
}

// checkSettings reports what a hub of these settings would refuse.
func checkSettings(s *config.Settings) error {
	logger := slog.New(slog.DiscardHandler)
	grants, err := openGrants(s, false)
	_, partsErr := configure(s, grants, hubTools(&hub{}), command.NewRunner("", logger), logger)
	return errors.Join(err, partsErr)
}

// newGate makes the gate. It decides without remembered answers where grants is nil.
func (c *configured) newGate(grants *policy.Grants, table []*tool.HubTool) (*gate.Gate, error) {
	wd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then no path is taken for it
	}
	s := c.settings
	files, err := ownFiles(s)
	if err != nil {
		return nil, err
	}
	o := gate.Options{Dir: wd, Home: home, Temp: os.TempDir(), State: s.StateDir, Own: files, Sources: c.own.sources(s),
		Grants: grants, HubTools: table,
		ToolState: c.state}
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
func (c *configured) permitted(view string, caller tool.Actor) (*tool.Surface, error) {
	full, err := c.names.Surface(view, caller.Client)
	if err != nil {
		return nil, err
	}
	return c.gate.Surface(full, caller), nil
}

// profiles returns the names of all profiles, the default one first.
func (c *configured) profiles() []string {
	names := []string{namespace.DefaultProfile}
	for _, p := range c.settings.Profiles {
		if p.Name != namespace.DefaultProfile {
			names = append(names, p.Name)
		}
	}
	return names
}

// views returns all that clients can be served: the profiles, the default one first, and a direct view of each server.
func (c *configured) views() []string {
	names := c.profiles()
	for _, server := range c.settings.Upstream.Servers {
		if !server.Disabled {
			names = append(names, downstream.DirectView(server.ID))
		}
	}
	return names
}
