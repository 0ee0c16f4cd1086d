package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/downstream"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const serversHelp = `Show the state of each server, as the hub of the config that runs has it. If none runs, the servers
are started for the purpose and stopped again.`

func serversCommand(a *app) *cobra.Command {
	var wide bool
	cmd := leaf("servers", "Show the state of each server", serversHelp, func(ctx context.Context) error {
		return showServers(ctx, a, wide)
	}, "mcp-toolhub servers --wide")
	a.outputFlag(cmd.Flags())
	cmd.Flags().BoolVar(&wide, "wide", false, wideUsage)
	return cmd
}

// tokenVariable names the environment variable with the token for a hub that wants one.
const tokenVariable = "MCP_TOOLHUB_TOKEN"

// parseURL parses the address of a running hub.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, exitUsage.errorf("--url %q: write it like http://127.0.0.1:8808", text)
	}
	return u, nil
}

// ask sends a request to a running hub, with the token of the environment.
func (s streams) ask(ctx context.Context, method string, u *url.URL, more map[string]string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if token, ok := s.getenv(tokenVariable); ok {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for name, value := range more {
		req.Header.Set(name, value)
	}
	return http.DefaultClient.Do(req)
}

// sayStarting says to a person that the command starts servers, because no hub runs.
func (s streams) sayStarting() {
	if isTerminal(s.err) {
		s.note("no hub runs: servers are started for this command, and stopped again")
	}
}

// showServers reports how the servers of the config are: of the hub that runs, otherwise it starts them.
func showServers(ctx context.Context, a *app, wide bool) error {
	hubs, _, err := a.running(ctx)
	if err != nil {
		return err
	}
	if len(hubs) > 0 {
		r, err := hubs[0].Report(ctx)
		if err != nil {
			return err
		}
		return a.reportServers(downstream.Health{Status: r.Status, Sessions: r.Sessions, Servers: r.Servers,
			Problems: r.Problems, Warnings: r.Warnings}, wide)
	}
	a.std.sayStarting()
	return a.startedServers(ctx, wide)
}

// startedServers starts every server of the config, and reports how that went.
func (a *app) startedServers(ctx context.Context, wide bool) error {
	return a.withHub(ctx, hub.Want{All: true},
		func(h *hub.Hub) error { return a.reportServers(hub.Model{Hub: h}.Health(), wide) })
}

// reportServers prints the state of each server, and fails where one that should be ready is not.
func (a *app) reportServers(h downstream.Health, wide bool) error {
	if err := a.printServers(h, wide); err != nil {
		return err
	}
	for _, s := range h.Servers {
		if isUnready(s) {
			return exitNotReady.errorf("server %q is not ready: %s", s.Server, s.LastError)
		}
	}
	return nil
}

func (a *app) printServers(h downstream.Health, wide bool) error {
	if a.json() {
		return a.printJSON(h)
	}
	t := newTable("SERVER", "STATE", "SINCE", "TRANSPORT", "TOOLS", "CALLS", "ERRORS", "SESSIONS", "EXCLUDED", "QUEUED",
		"PROMPTS", "RESOURCES", "DROPPED", "REPAIRED", "PROTOCOL")
	states := map[tool.ServerState]string{tool.ServerNeedsAuth: "needs sign-in", tool.ServerNeedsSetup: "needs setup"}
	for _, s := range h.Servers {
		sessions := "shared" // otherwise those with a connection of their own
		if s.Isolation != "" {
			sessions = strconv.Itoa(s.Sessions)
		}
		t.add(s.Server, cmp.Or(states[s.State], string(s.State)), console.Clock(s.Since), s.Transport, strconv.Itoa(s.Tools),
			fmt.Sprint(s.Calls), fmt.Sprint(s.Errors), sessions, strconv.Itoa(len(s.Excluded)), strconv.Itoa(s.Queued),
			strconv.Itoa(s.Prompts), strconv.Itoa(s.Resources+s.Templates), fmt.Sprint(s.Dropped),
			strconv.Itoa(s.Repaired), s.ProtocolVersion)
	}
	width := tableWidth
	if wide {
		width = math.MaxInt
	}
	if _, err := io.WriteString(a.std.out, t.text(width, a.std.isColoured(a.std.out))); err != nil {
		return err
	}
	for _, s := range h.Servers {
		all := s.SignIns
		if all == nil && s.SignIn != nil {
			all = []*tool.SignIn{s.SignIn}
		}
		for _, one := range all {
			a.std.say("\n%s: %s", s.Server, printable(one.String()))
			if len(one.Wanted) > 0 {
				a.std.say("  it has asked for more since (%s): %s",
					printable(strings.Join(one.Wanted, " ")), printable(one.Login))
			}
		}
		if s.LastError != "" {
			a.std.say("\n%s: %s", s.Server, s.LastError)
			if s.Hint != "" {
				a.std.say("  %s", s.Hint)
			}
			if s.NextTry != nil {
				a.std.say("  next try: %s", s.NextTry.Local().Format(time.DateTime))
			}
		}
		for _, e := range s.Excluded {
			a.std.say("\n%s: tool %q is excluded (%s): %s", s.Server, e.Tool, e.Code, e.Reason)
		}
	}
	a.printFindings(h)
	for _, p := range h.Problems {
		a.std.say("\nhub: %s", strings.TrimSpace(p))
	}
	for _, w := range h.Warnings {
		a.std.say("\nwarning: %s", w)
	}
	return nil
}

// printFindings prints what a person should look at in what servers offer.
func (a *app) printFindings(h downstream.Health) {
	const most = 20 // of one server
	for _, s := range h.Servers {
		if len(s.Changed) > 0 {
			a.std.say("\n%s: described otherwise than at the last start: %s", s.Server, strings.Join(s.Changed, ", "))
			a.std.say("  read what they say now: mcp-toolhub tools show NAME")
		}
		for _, f := range s.Findings[:min(len(s.Findings), most)] {
			a.std.say("\n%s: look at %q: %s", s.Server, f.About, f.Reason)
		}
		if over := len(s.Findings) - most; over > 0 {
			a.std.say("\n%s: and %d more: -o json has all", s.Server, over)
		}
	}
}
