package hub

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
)

// permission holds the approvals and grants of a hub, and the API by which people reach them from
// elsewhere. It is safe for concurrent use.
type permission struct {
	logger    *slog.Logger
	approvals *approval.Approvals
	Grants    *policy.Grants
	grantsAt  string                 // the file of grants
	problem   atomic.Pointer[string] // why the file as it stands now is not in force; nil where it is

	mu      sync.Mutex
	api     control.Hub
	serves  bool            // clients are served: approvals can be answered from elsewhere
	control *control.Server // nil where nobody can be asked in the queue
}

// GrantsFile holds the answers for good, in the state directory.
const GrantsFile = "grants.yaml"

// maxAsk bounds every approval; policy.ask.timeout counts within it.
const maxAsk = 24 * time.Hour

func newPermission(s *config.Settings, logger *slog.Logger) (*permission, error) {
	grants, err := OpenGrants(s, true)
	if err != nil {
		return nil, err
	}
	p := &permission{logger: logger, Grants: grants, grantsAt: filepath.Join(s.StateDir, GrantsFile),
		approvals: approval.New(approval.Options{Timeout: maxAsk})}
	p.api = control.Hub{Approvals: p.approvals, Grants: grants}
	p.sayLost()
	return p, nil
}

// OpenGrants reads the remembered answers. With setAside a damaged file is kept aside.
func OpenGrants(s *config.Settings, setAside bool) (*policy.Grants, error) {
	file := filepath.Join(s.StateDir, GrantsFile)
	grants, err := policy.OpenGrants(policy.GrantOptions{File: file, SetAside: setAside})
	if err != nil {
		return nil, fmt.Errorf("read remembered answers: %w", err)
	}
	return grants, nil
}

// files returns the file of remembered answers, and those that were set aside.
func (p *permission) files() []string { return append([]string{p.grantsAt}, p.Grants.Lost()...) }

// sayLost tells of remembered answers that are lost.
func (p *permission) sayLost() {
	lost := p.Grants.Lost()
	if len(lost) == 0 {
		p.problem.Store(nil)
		return
	}
	what := fmt.Sprintf("remembered answers are lost, so calls that may change something are asked about: "+
		"the file was damaged and is now %s. "+
		"Mend it and move it back to %s, or remove it", strings.Join(lost, ", "), p.grantsAt)
	p.problem.Store(&what)
	p.logger.Error(what)
}

// reload reads the remembered answers again: a person may have changed them, or another hub. A file
// with a fault changes nothing.
func (p *permission) reload() {
	err := p.Grants.Reload()
	if err == nil {
		p.sayLost()
		p.logger.Debug("remembered answers are read again", "path", p.grantsAt)
		return
	}
	what := "the file of remembered answers cannot be used; the hub goes on with what it had: " +
		strings.TrimSpace(err.Error())
	p.problem.Store(&what)
	p.logger.Error("remembered answers are not applied", "path", p.grantsAt, "error", err)
}

// queueOpen reports whether approvals can be answered from elsewhere.
func (p *permission) queueOpen() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.control != nil
}

// at is the origin of the API's address; "" where it is closed.
func (p *permission) at() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.control == nil {
		return ""
	}
	return p.control.URL()
}

// serve lets approvals be answered from elsewhere from now on, and clients of other processes join,
// as long as the settings want the first.
func (p *permission) serve(ctx context.Context, s *config.Settings) error {
	p.mu.Lock()
	p.serves = true
	p.mu.Unlock()
	return p.apply(ctx, s)
}

// apply opens or closes the API for approvals as the settings want it.
func (p *permission) apply(ctx context.Context, s *config.Settings) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := p.serves && s.Policy.Queues()
	if !wanted {
		return p.closeAPI(ctx)
	}
	if p.control != nil {
		return nil
	}
	c, err := control.Serve(ctx, s.StateDir, p.api, p.logger)
	if err != nil {
		return err
	}
	p.control = c
	return nil
}

// close settles all approvals, which denies their calls, and closes the API.
func (p *permission) close(ctx context.Context) error {
	p.approvals.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closeAPI(ctx)
}

// closeAPI closes the API if it is open. p.mu is held.
func (p *permission) closeAPI(ctx context.Context) error {
	if p.control == nil {
		return nil
	}
	c := p.control
	p.control = nil
	return c.Close(ctx)
}

// sayMode logs in one line which calls run, and what changes that. Mode.Warning has said it of accept_all.
func sayMode(logger *slog.Logger, s *config.Settings) {
	p, door := s.Policy, "stdio"
	if s.Downstream.HTTP.Listen != "" {
		door = "http"
	}
	mode := p.Mode.Of(door)
	what, origin := "", "policy.mode "+string(mode)
	if p.Mode == "" {
		origin += ", the default over " + door
	}
	switch mode {
	case policy.ModeDefault:
		what = "calls that are not known to only read, or come from servers without trust, are asked about: in the " +
			"client, or with mcp-toolhub approvals"
	case policy.ModeClient:
		what = "calls that would be asked about are left to the client, which asks its own user; tools tagged " +
			"dangerous are asked about"
		if p.Mode == "" {
			what += ", and so are calls through other tools of the hub"
		}
	case policy.ModeReadOnly, policy.ModePlan:
		what = "calls that are not known to only read are denied"
	case policy.ModeAcceptAll:
		return
	}
	logger.Info("permission: "+what, "because", origin, "change", "policy.mode, policy.rules, trust: true of a server")
}

// warnOfMode warns of a mode that a person has to know of.
func warnOfMode(logger *slog.Logger, s *config.Settings) {
	if warning := s.Policy.Mode.Warning(); warning != "" {
		logger.Warn(warning)
	}
}
