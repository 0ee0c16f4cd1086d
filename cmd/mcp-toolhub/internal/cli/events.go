package cli

import (
	"bufio"
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/events"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
)

const eventsHelp = `Print the events of calls: what is called, asked, run and answered, as it happens.`

const eventsTailHelp = `Print events of Agent Tool 0.2.0, one JSON object a line, oldest first.

They are those of the journal. A hub that runs has them at /events, too, as a stream for holders of
a token with events: read. With --follow it goes on, and begins with what happens from now on, or
with the time that --since says.

Formats: agenttool prints tool_event objects, cloudevents wraps each in a CloudEvent 1.0,
acp prints session/update and session/request_permission of the Agent Client Protocol.
--filter takes an expression in CEL over event, which is a tool_event.`

// eventsCmd runs the command "events tail".
type eventsCmd struct {
	*app
	follow                bool
	since, format, filter string
}

func eventsCommand(a *app) *cobra.Command {
	c := &eventsCmd{app: a}
	tail := leaf("tail", "Print events, one JSON object a line", eventsTailHelp, c.tail,
		"mcp-toolhub events tail --since 1h",
		`mcp-toolhub events tail --follow --filter 'event.event_type == "tool.invocation.failed"'`)
	flags := tail.Flags()
	flags.StringVar(&c.since, "since", "",
		"begin with events of this `time`: 1h, yesterday, 2026-11-22 … (default: all; with --follow none)")
	flags.BoolVar(&c.follow, "follow", false, "go on with what happens, until interrupted")
	flags.StringVar(&c.format, "format", string(events.AgentTool), "agenttool, cloudevents or acp")
	flags.StringVar(&c.filter, "filter", "", "print events that this CEL `expression` is true of")
	return group("events", "Print what happens to calls", eventsHelp, tail)
}

func (c *eventsCmd) tail(ctx context.Context) error {
	out := bufio.NewWriter(c.std.out)
	take := func(m events.Message) error {
		_, err := out.Write(append(m.Text, '\n'))
		return err
	}
	from, err := c.kept()
	if err != nil {
		return err
	}
	o := events.Options{Dir: from.Journal.Dir, Format: events.Format(c.format), Filter: c.filter, Follow: c.follow,
		Idle: out.Flush}
	if c.since != "" {
		if o.Since, err = lookup.ParseWhen(c.since, time.Now()); err != nil {
			return exitUsage.of(err)
		}
	}
	if c.follow {
		o.Damaged = func(err error) { c.std.note("mcp-toolhub: %v", err) }
	}
	return errors.Join(events.Stream(ctx, o, take), out.Flush())
}
