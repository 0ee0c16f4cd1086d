package cli

import (
	"context"
	"os"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// configFile changes the config of a hub that runs, as commands do. It implements hub.ConfigFile.
type configFile struct{}

func editOf(s *config.Settings) configEdit {
	return configEdit{app: &app{std: streams{getenv: os.LookupEnv}, stateDir: s.StateDir}, target: s.Path,
		trusted: s.TrustFile != ""}
}

func (configFile) AddRule(s *config.Settings, rule *history.Suggestion) error {
	e := editOf(s)
	return e.change(func(f *splice.File) (*splice.File, error) { return putRule(f, rule) }, nil)
}

func (configFile) Steer(ctx context.Context, s *config.Settings, to console.Steering, name string) (said string,
	err error) {
	c := enableCmd{configEdit: editOf(s)}
	edit := map[console.Steering]oneEdit{console.Enable: (*enableCmd).enable, console.Disable: (*enableCmd).disable,
		console.Remove: (*enableCmd).remove}[to]
	err = c.change(func(f *splice.File) (after *splice.File, err error) {
		after, said, err = edit(&c, ctx, f, name)
		return after, err
	}, nil)
	return said, err
}

func (configFile) AddServer(s *config.Settings, n console.NewServer, plan bool) (console.Plan, error) {
	c := addCmd{configEdit: editOf(s), here: clients.HomeDir}
	args := n.Words
	if n.Name != "" {
		args = append([]string{n.Name}, n.Words...)
	}
	dash := len(args) - len(n.Words)
	if c.env = n.More; n.IsAddress() {
		dash, c.env, c.headers = -1, nil, n.More
	}
	m, err := c.wanted(args, dash)
	if err == nil {
		err = c.open()
	}
	if err != nil {
		return console.Plan{}, err
	}
	after, starts, err := c.with(m)
	if err == nil && !plan {
		err = c.store(after, m.Secrets)
	}
	return console.Plan{NewServer: n, ID: m.Name, Starts: starts}, err
}
