package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/eval"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
)

const evalSearchHelp = `Measure how well tools are found in a catalog, by queries whose answers are known.

Both files hold a JSON object a line. A tool has "server", "name", "description",
"inputSchema", and may have "title", "searchHint", "serverTitle", "serverDescription".
A query has "query" and "gold_groups", lists of server.tool of which any one is an answer
to that part of the query; it may have "id" and "kind".

Printed, per kind of query and overall: the share of groups among the first 1, 3, 5 and 10
tools, nDCG@5, MRR, and the share in view, which counts the names of neighbouring tools
that an answer shows beside its five; what an answer and the full list are in tokens,
estimated; and how long a search takes. --misses adds the queries with a group missing.`

// evalFlags are the flags of eval search.
type evalFlags struct {
	tools, queries, format string
	misses                 bool
	without                []string
}

func (a *app) evalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "eval", Short: "Measure", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var f evalFlags
	of := &cobra.Command{
		Use: "search", Short: "Measure how well tools are found", Long: evalSearchHelp, Args: cobra.NoArgs,
		Example: "  mcp-toolhub eval search --tools mine.tools.jsonl --queries mine.queries.jsonl -o json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.evalSearch(cmd.Context(), f) },
	}
	flags := of.Flags()
	flags.StringVar(&f.tools, "tools", "", "`file` of tools, a JSON object a line")
	flags.StringVar(&f.queries, "queries", "", "`file` of queries, a JSON object a line")
	flags.StringVarP(&f.format, "output", "o", "table", "table or json")
	flags.BoolVar(&f.misses, "misses", false, "also print the queries with a group missing among the first five")
	flags.StringSliceVar(&f.without, "without", nil, "leave `ingredients` of the ranking out: "+strings.Join(ingredients(), ", "))
	cmd.AddCommand(of)
	return cmd
}

func ingredients() []string {
	var names []string
	for _, i := range search.Ingredients() {
		names = append(names, string(i))
	}
	return names
}

func (a *app) evalSearch(ctx context.Context, f evalFlags) error {
	if err := checkFormat(f.format); err != nil {
		return err
	}
	if f.tools == "" || f.queries == "" {
		return &exitError{exitUsage, errors.New("eval search needs --tools and --queries: name a file each")}
	}
	var o search.Options
	for _, name := range f.without {
		if !slices.Contains(ingredients(), name) {
			return &exitError{exitUsage, fmt.Errorf("no ingredient %q: use %s", name, strings.Join(ingredients(), ", "))}
		}
		o.Without = append(o.Without, search.Ingredient(name))
	}
	bench, err := readBench(f)
	if err != nil {
		return failed(err)
	}
	report, err := bench.Run(ctx, bench.Catalog.Index(o))
	if err != nil {
		if ctx.Err() != nil {
			return &exitError{exitInterrupted, err}
		}
		return failed(err)
	}
	if !f.misses {
		report.Misses = nil
	}
	if f.format == "json" {
		text, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return failed(err)
		}
		return a.print(text)
	}
	return a.printReport(&report)
}

func readBench(f evalFlags) (eval.Bench, error) {
	b := eval.Bench{Tokens: deferred.Tokens}
	tools, err := os.Open(f.tools)
	if err != nil {
		return b, fmt.Errorf("eval search: %w", err)
	}
	defer tools.Close()
	if b.Catalog, err = eval.ReadCatalog(tools); err != nil {
		return b, fmt.Errorf("eval search: %q: %w", f.tools, err)
	}
	queries, err := os.Open(f.queries)
	if err != nil {
		return b, fmt.Errorf("eval search: %w", err)
	}
	defer queries.Close()
	if b.Queries, err = eval.ReadQueries(queries); err != nil {
		return b, fmt.Errorf("eval search: %q: %w", f.queries, err)
	}
	return b, nil
}

func (a *app) printReport(r *eval.Report) error {
	w := tabwriter.NewWriter(a.std.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "KIND\tQUERIES\tRECALL@1\t@3\t@5\t@10\tNDCG@5\tMRR\tIN VIEW")
	row := func(kind string, f eval.Figures) {
		fmt.Fprintf(w, "%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\n", printable(kind), f.Queries, f.Recall1, f.Recall3, f.Recall5,
			f.Recall10, f.NDCG5, f.MRR, f.InView)
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Kinds)) {
		row(kind, r.Kinds[kind])
	}
	row("overall", r.Overall)
	if err := w.Flush(); err != nil {
		return failed(err)
	}
	fmt.Fprintf(a.std.out, "\n%d tools of %d servers: about %d tokens; an answer: about %.0f (%.2f%%)\n", r.Tools, r.Servers, r.Tokens.FullList,
		r.Tokens.Answer, 100*r.Tokens.Share)
	fmt.Fprintf(a.std.out, "a search: %.2f ms (median), %.2f ms (95%%)\n", r.Latency.P50, r.Latency.P95)
	for _, m := range r.Misses {
		fmt.Fprintf(a.std.out, "\n%s (%s): %s\n  missing: %s\n  found:   %s\n", printable(m.ID), printable(m.Kind), printable(m.Query),
			printable(strings.Join(m.Missed, ", ")), printable(strings.Join(m.Found, ", ")))
	}
	return nil
}
