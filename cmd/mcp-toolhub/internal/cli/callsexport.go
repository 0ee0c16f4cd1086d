package cli

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/statefile"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/evidence"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy"
)

const exportHelp = `Write calls to a file, newest first.

Formats: jsonl has one JSON object a line for each call: what calls list -o json prints of it,
and in objects all its records of Agent Tool 0.2.0. csv has one row a call, with a first row
of titles. evidence has the lines of the journal as they are, with proof that they are as the
hub wrote them: see mcp-toolhub evidence verify --help.
`

// exportCmd runs the command "calls export".
type exportCmd struct {
	*callsCmd
	format, output string
	without        []string
}

func exportCommand(calls *callsCmd) *cobra.Command {
	c := &exportCmd{callsCmd: calls}
	cmd := leaf("export", "Write calls to a file: JSON lines, CSV or evidence", exportHelp+callsTimes,
		c.run, "mcp-toolhub calls export --since yesterday --format csv --output calls.csv")
	cmd.Args = cobra.NoArgs
	c.filterFlags(cmd.Flags())
	cmd.Flags().StringVar(&c.format, "format", "jsonl", "jsonl, csv or evidence")
	cmd.Flags().StringVar(&c.output, "output", "-", "the `file` to write; - for stdout")
	cmd.Flags().StringSliceVar(&c.without, "without", nil,
		"of evidence: leave the values of these `members` of call records out, such as model_input,result")
	return cmd
}

// run writes the calls that the flags mean.
func (c *exportCmd) run(cmd *cobra.Command, _ []string) (err error) {
	ctx := cmd.Context()
	var given []string // the flags that say which calls are meant
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Changed && f.Name != "format" && f.Name != "output" && f.Name != "without" {
			given = append(given, fmt.Sprintf("--%s %q", f.Name, f.Value))
		}
	})
	if !slices.Contains([]string{"jsonl", "csv", "evidence"}, c.format) {
		return exitUsage.errorf("format %q is not known: use jsonl, csv or evidence", c.format)
	}
	if err := c.checkWithout(); err != nil {
		return exitUsage.of(err)
	}
	r, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return c.toFile(func(out io.Writer) error {
		switch c.format {
		case "evidence":
			return c.evidence(ctx, out, &r, given)
		case "csv":
			return csvRows(ctx, &r, out)
		}
		return jsonLines(ctx, &r, out)
	})
}

// checkWithout refuses what --without cannot leave out: a misspelt name would leave a secret in.
func (c *exportCmd) checkWithout() error {
	if len(c.without) > 0 && c.format != "evidence" {
		return fmt.Errorf("--without is for --format evidence: %s has all members", c.format)
	}
	known := persist.CallMembers()
	for _, name := range c.without {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--without %q: call records have no such member that can be left out; they have %s", name,
				strings.Join(known, ", "))
		}
	}
	return nil
}

// eachCall yields the calls that the query means, and holds few of them at a time.
func eachCall(ctx context.Context, s store.Store, q store.Query, yield func(*store.Call) error) error {
	const page = 500
	for q.Limit = page; ; {
		calls, err := s.List(ctx, q)
		for i := range calls {
			if err == nil {
				err = yield(&calls[i])
			}
		}
		if err != nil || len(calls) < page {
			return err
		}
		q.Before = &calls[len(calls)-1]
	}
}

// toFile gives write the output. A file is there once it is whole, and for its owner alone to read.
func (c *exportCmd) toFile(write func(io.Writer) error) error {
	buffered := func(to io.Writer) error {
		out := bufio.NewWriter(to)
		return errors.Join(write(out), out.Flush())
	}
	if c.output == "-" {
		return buffered(c.std.out)
	}
	if _, err := os.Stat(filepath.Dir(c.output)); err != nil {
		return err
	}
	return statefile.WriteFrom(c.output, buffered)
}

func jsonLines(ctx context.Context, r *records, out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return eachCall(ctx, r, r.q, func(c *store.Call) error {
		lines, err := r.Lines(ctx, c.ID)
		if err != nil {
			return err
		}
		whole := struct {
			*store.Call
			Objects []json.RawMessage `json:"objects"`
		}{Call: c}
		err = persist.Derive(lines, func(object json.RawMessage) bool {
			whole.Objects = append(whole.Objects, object)
			return true
		})
		return errors.Join(err, encoder.Encode(whole))
	})
}

func csvRows(ctx context.Context, r *records, out io.Writer) error {
	w := csv.NewWriter(out)
	titles := w.Write([]string{"invocation_id", "created_at", "ended_at", "latency_ms", "tool_id", "server",
		"actor_ref", "client", "profile", "status", "error_class", "approved_by", "client_address", "hub"})
	err := eachCall(ctx, r, r.q, func(c *store.Call) error {
		return w.Write(csvRow(c))
	})
	w.Flush()
	return errors.Join(titles, err, w.Error())
}

func csvRow(c *store.Call) []string {
	ended, took := "", ""
	if c.Ended != nil {
		ended, took = c.Ended.Format(time.RFC3339Nano), strconv.FormatFloat(*c.LatencyMS, 'f', -1, 64)
	}
	row := []string{string(c.ID), c.Created.Format(time.RFC3339Nano), ended, took, c.Tool, c.Server, c.Actor,
		c.Client, c.Profile, string(c.Status), c.Class, c.ApprovedBy, c.Address, c.Hub}
	for i, cell := range row {
		if strings.IndexAny(cell, "=+-@\t\r") == 0 {
			row[i] = "'" + cell // or a spreadsheet would run what a client calls itself
		}
	}
	return row
}

// evidence writes the bundle.
func (c *exportCmd) evidence(ctx context.Context, out io.Writer, r *records, flags []string) (err error) {
	keeper := hub.NewKeeper(r.from.StateDir, r.from.Journal.Dir)
	if err := keeper.Extend(); err != nil && !errors.Is(err, evidence.ErrDamaged) { // the bundle shows what is damaged
		return err
	}
	wanted := func([]byte) bool { return true }
	if len(flags) > 0 {
		if wanted, err = c.linesOf(ctx, r); err != nil {
			return err
		}
	}
	return keeper.Write(out, evidence.Selection{Line: wanted, Without: c.without, Hub: "mcp-toolhub/" + hub.Version(),
		Query: strings.Join(flags, " "), Policy: policyInForce(r.from)})
}

// linesOf returns which lines of the journal are of the calls that the flags mean, or of the
// surfaces and tools that these name.
func (c *exportCmd) linesOf(ctx context.Context, r *records) (func(line []byte) bool, error) {
	calls, named := make(map[tool.InvocationID]bool), make(map[string]bool)
	err := eachCall(ctx, r, r.q, func(call *store.Call) error {
		lines, err := r.Lines(ctx, call.ID)
		for _, line := range lines {
			named[rawjson.Text(line, "surface_id")] = true
		}
		calls[call.ID], named[call.Tool] = true, true
		return err
	})
	return func(line []byte) bool {
		if rawjson.Text(line, "object") != string(persist.ObjectStanding) {
			return calls[tool.InvocationID(rawjson.Text(line, "invocation_id"))]
		}
		found := named[rawjson.Text(line, "key")]
		records, _ := rawjson.Get(line, "records")
		_ = rawjson.Elements(records, func(record []byte) bool {
			kind := tool.Object(rawjson.Text(record, "object"))
			found = found || named[rawjson.Text(record, "tool_id")] || kind == tool.ObjectNamespace ||
				kind == tool.ObjectPolicy
			return !found
		})
		return found
	}, err
}

// policyInForce is the policy of the config that there is now; nil where none was read.
func policyInForce(s *config.Settings) any {
	if s.Path == "" {
		return nil
	}
	engine, err := policy.Compile(policy.Settings{Mode: s.Policy.Mode, Sets: s.Policy.Sets})
	if err != nil {
		return nil
	}
	sets := make(map[policy.Source][]policy.Rule)
	for _, set := range s.Policy.Sets {
		for _, rule := range set.Rules {
			rule.Place = ""
			sets[set.Source] = append(sets[set.Source], rule)
		}
	}
	modes := make(map[string]policy.Mode)
	for _, door := range []string{"stdio", "http", "cli"} {
		modes[door] = s.Policy.Mode.Of(door)
	}
	return map[string]any{"modes": modes, "rules": sets, "version": engine.Version()}
}
