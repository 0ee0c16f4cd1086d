package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

// grantsCmd runs the commands below "approvals grants".
type grantsCmd struct{ *app }

func grantsCommand(a *app) *cobra.Command {
	c := grantsCmd{a}
	return group("grants", "List and revoke answers that are remembered", "",
		leaf("list", "List the answers that are remembered: those for good, and those for sessions of running hubs",
			"", c.list),
		leaf("revoke ID", "Forget an answer: calls like it are asked about again", "", c.revoke))
}

// remembered are the grants of the file, and of the running hubs, which hold those for sessions.
type remembered struct {
	file *policy.Grants
	hubs []*control.Client
	all  []control.Grant
}

func (c grantsCmd) open(ctx context.Context) (r remembered, err error) {
	state, err := c.findState()
	if err != nil {
		return r, err
	}
	if r.file, err = policy.OpenGrants(policy.GrantOptions{File: filepath.Join(state, hub.GrantsFile)}); err != nil {
		return r, err
	}
	if r.hubs, err = control.Find(ctx, state); err != nil {
		return r, err
	}
	r.all = control.Grants(r.file.List())
	for _, h := range r.hubs {
		some, err := h.Grants(ctx)
		if err != nil {
			return r, err
		}
		for _, g := range some {
			if !slices.ContainsFunc(r.all, func(have control.Grant) bool { return have.ID == g.ID }) {
				r.all = append(r.all, g)
			}
		}
	}
	return r, nil
}

func (c grantsCmd) list(ctx context.Context) error {
	r, err := c.open(ctx)
	if err != nil {
		return err
	}
	t := newTable("ID", "THEN", "TOOL", "CALLER", "LASTS", "SCOPE")
	for _, g := range r.all {
		lasts := "always"
		if g.Expires != nil {
			lasts = "until " + g.Expires.Local().Format("2006-01-02 15:04")
		}
		if g.Session {
			lasts = "session, " + lasts
		}
		t.add(g.ID, g.Then, gate.ToolName(tool.Name(g.Tool)), gate.Plain(g.Actor, 40), lasts,
			gate.Covers(&policy.SuggestedGrant{Targets: g.Targets, Exact: g.Exact}))
	}
	return c.printAs(r.all, t)
}

func (c grantsCmd) revoke(ctx context.Context, id string) error {
	r, err := c.open(ctx)
	if err != nil {
		return err
	}
	all := make([]string, len(r.all))
	for i, g := range r.all {
		all[i] = g.ID
	}
	if id, err = lookup.Meant(id, all); err != nil {
		return err
	}
	if err := r.revoke(ctx, id); err != nil {
		return err
	}
	if c.json() {
		return c.printJSON(map[string]any{"id": id, "revoked": true})
	}
	c.std.say("%s: revoked", id)
	return nil
}

// revoke forgets a grant wherever it is.
func (r *remembered) revoke(ctx context.Context, id string) error {
	found := false
	for _, h := range r.hubs { // first: a hub that has read the file goes by what it has read
		switch err := h.Revoke(ctx, id); {
		case err == nil:
			found = true
		case !errors.Is(err, control.ErrNotFound):
			return err
		}
	}
	switch err := r.file.Revoke(id); {
	case err == nil:
		found = true
	case !errors.Is(err, policy.ErrNoGrant):
		return err
	}
	if !found {
		return fmt.Errorf("grant %q: %w", id, policy.ErrNoGrant)
	}
	return nil
}
