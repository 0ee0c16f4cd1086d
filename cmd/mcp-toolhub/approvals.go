package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/approval"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
)

const approvalsHelp = `See and answer what running hubs ask: calls that wait until a person allows or denies them.

The hubs are those of this machine that run with the same state directory (--state-dir, or
your default one) and whose policy.ask.channels name queue, as they do by default; calls of
mcp-toolhub tools call are among them. No config file is needed.`

func (a *app) approvalsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "approvals", Short: "Allow and deny calls that wait for a person", Long: approvalsHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var format string
	cmd.PersistentFlags().StringVarP(&format, "output", "o", "table", "table or json")
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the calls that wait", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listApprovals(cmd.Context(), format) },
	}, &cobra.Command{
		Use: "show ID", Short: "Show one call that waits", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.showApproval(cmd.Context(), format, args[0]) },
	}, &cobra.Command{
		Use: "watch", Short: "Print calls as they begin and cease to wait, until interrupted", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.watchApprovals(cmd.Context(), format) },
	}, a.approveCommand(&format), a.denyCommand(&format), a.grantsCommand(&format))
	return cmd
}

func (a *app) approveCommand(format *string) *cobra.Command {
	var session, always bool
	var message, arguments string
	cmd := &cobra.Command{
		Use: "approve ID", Short: "Allow a call that waits", Args: cobra.ExactArgs(1),
		Example: "  mcp-toolhub approvals approve apr_… --session",
		RunE: func(cmd *cobra.Command, args []string) error {
			r := control.Reply{Choice: policy.AllowOnce, Sentence: message}
			if session {
				r.Choice = policy.AllowSession
			}
			if always {
				r.Choice = policy.AllowAlways
			}
			if arguments != "" {
				var err error
				if r.Arguments, err = a.readArguments(arguments); err != nil {
					return err
				}
			}
			return a.answerApproval(cmd.Context(), *format, args[0], r)
		},
	}
	cmd.Flags().BoolVar(&session, "session", false, "and calls like it, as long as the caller's session lasts")
	cmd.Flags().BoolVar(&always, "always", false, "and calls like it from now on; see approvals grants")
	cmd.MarkFlagsMutuallyExclusive("session", "always")
	cmd.Flags().StringVar(&message, "message", "", "a `sentence` to the model")
	cmd.Flags().StringVar(&arguments, "args", "", "let it run with these arguments instead, a JSON object; @FILE reads them from a file")
	return cmd
}

func (a *app) denyCommand(format *string) *cobra.Command {
	var always bool
	var message string
	cmd := &cobra.Command{
		Use: "deny ID", Short: "Deny a call that waits", Args: cobra.ExactArgs(1),
		Example: `  mcp-toolhub approvals deny apr_… --message "use the staging database"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			r := control.Reply{Choice: policy.DenyOnce, Sentence: message}
			if always {
				r.Choice = policy.DenyAlways
			}
			return a.answerApproval(cmd.Context(), *format, args[0], r)
		},
	}
	cmd.Flags().BoolVar(&always, "always", false, "and calls like it from now on; see approvals grants")
	cmd.Flags().StringVar(&message, "message", "", "a `sentence` to the model")
	return cmd
}

// findState is the state directory of the command line and the environment.
func (a *app) findState() (string, error) {
	state, err := config.StateDir(a.stateDir, a.std.getenv)
	if err != nil {
		return "", &exitError{exitConfig, err}
	}
	return state, nil
}

// hubs are the running hubs that can be asked.
func (a *app) hubs(ctx context.Context) ([]*control.Hub, error) {
	state, err := a.findState()
	if err != nil {
		return nil, err
	}
	all, err := control.Find(ctx, state)
	if err != nil {
		return nil, failed(err)
	}
	if len(all) == 0 {
		return nil, &exitError{exitNotReady, fmt.Errorf("no hub that asks runs with the state directory %q: start one, leave queue in its "+
			"policy.ask.channels, or name its --state-dir", state)}
	}
	return all, nil
}

func (a *app) openApprovals(ctx context.Context) ([]approval.View, error) {
	hubs, err := a.hubs(ctx)
	if err != nil {
		return nil, err
	}
	open := []approval.View{}
	for _, h := range hubs {
		some, err := h.Approvals(ctx)
		if err != nil {
			return nil, failed(err)
		}
		open = append(open, some...)
	}
	return open, nil
}

func (a *app) listApprovals(ctx context.Context, format string) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	open, err := a.openApprovals(ctx)
	if err != nil {
		return err
	}
	if format == "json" {
		return a.printJSON(open)
	}
	w := tabwriter.NewWriter(a.std.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tTOOL\tCALLER\tRISK\tLEFT\tAIMED AT")
	for i := range open {
		v := &open[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", v.ID, gate.Name(v.Binding.Tool), gate.Plain(v.Binding.Actor, 40), v.Risk,
			time.Until(v.Expires).Round(time.Second), gate.Plain(strings.Join(v.Targets, ", "), 80))
	}
	if err := w.Flush(); err != nil {
		return failed(err)
	}
	return nil
}

// withApproval runs do with the hub that knows the question.
func (a *app) withApproval(ctx context.Context, id string, do func(*control.Hub) error) error {
	hubs, err := a.hubs(ctx)
	if err != nil {
		return err
	}
	for _, h := range hubs {
		if err = do(h); !errors.Is(err, control.ErrNotFound) {
			break
		}
	}
	if err != nil {
		return failed(fmt.Errorf("approval %q: %w", id, err))
	}
	return nil
}

func (a *app) showApproval(ctx context.Context, format, id string) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	return a.withApproval(ctx, id, func(h *control.Hub) error {
		v, err := h.Approval(ctx, id)
		if err != nil {
			return err
		}
		if format == "json" {
			return a.printJSON(v)
		}
		line := func(label, text string) {
			if text != "" {
				fmt.Fprintf(a.std.out, "%-11s %s\n", label, gate.Plain(text, 8<<10))
			}
		}
		line("id", string(v.ID))
		line("state", string(v.State))
		line("tool", gate.Name(v.Binding.Tool))
		line("server", v.Binding.Server)
		if v.Binding.Tool.Source() == tool.SourceMCP {
			line("server says", v.Does)
		} else {
			line("does", v.Does)
		}
		line("caller", v.Binding.Actor)
		line("client", v.Client)
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
		line("suggested", string(v.Suggest))
		line("remembered", v.Covers)
		line("expires", v.Expires.Format(time.RFC3339))
		line("invocation", string(v.Invocation))
		for _, c := range v.Choices {
			line("answer", string(c))
		}
		return nil
	})
}

func (a *app) answerApproval(ctx context.Context, format, id string, r control.Reply) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	if u, err := user.Current(); err == nil {
		r.By = u.Username
	}
	return a.withApproval(ctx, id, func(h *control.Hub) error {
		v, err := h.Answer(ctx, id, r)
		if err != nil {
			return err
		}
		if format == "json" {
			return a.printJSON(v)
		}
		fmt.Fprintf(a.std.out, "%s: %s\n", v.ID, v.Answer.Choice)
		return nil
	})
}

func (a *app) watchApprovals(ctx context.Context, format string) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	hubs, err := a.hubs(ctx)
	if err != nil {
		return err
	}
	var printing sync.Mutex
	show := func(e approval.Event) {
		printing.Lock()
		defer printing.Unlock()
		if format == "json" {
			_ = json.NewEncoder(a.std.out).Encode(e) // one a line, for programs that read while it comes
			return
		}
		q := &e.Question
		answer := ""
		if q.Answer != nil {
			answer = " " + string(q.Answer.Choice) + " by " + gate.Plain(q.Answer.By, 80)
		}
		fmt.Fprintf(a.std.out, "%s %s %s %s%s\n", e.Kind, q.ID, gate.Name(q.Binding.Tool), gate.Plain(q.Binding.Actor, 40), answer)
	}
	var watching sync.WaitGroup
	ended := make([]error, len(hubs))
	for i, h := range hubs {
		watching.Go(func() { ended[i] = h.Watch(ctx, show) })
	}
	watching.Wait()
	if err := errors.Join(ended...); err != nil {
		return failed(err)
	}
	return nil
}

func (a *app) grantsCommand(format *string) *cobra.Command {
	cmd := &cobra.Command{
		Use: "grants", Short: "List and revoke answers that are remembered", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(&cobra.Command{
		Use: "list", Short: "List the answers that are remembered: those for good, and those for sessions of running hubs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listGrants(cmd.Context(), *format) },
	}, &cobra.Command{
		Use: "revoke ID", Short: "Forget an answer: calls like it are asked about again", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.revokeGrant(cmd.Context(), *format, args[0]) },
	})
	return cmd
}

// keptGrants are the answers for good, and the running hubs, which hold those for sessions.
func (a *app) keptGrants(ctx context.Context) (*policy.Grants, []*control.Hub, error) {
	state, err := a.findState()
	if err != nil {
		return nil, nil, err
	}
	kept, err := policy.OpenGrants(policy.GrantOptions{File: filepath.Join(state, grantsFile)})
	if err != nil {
		return nil, nil, failed(err)
	}
	hubs, err := control.Find(ctx, state)
	if err != nil {
		return nil, nil, failed(err)
	}
	return kept, hubs, nil
}

func (a *app) listGrants(ctx context.Context, format string) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	kept, hubs, err := a.keptGrants(ctx)
	if err != nil {
		return err
	}
	all := control.ViewsOf(kept.List())
	for _, h := range hubs {
		some, err := h.Grants(ctx)
		if err != nil {
			return failed(err)
		}
		for _, g := range some {
			if g.Session {
				all = append(all, g)
			}
		}
	}
	if format == "json" {
		return a.printJSON(all)
	}
	w := tabwriter.NewWriter(a.std.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tTHEN\tTOOL\tCALLER\tLASTS\tSCOPE")
	for _, g := range all {
		lasts := "always"
		if g.Expires != nil {
			lasts = "until " + g.Expires.Local().Format("2006-01-02 15:04")
		}
		if g.Session {
			lasts = "session, " + lasts
		}
		scope := gate.Covers(&policy.SuggestedGrant{Targets: g.Targets, Exact: g.Exact})
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", g.ID, g.Then, gate.Name(tool.Name(g.Tool)), gate.Plain(g.Actor, 40), lasts, scope)
	}
	if err := w.Flush(); err != nil {
		return failed(err)
	}
	return nil
}

func (a *app) revokeGrant(ctx context.Context, format, id string) error {
	if err := checkFormat(format); err != nil {
		return err
	}
	kept, hubs, err := a.keptGrants(ctx)
	if err != nil {
		return err
	}
	found := false
	for _, h := range hubs { // first: a hub that has read the file goes by what it has read
		switch err := h.Revoke(ctx, id); {
		case err == nil:
			found = true
		case !errors.Is(err, control.ErrNotFound):
			return failed(err)
		}
	}
	switch err := kept.Revoke(id); {
	case err == nil:
		found = true
	case !errors.Is(err, policy.ErrNoGrant):
		return failed(err)
	}
	if !found {
		return failed(fmt.Errorf("grant %q: %w", id, policy.ErrNoGrant))
	}
	if format == "json" {
		return a.printJSON(map[string]any{"id": id, "revoked": true})
	}
	fmt.Fprintf(a.std.out, "%s: revoked\n", id)
	return nil
}

func (a *app) printJSON(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return failed(err)
	}
	return a.print(text)
}
