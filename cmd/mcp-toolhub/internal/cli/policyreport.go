package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

const policyReportHelp = `Say which rules, remembered answers and servers were not used for a time.

A rule is used where a decision names it. A rule without an id is named by its place in the
list. What is younger than --since is not listed. With -o json, all are.`

func (c policyCmd) reportCommand() *cobra.Command {
	cmd := leaf("report", "Say which rules, remembered answers and servers were not used for a time",
		policyReportHelp, c.report, "mcp-toolhub policy report --since 90d")
	c.sinceFlag(cmd, "90d")
	return cmd
}

// usage is a rule, grant or server, and how it was used.
type usage struct {
	Kind  string     `json:"kind"` // rule, grant or server
	Name  string     `json:"name"`
	What  string     `json:"what,omitempty"` // where the rule stands, what the grant covers
	Calls int        `json:"calls"`
	Last  *time.Time `json:"last_used,omitempty"` // of a server also before the time that is looked at
	Young bool       `json:"young,omitempty"`     // a grant that was made since
}

// reported is what report -o json prints.
type reported struct {
	Since   time.Time  `json:"since"`
	Records *time.Time `json:"records_begin,omitempty"` // where records do not reach back that far
	All     []usage    `json:"uses"`
}

func (c *policyCmd) report(ctx context.Context) error {
	from, err := lookup.ParseWhen(c.since, time.Now())
	if err != nil {
		return exitUsage.of(err)
	}
	l, err := c.lookBack(ctx)
	if err != nil {
		return err
	}
	out := reported{Since: from.UTC()}
	uses := history.Uses(l.Calls)
	for _, r := range l.Gate.Engine.Rules() {
		out.All = append(out.All, usageOf("rule", r.Ref, cmp.Or(r.Place, r.Reason), uses[r.Ref]))
	}
	if err := c.addGrantsAndServers(ctx, l, &out); err != nil {
		return err
	}
	if len(l.Calls) > 0 && l.Calls[0].At.Sub(from) > 24*time.Hour {
		out.Records = &l.Calls[0].At
	}
	if c.json() {
		return c.printJSON(out)
	}
	return c.printReport(&out)
}

func usageOf(kind, name, what string, u history.Use) usage {
	one := usage{Kind: kind, Name: name, What: what, Calls: u.Calls}
	if u.Calls > 0 {
		one.Last = &u.Last
	}
	return one
}

func (c policyCmd) addGrantsAndServers(ctx context.Context, l *hub.Look, out *reported) (err error) {
	uses := history.Uses(l.Calls)
	grants, err := hub.OpenGrants(l.Settings, false)
	if err != nil {
		return err
	}
	for _, g := range grants.List() {
		one := usageOf("grant", g.ID, fmt.Sprintf("%s %s for %s: %s", g.Then, g.Tool, g.Actor,
			gate.Covers(&policy.SuggestedGrant{Targets: g.Scopes, Exact: g.Exact})), uses["grant/"+g.ID])
		one.Young = g.Created.After(out.Since)
		out.All = append(out.All, one)
	}
	records, err := hub.OpenRecords(ctx, l.Settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	for _, sc := range l.Settings.Upstream.Servers {
		if sc.Disabled {
			continue
		}
		id := sc.ID
		one := usage{Kind: "server", Name: id}
		for _, call := range l.Calls {
			if t := l.Tools(call.Tool); t != nil && t.Server == id {
				one.Calls++
			}
		}
		last, err := records.List(ctx, store.Query{Is: map[store.Column]string{store.Server: id}, Limit: 1})
		if err != nil {
			return err
		}
		if len(last) > 0 {
			if one.Last = &last[0].Created; last[0].Created.After(out.Since) {
				one.Calls = max(one.Calls, 1) // of a tool that is not there any more
			}
		}
		out.All = append(out.All, one)
	}
	return nil
}

func (c policyCmd) printReport(r *reported) error {
	t := newTable("KIND", "NAME", "LAST USED", "WHAT")
	unused := make(map[string]int)
	sum := make(map[string]int)
	for _, u := range r.All {
		sum[u.Kind]++
		if u.Calls > 0 || u.Young {
			continue
		}
		unused[u.Kind]++
		last := "-"
		if u.Last != nil {
			last = u.Last.Local().Format(time.DateOnly)
		}
		t.add(u.Kind, printable(u.Name), last, printable(u.What))
	}
	if len(t.rows) > 1 {
		if err := c.std.printTable(t); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("Not used since %s: %d of %s, %d of %s, %d of %s", r.Since.Local().Format(time.DateOnly),
		unused["rule"],
		textfile.Count(sum["rule"], "rule"), unused["grant"], textfile.Count(sum["grant"], "grant"), unused["server"],
		textfile.Count(sum["server"], "server"))
	if r.Records != nil {
		text += "; records begin on " + r.Records.Local().Format(time.DateOnly) + " only"
	}
	return c.std.print([]byte(text))
}
