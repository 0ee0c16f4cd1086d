package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

const callsHelp = `Look up calls: what was called, by whom, how it ended, and why.

Calls are read from the record store, which is brought up to date with the journal first:
records.db in the state directory, or the PostgreSQL database that persist.store of the config
names. No hub has to run, and any number may.`

const callsTimes = `
Times are 2h, 3d, "2 hours ago", today, yesterday, 2026-11-22 or "2026-11-22 09:30". --text looks
for all words in arguments, results and errors: "a phrase" in quotes, begin* as a beginning. Of a
large result it knows the preview.`

const callsStatsHelp = "Sum up calls, failures and latency by tool, server, actor, client, profile, status or class, " +
	`and the tokens
that models were spared: by previews of large results (4 characters a token), and by tools that the caller's list
deferred (once for each call that a client made).
`

const callsShowHelp = "Show the story of one call: who called, which tools the caller saw, the inputs, what was " +
	`decided and why, what ran, and the result.
While the hub runs, the latest 1,000 calls have their spans, too: how long each phase took.`

// callsCmd runs the commands below "calls".
type callsCmd struct {
	*app
	lookup.Search
	follow bool
	by     string
}

func callsCommand(a *app) *cobra.Command {
	c := &callsCmd{app: a, Search: lookup.Search{Is: make(map[store.Column]*string)}}
	limit := 0
	newest := func(ctx context.Context) error {
		c.Limit = limit // the other commands have none
		return c.list(ctx)
	}
	list := leaf("list", "List calls, newest first", "List calls, newest first.\n"+callsTimes, newest,
		"mcp-toolhub calls list --since yesterday --status failed",
		"mcp-toolhub calls list --tool 'mcp.github.*'",
		"mcp-toolhub calls list --text 'permission denied' -o json")
	stats := leaf("stats", "Sum up calls, failures and latency by tool, server or actor",
		callsStatsHelp+callsTimes, c.stats)
	c.filterFlags(list.Flags())
	c.filterFlags(stats.Flags())
	list.Flags().IntVar(&limit, "limit", 50, "print at most this many; 0 for all")
	list.Flags().BoolVarP(&c.follow, "follow", "f", false, "print calls that end from now on, until interrupted")
	stats.Flags().StringVar(&c.by, "by", string(store.Tool), "tool, server, actor, client, profile, status or class")
	cmd := group("calls", "Look up calls: list, show, stats, export, replay, erase", callsHelp, list,
		leaf("show ID", "Show the story of one call", callsShowHelp, c.show), stats, exportCommand(c),
		replayCommand(c), eraseCommand(c))
	a.outputFlag(cmd.PersistentFlags())
	return cmd
}

// filterFlags adds the flags that say which calls are meant.
func (c *callsCmd) filterFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Since, "since", "", "calls that began at this `time` or later")
	flags.StringVar(&c.Until, "until", "", "calls that began before this `time`")
	known := lookup.KnownValues()
	for _, column := range store.Columns() {
		if c.Is[column] == nil {
			c.Is[column] = new(string)
		}
		usage := "calls of this " + string(column)
		if known[column] == nil {
			usage += " (or a pattern with * and ?)"
		}
		flags.StringVar(c.Is[column], string(column), "", usage)
	}
	flags.StringVar(&c.Text, "text", "", "calls with these `words`")
}

// records is the record store, the settings that say where it is, and the calls that the flags mean.
type records struct {
	store.Store
	from *config.Settings
	q    store.Query
}

// open reads the flags, opens the record store, and brings it up to date.
func (c *callsCmd) open(ctx context.Context) (r records, err error) {
	if r.q, err = c.Search.Query(); err != nil {
		return r, exitUsage.of(err)
	}
	if r.from, err = c.kept(); err != nil {
		return r, err
	}
	r.Store, err = c.openRecords(ctx, r.from)
	return r, err
}

// openRecords opens the record store of the settings, and brings it up to date. What it has is read also where that
// cannot be done.
func (a *app) openRecords(ctx context.Context, from *config.Settings) (store.Store, error) {
	s, err := hub.OpenRecords(ctx, from)
	if err == nil {
		if err := store.FillUp(ctx, s, from.Journal.Dir); err != nil {
			a.std.warn("the newest calls may be missing: %v", err)
		}
	}
	return s, err
}

func (c *callsCmd) list(ctx context.Context) (err error) {
	r, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if c.follow {
		return c.followEnded(ctx, r)
	}
	calls, err := r.List(ctx, r.q)
	if err != nil {
		return err
	}
	t := newTable("STARTED", "STATUS", "ID", "TOOL", "TOOK", "CALLER", "CLASS", "APPROVED BY", "ADDRESS", "HUB")
	for i := range calls {
		t.add(c.callRow(&calls[i])...)
	}
	return c.printAs(append([]store.Call{}, calls...), t)
}

// shownID is the length of an id on a terminal. The commands take such a beginning.
const shownID = 16

// callRow is the row of a call: on a terminal with a short time and id.
func (c *callsCmd) callRow(call *store.Call) []string {
	started, id := call.Created.Local().Format(time.DateTime), string(call.ID)
	if isTerminal(c.std.out) {
		started, id = call.Created.Local().Format("01-02 15:04:05"), id[:min(shownID, len(id))]
	}
	took := ""
	if call.LatencyMS != nil {
		took = time.Duration(*call.LatencyMS * float64(time.Millisecond)).Round(10 * time.Microsecond).String()
	}
	return []string{started, string(call.Status), id, printable(call.Tool), took, printable(call.Actor), call.Class,
		printable(call.ApprovedBy), call.Address, printable(call.Hub)}
}

// followEvery is the time between two looks for calls that have ended.
const followEvery = 500 * time.Millisecond

// followEnded prints the calls that end from now on.
func (c *callsCmd) followEnded(ctx context.Context, r records) error {
	after, err := r.Position(ctx)
	if err != nil {
		return err
	}
	r.q.Limit = 0
	err = hub.Poll(ctx, followEvery, func() (bool, error) {
		if err := store.FillUp(ctx, r, r.from.Journal.Dir); err != nil {
			return true, err
		}
		var calls []store.Call
		calls, after, err = r.Ended(ctx, after, r.q)
		for i := range calls {
			if err == nil {
				err = c.printEnded(&calls[i])
			}
		}
		return false, err
	})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// printEnded prints one call: a line, or with -o json an object in a line.
func (c *callsCmd) printEnded(call *store.Call) error {
	if !c.json() {
		_, err := fmt.Fprintln(c.std.out, strings.Join(c.callRow(call), "  "))
		return err
	}
	text, err := json.Marshal(call)
	if err != nil {
		return err
	}
	return c.std.print(text)
}

func (c *callsCmd) stats(ctx context.Context) (err error) {
	if !slices.Contains(store.Columns(), store.Column(c.by)) {
		return exitUsage.errorf("--by %q is not known: use tool, server, actor, client, profile, status or class", c.by)
	}
	r, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	stats, err := r.Stats(ctx, store.Column(c.by), r.q)
	if err != nil {
		return err
	}
	t := newTable(strings.ToUpper(c.by), "CALLS", "FAILED", "TOKENS KEPT", "BY DEFERRAL", "P50 MS", "P95 MS", "MAX MS")
	for _, st := range stats {
		t.add(printable(cmp.Or(st.Value, "-")), textfile.Grouped(st.Calls), textfile.Grouped(st.Failed),
			textfile.Grouped(st.KeptTokens), textfile.Grouped(st.DeferredTokens), inMS(st.P50MS), inMS(st.P95MS),
			inMS(st.MaxMS))
	}
	return c.printAs(stats, t)
}

func inMS(ms float64) string { return strconv.FormatFloat(ms, 'f', 2, 64) }

func (c *callsCmd) show(ctx context.Context, word string) (err error) {
	id := tool.InvocationID(word)
	r, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if id, err = lookup.Whole(ctx, r, id); err != nil {
		return err
	}
	told, err := lookup.ReadStory(ctx, r, id)
	if err != nil {
		return err
	}
	hubs, _ := control.Find(ctx, r.from.StateDir) // without a hub that has the call there is the record alone
	for _, h := range hubs {
		if spans, err := h.Spans(ctx, id); err == nil {
			told.Spans = spans
			break
		}
	}
	if c.json() {
		return c.printJSON(told)
	}
	lines := strings.Split(told.Text(), "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return c.std.print([]byte(strings.Join(lines, "\n")))
}
