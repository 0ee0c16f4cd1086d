package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/namespace"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// permission is what of the hub says which calls may run.
type permission struct {
	gate      atomic.Pointer[gate.Gate]
	grants    *policy.Grants
	grantsAt  string // the file of grants
	approvals *approval.Approvals
	offered   atomic.Pointer[map[tool.Name]*tool.Tool]

	grantsProblem atomic.Pointer[string] // why the file of remembered answers as it stands now is not in force; nil where it is

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
	if h.grants == nil {
		h.grantsAt = filepath.Join(s.StateDir, grantsFile)
		grants, err := policy.OpenGrants(policy.GrantOptions{File: h.grantsAt, SessionTime: s.Policy.SessionTime,
			AlwaysTime: s.Policy.AlwaysTime})
		if err != nil {
			return nil, fmt.Errorf("read remembered answers: %w", err)
		}
		h.grants = grants
	}
	o, err := gateOptions(s, own)
	if err != nil {
		return nil, err
	}
	o.Grants, o.HubTools = h.grants, h.hubTools
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
	files, err := ownFiles(s)
	if err != nil {
		return gate.Options{}, err
	}
	o := gate.Options{Dir: wd, Home: home, Temp: os.TempDir(), State: s.StateDir, Own: files, Origins: own.origins(s)}
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
	if warning := s.Policy.Mode.Warning(); warning != "" {
		h.logger.Warn(warning)
	}
}

// reloadGrants reads the remembered answers again: a person may have changed them, or another hub. A file with a fault
// changes nothing.
func (h *hub) reloadGrants() {
	err := h.grants.Reload()
	if err == nil {
		h.grantsProblem.Store(nil)
		h.logger.Debug("remembered answers are read again", "path", h.grantsAt)
		return
	}
	what := "the file of remembered answers cannot be used; the hub goes on with what it had: " + strings.TrimSpace(err.Error())
	h.grantsProblem.Store(&what)
	h.logger.Error("remembered answers are not applied", "path", h.grantsAt, "error", err)
}

// refuse says why what is asked of a server besides tool calls may not reach it.
func (h *hub) refuse(ctx context.Context, e downstream.Forwarded) *tool.Failure {
	return h.gate.Load().Refuse(ctx, (*gate.Errand)(&e))
}

// doorOf is the door that clients come in by.
func doorOf(s *config.Settings) string {
	if s.Downstream.HTTP.Listen != "" {
		return "http"
	}
	return "stdio"
}

// sayWhatHolds says in one line which calls run, and what changes that. warnOfMode has said it of accept_all.
func (h *hub) sayWhatHolds(door string) {
	p := h.settings.Load().Policy
	mode := p.Mode.Of(door)
	what, origin := "", "policy.mode "+string(mode)
	if p.Mode == "" {
		origin += ", the default over " + door
	}
	switch mode {
	case policy.ModeDefault:
		what = "calls that are not known to only read, or come from servers without trust, are asked about: in the client, or with mcp-toolhub approvals"
	case policy.ModeClient:
		what = "calls that would be asked about are left to the client, which asks its own user; tools tagged dangerous are asked about"
	case policy.ModeReadOnly, policy.ModePlan:
		what = "calls that are not known to only read are denied"
	case policy.ModeAcceptAll:
		return
	}
	h.logger.Info("permission: "+what, "because", origin, "change", "policy.mode, policy.rules, trust: true of a server")
}

// former is what surfaces came from before the settings changed.
type former struct {
	names *namespace.Namespace
	gate  *gate.Gate
}

// announcePermitted tells those clients that the policy leaves other tools than before.
func (h *hub) announcePermitted(f former) {
	now := former{h.names.Load(), h.gate.Load()}
	var changes []downstream.Change
	for _, view := range h.views() {
		changes = append(changes, downstream.Change{Profile: view, Tools: true, Sees: func(a tool.Actor) bool {
			before, err := f.surface(view, a)
			if err != nil {
				return false // a view that is new has told nobody anything
			}
			after, err := now.surface(view, a)
			return err != nil || !slices.EqualFunc(before.Listed, after.Listed, func(x, y tool.Listed) bool { return x.Name == y.Name })
		}})
	}
	h.server.Changed(changes...)
}

// surface is what the policy leaves of a view.
func (f former) surface(view string, a tool.Actor) (*tool.Surface, error) {
	full, err := f.names.Surface(view, a.Client)
	if err != nil {
		return nil, err
	}
	return f.gate.Surface(full, a), nil
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
	wanted := h.serves && (s.Policy.Channels == nil || slices.Contains(s.Policy.Channels, gate.ChannelQueue))
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
