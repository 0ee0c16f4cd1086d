package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/eval"
)

const evalSearchHelp = `Measure how well tools are found in a catalog, by queries whose answers are known.

Both files hold a JSON object a line. A tool has "server", "name", "description",
"inputSchema", and may have "title", "searchHint", "serverTitle", "serverDescription".
A query has "query" and "gold_groups", lists of server.tool of which any one is an answer
to that part of the query; it may have "id" and "kind".

Printed, per kind of query and overall: the share of groups among the first 1, 3 and 5
tools, among the 10 that an answer lets a model call, and among the 25 that it names
(in view); nDCG@5, MRR; the share of queries that nothing fits; what an answer and
the full list are in tokens, estimated; and how long a search takes.
--misses adds the queries with a group missing among the first 5.`

// evalCmd runs the command "eval search".
type evalCmd struct {
	*app
	tools, queries string
	misses         bool
}

func evalCommand(a *app) *cobra.Command {
	c := &evalCmd{app: a}
	cmd := leaf("search", "Measure how well tools are found", evalSearchHelp, c.run,
		"mcp-toolhub eval search --tools mine.tools.jsonl --queries mine.queries.jsonl -o json")
	flags := cmd.Flags()
	flags.StringVar(&c.tools, "tools", "", "`file` of tools, a JSON object a line")
	flags.StringVar(&c.queries, "queries", "", "`file` of queries, a JSON object a line")
	a.outputFlag(flags)
	flags.BoolVar(&c.misses, "misses", false, "also print the queries with a group missing among the first five")
	return group("eval", "Measure", "", cmd)
}

func (c *evalCmd) run(ctx context.Context) error {
	if c.tools == "" || c.queries == "" {
		return exitUsage.errorf("eval search needs --tools and --queries: name a file each")
	}
	bench, err := c.readBench()
	if err != nil {
		return err
	}
	report, err := bench.Run(ctx, bench.Catalog.Index())
	if err != nil {
		if ctx.Err() != nil {
			return exitInterrupted.of(err)
		}
		return err
	}
	if !c.misses {
		report.Misses = nil
	}
	if c.json() {
		return c.printJSON(report)
	}
	return c.printReport(&report)
}

func (c *evalCmd) readBench() (eval.Bench, error) {
	b := eval.Bench{Tokens: deferred.Tokens, AnswerTokens: deferred.AnswerTokens}
	tools, err := os.Open(c.tools)
	if err != nil {
		return b, fmt.Errorf("eval search: %w", err)
	}
	defer tools.Close()
	if b.Catalog, err = eval.ReadCatalog(tools); err != nil {
		return b, fmt.Errorf("eval search: %q: %w", c.tools, err)
	}
	queries, err := os.Open(c.queries)
	if err != nil {
		return b, fmt.Errorf("eval search: %w", err)
	}
	defer queries.Close()
	if b.Queries, err = eval.ReadQueries(queries); err != nil {
		return b, fmt.Errorf("eval search: %q: %w", c.queries, err)
	}
	return b, nil
}

func (c *evalCmd) printReport(r *eval.Report) error {
	t := newTable("KIND", "QUERIES", "RECALL@1", "@3", "@5", "CALLABLE", "IN VIEW", "NDCG@5", "MRR", "NOTHING FITS")
	row := func(kind string, f eval.Figures) {
		cells := []string{printable(kind), strconv.Itoa(f.Queries)}
		for _, figure := range []float64{f.Recall1, f.Recall3, f.Recall5, f.Callable, f.InView, f.NDCG5, f.MRR, f.Weak} {
			cells = append(cells, fmt.Sprintf("%.3f", figure))
		}
		t.add(cells...)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		row(kind, r.Kinds[kind])
	}
	row("overall", r.Overall)
	if err := c.std.printTable(t); err != nil {
		return err
	}
	c.std.say("\n%d tools of %d servers: about %d tokens; an answer: about %.0f (%.2f%%)", r.Tools,
		r.Servers, r.Tokens.FullList,
		r.Tokens.Answer, 100*r.Tokens.Share)
	c.std.say("a search: %.2f ms (median), %.2f ms (95%%)", r.Latency.P50, r.Latency.P95)
	for _, m := range r.Misses {
		c.std.say("\n%s (%s): %s\n  missing: %s\n  found:   %s", printable(m.ID), printable(m.Kind),
			printable(m.Query),
			printable(strings.Join(m.Missed, ", ")), printable(strings.Join(m.Found, ", ")))
	}
	return nil
}
