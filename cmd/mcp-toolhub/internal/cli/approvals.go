package cli

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

const approvalsHelp = `See and answer what running hubs ask: calls that wait until a person allows or denies them.

The hubs are those of this machine that run with the same state directory (--state-dir, or
your default one) and whose policy.ask.channels name queue, as they do by default; calls of
mcp-toolhub tools call are among them. No config file is needed.`

// approvalsCmd runs the commands below "approvals", except for grants.
type approvalsCmd struct{ *app }

func approvalsCommand(a *app) *cobra.Command {
	c := approvalsCmd{a}
	cmd := group("approvals", "Allow and deny calls that wait for a person", approvalsHelp,
		leaf("list", "List the calls that wait", "", c.list),
		leaf("show ID", "Show one call that waits", "", c.show),
		c.answerCommand("approve ID", "Allow a call that waits", "mcp-toolhub approvals approve apr_… --session",
			policy.AllowOnce, policy.AllowAlways, policy.AllowOffered),
		c.answerCommand("deny ID", "Deny a call that waits",
			`mcp-toolhub approvals deny apr_… --message "use the staging database"`,
			policy.DenyOnce, policy.DenyAlways, policy.DenyOffered),
		grantsCommand(a))
	a.outputFlag(cmd.PersistentFlags())
	return cmd
}

// answerCommand returns a command that answers with the first choice, or, where its flag says so, for
// good with the second or as it is offered with the third.
func (c approvalsCmd) answerCommand(use, short, example string, choices ...policy.Choice) *cobra.Command {
	var r control.Reply
	var forGood, asOffered, session bool
	var arguments string
	cmd := leaf(use, short, "", func(ctx context.Context, id string) (err error) {
		switch r.Choice = choices[0]; {
		case forGood:
			r.Choice = choices[1]
		case asOffered:
			r.Choice = choices[2]
		case session:
			r.Choice = policy.AllowSession
		}
		if arguments != "" {
			if r.Arguments, err = c.readArguments(arguments); err != nil {
				return err
			}
		}
		return c.answer(ctx, id, r)
	}, example)
	cmd.Flags().BoolVar(&forGood, "always", false, "and calls like it from now on; see approvals grants")
	cmd.Flags().BoolVar(&asOffered, "offered", false, "and all that the question offers, as approvals show says it")
	cmd.MarkFlagsMutuallyExclusive("always", "offered")
	cmd.Flags().StringVar(&r.Sentence, "message", "", "a `sentence` to the model")
	if choices[0] == policy.AllowOnce {
		cmd.Flags().BoolVar(&session, "session", false, "and calls like it, as long as the caller's session lasts")
		cmd.MarkFlagsMutuallyExclusive("session", "always", "offered")
		cmd.Flags().StringVar(&arguments, "args", "",
			"let it run with these arguments instead, a JSON object; @FILE reads them from a file")
	}
	return cmd
}

// hubs finds the running hubs that ask people. There is at least one where err is nil.
func (c approvalsCmd) hubs(ctx context.Context) ([]*control.Client, error) {
	state, err := c.findState()
	if err != nil {
		return nil, err
	}
	all, err := control.Find(ctx, state)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, exitNotReady.errorf(
			"no hub that asks runs with the state directory %q: mcp-toolhub start starts one, which has queue in its "+
				"policy.ask.channels by default", state)
	}
	return all, nil
}

func (c approvalsCmd) list(ctx context.Context) error {
	hubs, err := c.hubs(ctx)
	if err != nil {
		return err
	}
	open := []approval.View{}
	for _, h := range hubs {
		some, err := h.Approvals(ctx)
		if err != nil {
			return err
		}
		open = append(open, some...)
	}
	t := newTable("ID", "TOOL", "CALLER", "RISK", "LEFT", "AIMED AT")
	for i := range open {
		v := &open[i]
		t.add(string(v.ID), gate.ToolName(v.Binding.Tool), gate.Plain(v.Binding.Actor, 40), v.Risk,
			time.Until(v.Expires).Round(time.Second).String(), gate.Plain(strings.Join(v.Targets, ", "), 80))
	}
	return c.printAs(open, t)
}

// at runs do with the hub that knows the approval, and its whole id: id may be the beginning of one that is open.
func (c approvalsCmd) at(ctx context.Context, id string, do func(h *control.Client, id string) error) error {
	hubs, err := c.hubs(ctx)
	if err != nil {
		return err
	}
	var all []string
	for _, h := range hubs {
		open, _ := h.Approvals(ctx)
		for i := range open {
			all = append(all, string(open[i].ID))
		}
	}
	if id, err = lookup.Meant(id, all); err != nil {
		return err
	}
	for _, h := range hubs {
		if err = do(h, id); !errors.Is(err, control.ErrNotFound) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("approval %q: %w", id, err)
	}
	return nil
}

func (c approvalsCmd) show(ctx context.Context, id string) error {
	return c.at(ctx, id, func(h *control.Client, id string) error {
		v, err := h.Approval(ctx, id)
		if err != nil {
			return err
		}
		if c.json() {
			return c.printJSON(v)
		}
		line := func(label, text string) {
			if text != "" {
				c.std.say("%-11s %s", label, gate.Plain(text, 8<<10))
			}
		}
		line("id", string(v.ID))
		line("state", string(v.State))
		line("tool", gate.ToolName(v.Binding.Tool))
		line("server", v.Binding.Server)
		if v.Binding.Tool.Source() == tool.SourceMCP {
			line("server says", v.Does)
		} else {
			line("does", v.Does)
		}
		line("caller", v.Binding.Actor)
		line("client", v.Client)
		line("says it is", gate.AgentLine(v.Agent))
		line("why", v.Reason)
		line("risk", v.Risk)
		line("tags", strings.Join(v.Tags, " "))
		for _, t := range v.Targets {
			line("aimed at", t)
		}
		if v.MoreTargets > 0 {
			line("aimed at", fmt.Sprintf("%d more", v.MoreTargets))
		}
		line("runs in", v.Binding.CWD)
		line("gets env", strings.Join(v.Env, " "))
		line("arguments", v.Arguments)
		if v.Cut {
			line("", "(cut)")
		}
		if v.Waiting > 1 {
			line("counts for", fmt.Sprintf("%d calls like this", v.Waiting))
		}
		line("suggested", string(v.Suggest))
		line("remembered", v.Covers)
		line("offered", v.Offer)
		line("expires", v.Expires.Format(time.RFC3339))
		line("invocation", string(v.Invocation))
		for _, choice := range v.Choices {
			line("answer", string(choice))
		}
		return nil
	})
}

func (c approvalsCmd) answer(ctx context.Context, id string, r control.Reply) error {
	if u, err := user.Current(); err == nil {
		r.By = u.Username
	}
	return c.at(ctx, id, func(h *control.Client, id string) error {
		v, err := h.Answer(ctx, id, r)
		if err != nil {
			return err
		}
		if c.json() {
			return c.printJSON(v)
		}
		c.std.say("%s: %s", v.ID, v.Answer.Choice)
		return nil
	})
}
