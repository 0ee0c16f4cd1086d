package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/eraser"
	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

const eraseHelp = `Erase what was said in all calls of one caller, or in single calls: arguments, results, errors,
progress, reasons and what hooks said, in the journal, the record store and the stored results.
With --actor also answers that are remembered for that caller.

What stays is that each call was made: by whom, of which tool, when and how it ended; and who
has erased it, when and why. Evidence of it still verifies.

With a call goes the batch that it is a part of, and the calls of that batch. Calls that still
run, and bundles that were exported before, are left out. If interrupted, run it again.`

// eraseCmd runs the command "calls erase".
type eraseCmd struct {
	*callsCmd
	actor, reason string
	yes           bool
}

func eraseCommand(calls *callsCmd) *cobra.Command {
	c := &eraseCmd{callsCmd: calls}
	cmd := leaf("erase [ID...]", "Erase arguments and results of calls, and keep the fact", eraseHelp, c.erase,
		"mcp-toolhub calls erase --actor actor:http/ann --reason 'request of 2026-11-20'",
		"mcp-toolhub calls erase inv_… --yes")
	cmd.Flags().StringVar(&c.actor, "actor", "", "all calls of this `caller`, as calls list shows it")
	cmd.Flags().StringVar(&c.reason, "reason", "", "`why`, for the record")
	cmd.Flags().BoolVarP(&c.yes, "yes", "y", false, "do not ask")
	return cmd
}

// erasure counts what was erased. -o json prints it.
type erasure struct {
	Calls    []tool.InvocationID `json:"invocation_ids"`
	Lines    int                 `json:"lines"`    // of the journal and of the record store that have changed
	Payloads int                 `json:"payloads"` // results, artifacts and inputs
	Grants   int                 `json:"grants"`
	Running  []tool.InvocationID `json:"running,omitempty"` // left out

	wanted, runs map[tool.InvocationID]bool
}

func (c *eraseCmd) erase(ctx context.Context, ids []string) (err error) {
	if (c.actor == "") == (len(ids) == 0) {
		return exitUsage.errorf("say what to erase: give --actor, or ids of calls, and not both")
	}
	r, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	e := erasure{Calls: []tool.InvocationID{}, wanted: make(map[tool.InvocationID]bool),
		runs: make(map[tool.InvocationID]bool)}
	if c.actor != "" {
		err = e.allOf(ctx, r, c.actor)
	}
	for _, word := range ids {
		id, idErr := lookup.Whole(ctx, r, tool.InvocationID(word))
		if idErr == nil {
			idErr = e.family(ctx, r, id)
		}
		err = errors.Join(err, idErr)
	}
	if err != nil {
		return err
	}
	if !c.yes {
		question := fmt.Sprintf("Erase what was said in %s? It cannot be brought back. [y/N] ",
			textfile.Count(len(e.Calls), "call"))
		if ok, err := c.confirm(ctx, question); err != nil || !ok {
			return err
		}
	}
	if err := c.carryOut(ctx, &r, &e); err != nil {
		return fmt.Errorf("%w: not all is erased: run the command again", err)
	}
	if c.json() {
		return c.printJSON(e)
	}
	c.std.say("erased: %s, %s and %s", textfile.Count(len(e.Calls), "call"),
		textfile.Count(e.Payloads, "stored result"),
		textfile.Count(e.Grants, "remembered answer"))
	if n := len(e.Running); n > 0 {
		c.std.warn("%s still running and left out: erase again when they have ended", textfile.Count(n, "call"))
	}
	return nil
}

// add takes a call in.
func (e *erasure) add(id tool.InvocationID, ended *time.Time) {
	switch {
	case e.wanted[id] || e.runs[id]:
	case ended == nil:
		e.runs[id], e.Running = true, append(e.Running, id)
	default:
		e.wanted[id], e.Calls = true, append(e.Calls, id)
	}
}

// allOf takes in all calls of an actor.
func (e *erasure) allOf(ctx context.Context, s store.Store, actor string) error {
	return eachCall(ctx, s, store.Query{Is: map[store.Column]string{store.Actor: actor}},
		func(call *store.Call) error {
			if call.Actor == actor { // which is no pattern here
				e.add(call.ID, call.Ended)
			}
			return nil
		})
}

// family takes in a call, the call whose part it is, and all parts of that: each of them may have
// the arguments or the result of another.
func (e *erasure) family(ctx context.Context, s store.Store, id tool.InvocationID) error {
	told, err := lookup.ReadStory(ctx, s, id)
	if err != nil {
		return err
	}
	root := &told.Invocation
	for root.ParentInvocationID != "" {
		up, err := lookup.ReadStory(ctx, s, root.ParentInvocationID)
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return err
		}
		if ended := up.Invocation.EndedAt; ended != nil && ended.Before(root.CreatedAt) {
			break // the call goes on with it, and is no part of it
		}
		root = &up.Invocation
	}
	e.add(root.InvocationID, root.EndedAt)
	parts := map[tool.InvocationID]bool{root.InvocationID: true}
	q := store.Query{Since: root.CreatedAt, Is: map[store.Column]string{store.Actor: root.ActorRef}}
	if root.EndedAt != nil {
		q.Until = root.EndedAt.Add(time.Microsecond)
	}
	var within []store.Call
	if err := eachCall(ctx, s, q, func(call *store.Call) error {
		within = append(within, *call)
		return nil
	}); err != nil {
		return err
	}
	for _, call := range slices.Backward(within) { // parents come first
		lines, err := s.Lines(ctx, call.ID)
		if err != nil {
			return err
		}
		parent := ""
		for _, line := range lines {
			parent = cmp.Or(rawjson.Text(line, "parent_invocation_id"), parent)
		}
		if parts[tool.InvocationID(parent)] {
			parts[call.ID] = true
			e.add(call.ID, call.Ended)
		}
	}
	return nil
}

// carryOut erases, and forgets the grants of the actor.
func (c *eraseCmd) carryOut(ctx context.Context, r *records, e *erasure) error {
	stored, err := payload.Open(ctx, r.from.Stored, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer stored.Close()
	places := eraser.Places{Journal: r.from.Journal, Chains: hub.NewKeeper(r.from.StateDir, r.from.Journal.Dir),
		Records: r, Payloads: stored}
	e.Lines, e.Payloads, err = places.Erase(ctx, &eraser.Erasure{Calls: e.Calls, By: hub.LocalActor().Ref(),
		Reason: c.reason, Payloads: func(p payload.Entry) bool {
			id := tool.InvocationOf(p.ID)
			return e.wanted[id] || c.actor != "" && p.Actor == c.actor && !e.runs[id]
		}})
	if err != nil || c.actor == "" {
		return err
	}
	e.Grants, err = grantsCmd{c.app}.forget(ctx, c.actor)
	return err
}

// forget revokes the grants of an actor.
func (c grantsCmd) forget(ctx context.Context, actor string) (n int, err error) {
	r, err := c.open(ctx)
	if err != nil {
		return 0, err
	}
	for _, g := range r.all {
		if g.Actor != actor {
			continue
		}
		if err := r.revoke(ctx, g.ID); err != nil && !errors.Is(err, policy.ErrNoGrant) {
			return n, err
		}
		n++
	}
	return n, nil
}
