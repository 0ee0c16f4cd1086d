package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/telemetry"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

func (c *callsCmd) show(ctx context.Context, word string) (err error) {
	id := tool.InvocationID(word)
	s, from, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if id, err = lookup.Whole(ctx, s, id); err != nil {
		return err
	}
	told, err := lookup.ReadStory(ctx, s, id)
	if err != nil {
		return err
	}
	told.Spans = spansOf(ctx, from.StateDir, id)
	if c.json() {
		return c.printJSON(told)
	}
	return c.std.print([]byte(printableLines(told.Text())))
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
