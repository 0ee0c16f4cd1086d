package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const statusHelp = `Show the hub of the config that runs: since when, for how many clients, and what its servers lack.

Exit code 4 where none runs, or a server is not ready.`

const logsHelp = `Show the latest lines of the log of the hub that runs; with SERVER those about
that server, and what it has written to stderr.`

// statusCmd runs the commands "status" and "logs".
type statusCmd struct {
	*app
	follow bool
}

func statusCommand(a *app) *cobra.Command {
	cmd := leaf("status", "Show how the hub is", statusHelp, statusCmd{app: a}.status, "mcp-toolhub status")
	a.outputFlag(cmd.Flags())
	return cmd
}

func (c statusCmd) status(ctx context.Context) error {
	hubs, _, err := allRunning(ctx, c.app)
	if err != nil {
		return err
	}
	all := []control.Report{}
	for _, h := range hubs {
		r, err := h.Report(ctx)
		if err != nil {
			continue // it has ended meanwhile
		}
		r.Log = nil
		all = append(all, r)
	}
	if c.json() {
		if err := c.printJSON(all); err != nil {
			return err
		}
	} else {
		for _, r := range all {
			c.printStatus(r)
		}
	}
	if len(all) == 0 {
		return exitNotReady.of(errNoneRuns)
	}
	if slices.ContainsFunc(all[0].Servers, isUnready) {
		return &exitError{exitNotReady, nil} // which the list has said
	}
	return nil
}

// isUnready reports whether a server should be ready and is not.
func isUnready(st tool.ServerStatus) bool {
	return st.State != tool.ServerReady && st.State != tool.ServerStopped
}

func (c statusCmd) printStatus(r control.Report) {
	kind := "for its first client, and those that join"
	if r.Shared {
		kind = "in the background"
	}
	if r.Apart != "" {
		c.std.say("beside it  process %d serves its client alone: %s", r.PID, printable(r.Apart))
		return
	}
	unready := slices.DeleteFunc(slices.Clone(r.Servers), func(st tool.ServerStatus) bool { return !isUnready(st) })
	c.std.say("hub        runs %s since %s, process %d, version %s", kind, console.Clock(r.Started), r.PID, r.Version)
	c.std.say("config     %s", r.Config)
	c.std.say("clients    %d", r.Sessions)
	c.std.say("servers    %d of %d ready", len(r.Servers)-len(unready), len(r.Servers))
	for _, st := range unready {
		c.std.say("  %s", stateLine(st))
	}
	for _, p := range r.Problems {
		c.std.say("problem    %s", printable(strings.TrimSpace(p)))
	}
	if r.Version != hub.Version() {
		c.std.say("newer      this program is %s: mcp-toolhub restart lets the hub be it, too", hub.Version())
	}
}

func logsCommand(a *app) *cobra.Command {
	c := &statusCmd{app: a}
	cmd := leaf("logs [SERVER]", "Show the log of the hub", logsHelp, c.logs, "mcp-toolhub logs -f",
		"mcp-toolhub logs github")
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.ValidArgsFunction = a.complete(nil, serverNames)
	cmd.Flags().BoolVarP(&c.follow, "follow", "f", false, "go on with what comes, until Ctrl-C")
	return cmd
}

// shownLines is the number of lines that logs shows at first.
const shownLines = 100

// logs prints the log of the hub that start has started, otherwise what the hub that runs has in
// memory.
func (c statusCmd) logs(ctx context.Context, words []string) error {
	server := strings.Join(words, "")
	hubs, _, err := c.running(ctx)
	if err != nil {
		return err
	}
	state, err := c.findState()
	if err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(state, hub.LogFile))
	if err != nil || len(hubs) > 0 && !hubs[0].Launched() {
		if len(hubs) == 0 {
			return exitNotReady.of(errNoneRuns)
		}
		report, err := hubs[0].Report(ctx)
		if err != nil {
			return err
		}
		c.printLog(hub.LogLines(report.Log, server, shownLines))
		c.std.note("its client, or its service, has the whole log")
		return nil
	}
	defer file.Close()
	left, shown := []byte(nil), shownLines
	err = hub.Poll(ctx, 300*time.Millisecond, func() (bool, error) {
		more, err := io.ReadAll(file)
		if err != nil {
			return true, fmt.Errorf("read the log: %w", err)
		}
		left = append(left, more...)
		whole := bytes.LastIndexByte(left, '\n') + 1
		c.printLog(hub.LogLines(strings.Split(string(left[:whole]), "\n"), server, shown))
		left, shown = left[whole:], math.MaxInt
		return !c.follow, nil
	})
	if ctx.Err() != nil {
		err = nil
	}
	return err
}

func (c statusCmd) printLog(lines []string) {
	for _, line := range lines {
		c.std.say("%s", printable(line))
	}
}
