package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func (c *callsCmd) show(ctx context.Context, id tool.InvocationID) (err error) {
	s, from, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	told, err := readStory(ctx, s, id)
	if err != nil {
		return failed(err)
	}
	told.Spans = spansOf(ctx, from.StateDir, id)
	if c.json() {
		return c.printJSON(told)
	}
	return c.print([]byte(printableLines(told.text())))
}

// spansOf asks the hubs that run for the spans of a call; nil where none of them has it.
func spansOf(ctx context.Context, state string, id tool.InvocationID) *telemetry.Spans {
	hubs, _ := control.Find(ctx, state) // without a hub there is the record alone
	for _, h := range hubs {
		if spans, err := h.Spans(ctx, id); err == nil {
			return spans
		}
	}
	return nil
}

// printableLines makes a text of several lines safe for a terminal.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// text is the story for a person at a terminal.
func (t *story) text() string {
	s := t.shown()
	var b strings.Builder
	rows := func(all []console.Row) {
		for _, r := range all {
			fmt.Fprintf(&b, "%-12s%s\n", r.Name, r.Value)
		}
	}
	fmt.Fprintf(&b, "%s  %s  %s\n", s.ID, s.Tool, s.Status)
	rows(s.Rows)
	b.WriteString(s.Changed + "\n")
	for _, step := range s.Steps {
		fmt.Fprintf(&b, "%+11.3f ms  %-16s  %s\n", float64(step.After.Microseconds())/1000, step.What, step.Said)
	}
	if t.Spans != nil {
		fmt.Fprintf(&b, "\n%-14s  %-14s  SPAN\n", "AFTER", "TOOK")
		for _, span := range t.Spans.All {
			fmt.Fprintf(&b, "%+11.3f ms  %11.3f ms  %s\n", milliseconds(span.After), milliseconds(span.Took), span.Name)
		}
		if t.Spans.Trace != "" {
			fmt.Fprintf(&b, "These are sent to the collector, as the trace %s.\n", t.Spans.Trace)
		}
	}
	b.WriteByte('\n')
	if t.Result == nil {
		rows([]console.Row{{Name: "result", Value: "none so far"}})
	}
	rows(s.Result)
	return b.String()
}
