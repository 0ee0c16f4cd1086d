package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// permission is what of the hub says which calls may run.
type permission struct {
	gate      atomic.Pointer[gate.Gate]
	grants    *policy.Grants // nil until a config has a policy
	approvals *approval.Approvals
	offered   atomic.Pointer[map[tool.Name]*tool.Tool]

	controlling sync.Mutex
	serves      bool            // clients are served: questions can be answered from elsewhere
	control     *control.Server // nil where nobody can be asked in the queue
}

// grantsFile holds the answers for good, in the state directory.
const grantsFile = "grants.yaml"

// openPermission puts the policy of the settings into force, for a hub that begins.
func (h *hub) openPermission(s *config.Settings, own *builtins) error {
	h.approvals = approval.New(approval.Options{Timeout: maxAsk})
	g, err := h.newGate(s, own)
	if err != nil {
		return err
	}
	h.gate.Store(g)
	h.offered.Store(&map[tool.Name]*tool.Tool{})
	h.warnOfMode(s)
	return nil
}

// maxAsk bounds every question; policy.ask.timeout is what counts.
const maxAsk = 24 * time.Hour

// newGate makes the gate of the settings, and puts nothing into force.
func (h *hub) newGate(s *config.Settings, own *builtins) (*gate.Gate, error) {
	if !s.Policy.Enabled {
		return gate.Open(), nil
	}
	if h.grants == nil {
		grants, err := policy.OpenGrants(policy.GrantOptions{File: filepath.Join(s.StateDir, grantsFile), SessionTime: s.Policy.SessionTime,
			AlwaysTime: s.Policy.AlwaysTime})
		if err != nil {
			return nil, fmt.Errorf("read remembered answers: %w", err)
		}
		h.grants = grants
	} else if err := h.grants.Reload(); err != nil {
		return nil, fmt.Errorf("read remembered answers: %w", err)
	}
	o, err := gateOptions(s, own)
	if err != nil {
		return nil, err
	}
	o.Grants = h.grants
	c := s.Policy
	c.Limits.SensitivePaths = append(slices.Clone(c.Limits.SensitivePaths), declarations(s)...)
	return gate.New(c, o)
}

// gateOptions are what permission knows of the machine and of the servers.
func gateOptions(s *config.Settings, own *builtins) (gate.Options, error) {
	wd, err := os.Getwd()
	if err != nil {
		return gate.Options{}, fmt.Errorf("find the working directory: %w", err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then nothing is taken for it
	}
	o := gate.Options{Dir: wd, Home: home, Temp: os.TempDir(), State: s.StateDir, Origins: own.origins(s)}
	for _, server := range s.Upstream.Servers {
		dir := server.Dir
		if dir != "" && !filepath.IsAbs(dir) {
			dir = filepath.Join(wd, dir)
		}
		o.Origins[server.ID] = gate.Origin{Trust: server.Trust, Dir: dir, Remote: server.Transport != upstream.Stdio}
	}
	return o, nil
}

// warnOfMode says aloud what a person has to know of the mode.
func (h *hub) warnOfMode(s *config.Settings) {
	if warning := s.Policy.Mode.Warning(); s.Policy.Enabled && warning != "" {
		h.logger.Warn(warning)
	}
}

// offer notes what is offered now: an approval holds for the tool that was asked about, and for no later one of its name.
func (h *hub) offer(catalogs []tool.Catalog) {
	h.gate.Load().Retain(catalogs)
	all := make(map[tool.Name]*tool.Tool)
	for _, c := range catalogs {
		for _, t := range c.Tools {
			all[t.Name] = t
		}
	}
	h.offered.Store(&all)
}

// present is the tool that has the name now.
func (h *hub) present(name tool.Name) *tool.Tool { return (*h.offered.Load())[name] }

// queueOpen reports whether questions can be answered from elsewhere.
func (h *hub) queueOpen() bool {
	h.controlling.Lock()
	defer h.controlling.Unlock()
	return h.control != nil
}

// serveApprovals lets questions be answered from elsewhere from now on, as long as the config wants that.
func (h *hub) serveApprovals() error {
	h.controlling.Lock()
	h.serves = true
	h.controlling.Unlock()
	return h.openControl(h.settings.Load())
}

// openControl opens or closes the API for approvals as the settings want it.
func (h *hub) openControl(s *config.Settings) error {
	h.controlling.Lock()
	defer h.controlling.Unlock()
	wanted := h.serves && s.Policy.Enabled && (s.Policy.Channels == nil || slices.Contains(s.Policy.Channels, gate.ChannelQueue))
	switch {
	case wanted && h.control == nil:
		c, err := control.Serve(s.StateDir, h.approvals, h.grants, h.logger)
		if err != nil {
			return err
		}
		h.control = c
	case !wanted && h.control != nil:
		c := h.control
		h.control = nil
		return c.Close()
	}
	return nil
}

// closePermission ends all questions, which denies what they are about.
func (h *hub) closePermission() error {
	h.approvals.Close()
	h.controlling.Lock()
	defer h.controlling.Unlock()
	if h.control == nil {
		return nil
	}
	c := h.control
	h.control = nil
	return c.Close()
}
