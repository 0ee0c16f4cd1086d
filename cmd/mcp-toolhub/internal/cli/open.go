package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/internal/run"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/upstream"
)

// load finds and reads the config file that the command line and the environment point at. It
// leaves out a file of the working directory that nobody has trusted, with a warning, unless a
// person at the terminal trusts it now.
func (a *app) load(ctx context.Context) (*config.Settings, error) {
	found, err := a.find()
	if err != nil {
		return nil, err
	}
	var skipped *config.UntrustedError
	for _, f := range found {
		s, err := a.read(f)
		if errors.As(err, &skipped) {
			if s, err = a.askTrust(ctx, skipped); s == nil && err == nil {
				continue
			}
		} else if skipped != nil && err != nil {
			err = exitConfig.of(errors.Join(skipped, err))
		} else if skipped != nil {
			s.Warnings = append([]textfile.Fault{skipped.Warning()}, s.Warnings...)
		}
		return s, err
	}
	return nil, exitConfig.errorf("%w; there is no other config", skipped)
}

// find returns the config files that load tries, in order.
func (a *app) find() ([]config.Found, error) {
	wd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the working directory: %w", err)
	}
	found, err := config.Find(a.configPath, a.std.getenv, wd)
	return found, exitConfig.of(err)
}

// configFile returns the path of the config that load would read, whether or not it has faults.
func (a *app) configFile() (string, error) {
	found, err := a.find()
	for _, f := range found {
		if f.Project {
			var untrusted *config.UntrustedError
			if _, readErr := a.read(f); errors.As(readErr, &untrusted) {
				err = exitConfig.errorf("%w; there is no other config", untrusted)
				continue
			}
		}
		return f.Path, nil
	}
	return "", err
}

// read reads one config file but for some keys, and the rules of the command line.
func (a *app) read(f config.Found, without ...string) (*config.Settings, error) {
	s, err := config.Load(config.Source{Path: f.Path, StateDir: a.stateDir, Env: a.std.getenv,
		HubTools: hub.ToolNames(),
		Project:  f.Project,
		Without:  without, LeaveOut: !a.strict})
	if untrusted := (*config.UntrustedError)(nil); errors.As(err, &untrusted) {
		return nil, untrusted
	}
	if err := errors.Join(err, a.addRules(s)); err != nil {
		return nil, exitConfig.of(err)
	}
	for i := range s.Upstream.Servers {
		server := &s.Upstream.Servers[i]
		server.LoginCommand = hub.LoginLine(s, server.ID, a.std.getenv)
	}
	a.known.Add(secretsIn(s)...)
	if a.std.adjust != nil {
		a.std.adjust(s)
	}
	return s, nil
}

// secretsIn returns the secrets that the hub has by its config.
func secretsIn(s *config.Settings) (all []string) {
	entries := append(slices.Clone(s.Upstream.Servers), upstream.ServerConfig{Secrets: s.Secrets})
	for _, h := range s.Hooks.All {
		entry := upstream.ServerConfig{URL: h.URL, Headers: h.Headers}
		for _, name := range h.Env {
			entry.Env = append(entry.Env, name+"="+os.Getenv(name))
		}
		entries = append(entries, entry)
	}
	for _, entry := range entries {
		all = append(all, upstream.Secrets(entry)...)
	}
	return all
}

// again reads the file of s once more, for a hub that runs: nobody is asked, and no other file takes its place.
func (a *app) again(s *config.Settings) func() (*config.Settings, error) {
	f := config.Found{Path: s.Path, Project: s.TrustFile != ""}
	return func() (*config.Settings, error) { return a.read(f) }
}

// addRules adds the rules of --rules to s, which is nil where the config has faults.
func (a *app) addRules(s *config.Settings) error {
	if a.rules == "" {
		return nil
	}
	before, statErr := os.Stat(a.rules)
	set, err := policy.ReadRules(policy.CommandLine, a.rules)
	if err != nil || s == nil {
		return err
	}
	if statErr == nil {
		s.Read[a.rules] = before
	}
	s.Policy.Sets = append(s.Policy.Sets, set)
	s.RuleFiles = append(s.RuleFiles, a.rules)
	s.Patterns = slices.Concat(append(config.RulePatterns(set), s.Patterns)...)
	return nil
}

// buildHub builds the hub of the settings. observed may be nil.
func (a *app) buildHub(s *config.Settings, observed *telemetry.Telemetry) (*hub.Hub, error) {
	if err := run.CheckDepth(); err != nil {
		return nil, exitConfig.of(err)
	}
	var through []func(slog.Handler) slog.Handler
	if observed != nil {
		through = append(through, observed.Handler)
	}
	logger, err := newLogger(a, cmp.Or(a.logLevel, s.Log.Level), cmp.Or(a.logFormat, s.Log.Format), through...)
	if err != nil {
		return nil, exitUsage.of(err)
	}
	for _, w := range s.Warnings {
		logger.Warn("config", "warning", w)
	}
	return hub.New(s, logger, hub.Tools, observed, &a.known, configFile{})
}

// kept says where the records are: as the config does that serve would take, otherwise in the state
// directory. Of the config it reads no more than that and the policy: variables that servers need
// may be unset here. Without a policy that can be read the Path is "".
func (a *app) kept() (*config.Settings, error) {
	found, _ := a.find() // none: what is in the state directory needs no config
	for _, f := range found {
		others := []string{"mcpServers", "servers", "hub", "profiles", "hooks", "deferred", "results"}
		s, err := a.read(f, others...)
		if err != nil {
			if s, err = a.read(f, append(others, "policy")...); err == nil {
				s.Path = ""
			}
		}
		switch {
		case err == nil:
			return s, nil
		case errors.As(err, new(*config.UntrustedError)):
			continue
		case a.configPath != "":
			return nil, err
		}
		a.std.warn("the config cannot be read, so the records are those of the state directory: %v", err)
		break
	}
	state, err := a.findState()
	dir := filepath.Join(state, "journal")
	if _, statErr := os.Stat(dir); err == nil && errors.Is(statErr, fs.ErrNotExist) {
		a.std.note("mcp-toolhub: there is no journal in %q: nothing was called, or persist.journal.dir of a config "+
			"names another "+
			"place: give that config as --config", dir)
	}
	return &config.Settings{StateDir: state, Store: config.StoreSQLite, Journal: persist.JournalConfig{Dir: dir}}, err
}

// findState returns the state directory of the command line and the environment.
func (a *app) findState() (string, error) {
	state, err := config.StateDir(a.stateDir, a.std.getenv)
	return state, exitConfig.of(err)
}

// warn prints the warnings of a config.
func (a *app) warn(s *config.Settings) {
	for _, w := range s.Warnings {
		a.std.warn("%s", w)
	}
}
