package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/events"
	"github.com/mcp-toolhub/mcp-toolhub/internal/jsonrpc"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const eventsHelp = `Print the events of calls: what is called, asked, run and answered, as it happens.`

const eventsTailHelp = `Print events of Agent Tool 0.2.0, one JSON object a line, oldest first.

They are those of the journal, or with --url those of a running hub, which wants a token with
events: read in $MCP_TOOLHUB_TOKEN. With --follow it goes on, and begins with what happens from
now on, or so long ago as --since says.

Formats: agenttool prints tool_event objects, cloudevents wraps each in a CloudEvent 1.0,
acp prints session/update and session/request_permission of the Agent Client Protocol.
--filter takes an expression in CEL over event, which is a tool_event.`

// eventsCmd runs the command "events tail".
type eventsCmd struct {
	*app
	since               time.Duration
	given               func() bool // since is
	follow              bool
	format, filter, url string
}

func eventsCommand(a *app) *cobra.Command {
	c := &eventsCmd{app: a}
	tail := leaf("tail", "Print events, one JSON object a line", eventsTailHelp, c.tail,
		"mcp-toolhub events tail --since 1h",
		`mcp-toolhub events tail --follow --filter 'event.event_type == "tool.invocation.failed"'`,
		"mcp-toolhub events tail --follow --format acp --url http://127.0.0.1:8808")
	flags := tail.Flags()
	c.given = func() bool { return flags.Changed("since") }
	flags.DurationVar(&c.since, "since", 0,
		"begin with events so long ago, for instance 1h (default: all; with --follow none)")
	flags.BoolVar(&c.follow, "follow", false, "go on with what happens, until interrupted")
	flags.StringVar(&c.format, "format", string(events.AgentTool), "agenttool, cloudevents or acp")
	flags.StringVar(&c.filter, "filter", "", "print events that this CEL `expression` is true of")
	flags.StringVar(&c.url, "url", "", "`URL` of a running hub, for instance http://127.0.0.1:8808")
	return group("events", "Print what happens to calls", eventsHelp, tail)
}

func (c *eventsCmd) tail(ctx context.Context) error {
	if c.since < 0 {
		return exitUsage.errorf("--since is a time ago: write 1h, not -1h")
	}
	out := bufio.NewWriter(c.std.out)
	take := func(m events.Message) error {
		_, err := out.Write(append(m.Text, '\n'))
		return err
	}
	if c.url != "" {
		return c.remote(ctx, func(m events.Message) error { return errors.Join(take(m), out.Flush()) })
	}
	from, err := c.kept()
	if err != nil {
		return err
	}
	o := events.Options{Dir: from.Journal.Dir, Format: events.Format(c.format), Filter: c.filter, Follow: c.follow,
		Idle: out.Flush}
	if c.given() {
		o.Since = time.Now().Add(-c.since)
	}
	if c.follow {
		o.Damaged = func(err error) { c.std.note("mcp-toolhub: %v", err) }
	}
	return errors.Join(events.Stream(ctx, o, take), out.Flush())
}

// eventsAgain is how long the command waits before it asks again for a stream that has ended.
const eventsAgain = time.Second

// remote prints the events of the hub at --url. A stream that breaks is resumed after the last event.
func (c *eventsCmd) remote(ctx context.Context, take func(events.Message) error) error {
	u, err := parseURL(c.url)
	if err != nil {
		return err
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/mcp"), "/events") + "/events"
	q := url.Values{events.FollowParameter: {strconv.FormatBool(c.follow)}, events.FormatParameter: {c.format}}
	if c.filter != "" {
		q.Set(events.FilterParameter, c.filter)
	}
	if c.given() {
		q.Set(events.SinceParameter, c.since.String())
	}
	u.RawQuery = q.Encode()
	last, opened := tool.EventID(""), false
	for {
		resp, err := c.open(ctx, u, last)
		if err == nil {
			opened = true
			last, err = readEvents(resp.Body, last, take)
			resp.Body.Close()
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, new(*exitError)), !opened, !c.follow:
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(eventsAgain):
		}
	}
}

// open asks a hub for its stream. What asking again does not change is an exitError.
func (c *eventsCmd) open(ctx context.Context, u *url.URL, last tool.EventID) (*http.Response, error) {
	headers := map[string]string{"Accept": "text/event-stream"}
	if last != "" {
		headers["Last-Event-ID"] = string(last)
	}
	resp, err := c.std.ask(ctx, http.MethodGet, u, headers)
	if err != nil {
		return nil, fmt.Errorf("ask the hub at %s for its events: %w", u.Host, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	err = fmt.Errorf("the hub at %s refuses: %s", u.Host, cmp.Or(strings.TrimSpace(string(said)), resp.Status))
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, exitNotReady.errorf("%w: set $%s to one that has events: read", err, tokenVariable)
	case resp.StatusCode < http.StatusInternalServerError:
		return nil, exitFailure.of(err)
	}
	return nil, err
}

// maxEvent bounds one event of a hub: the journal keeps large results elsewhere.
const maxEvent = 16 << 20

// readEvents reads a stream to its end, and returns the id of the last event.
func readEvents(r io.Reader, last tool.EventID, take func(events.Message) error) (tool.EventID, error) {
	stream := jsonrpc.NewEventReader(r, maxEvent, nil)
	for {
		ev, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return last, fmt.Errorf("read events: %w", err)
		}
		last = tool.EventID(ev.ID)
		if err := take(events.Message{ID: last, Text: ev.Data}); err != nil {
			return last, exitFailure.of(err)
		}
	}
}
