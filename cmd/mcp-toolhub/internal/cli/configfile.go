package cli

import (
	"context"
	"errors"
	"os"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/clients"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/internal/splice"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// configFile changes the config of a hub that runs, as commands do. It implements hub.ConfigFile.
type configFile struct{}

func (configFile) edit(s *config.Settings) (configEdit, error) {
	e := configEdit{app: &app{std: streams{getenv: os.LookupEnv}, stateDir: s.StateDir}, target: s.Path,
		trusted: s.TrustFile != ""}
	if s.Path == "" {
		return e, errors.New("the hub has no config file that could be changed")
	}
	return e, nil
}

func (c configFile) AddRule(s *config.Settings, rule *history.Suggestion) error {
	e, err := c.edit(s)
	if err != nil {
		return err
	}
	return e.change(func(f *splice.File) (*splice.File, error) { return putRule(f, rule) }, nil)
}

func (c configFile) Steer(ctx context.Context, s *config.Settings, to console.Steering, name string) (string, error) {
	e, err := c.edit(s)
	if err != nil {
		return "", err
	}
	edit := map[console.Steering]oneEdit{console.Enable: (*enableCmd).enable, console.Disable: (*enableCmd).disable,
		console.Remove: (*enableCmd).remove}[to]
	said, cmd := "", enableCmd{configEdit: e}
	err = cmd.change(func(f *splice.File) (after *splice.File, err error) {
		after, said, err = edit(&cmd, ctx, f, name)
		return after, err
	}, nil)
	return said, err
}

func (c configFile) AddServer(s *config.Settings, n console.NewServer, plan bool) (console.Plan, error) {
	e, err := c.edit(s)
	if err != nil {
		return console.Plan{}, err
	}
	cmd := addCmd{configEdit: e, here: clients.HomeDir}
	var args []string
	if n.Name != "" {
		args = []string{n.Name}
	}
	dash := len(args)
	if n.IsAddress() {
		dash, cmd.headers = -1, n.More
	} else {
		cmd.env = n.More
	}
	m, err := cmd.wanted(append(args, n.Words...), dash)
	if err == nil {
		err = cmd.open()
	}
	if err != nil {
		return console.Plan{}, err
	}
	after, starts, err := cmd.with(m)
	if err == nil && !plan {
		err = cmd.store(after, m.Secrets)
	}
	return console.Plan{NewServer: n, ID: m.Name, Starts: starts}, err
}
