package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/control"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

const statusHelp = `Show the hub of the config that runs: since when, for how many clients, and what its servers lack.

Exit code 4 where none runs, or a server is not ready.`

const logsHelp = `Show the latest lines of the log of the hub that runs; with SERVER those about that server, and what it
has written to stderr.`

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

// hubStatus is a hub that runs, as -o json has it.
type hubStatus struct {
	PID     int            `json:"pid"`
	Config  string         `json:"config"`
	Shared  bool           `json:"shared"` // it serves no client of its own
	Apart   string         `json:"apart,omitempty"`
	Report  control.Report `json:"report"`
	Version string         `json:"version"`
}

func (c statusCmd) status(ctx context.Context) error {
	path, err := c.configFile()
	if err != nil {
		return err
	}
	state, err := c.findState()
	if err != nil {
		return err
	}
	hubs, err := hub.Running(ctx, state, path)
	if err != nil {
		return err
	}
	all := []hubStatus{}
	for _, h := range hubs {
		r, err := h.Report(ctx)
		if err != nil {
			continue // it has ended meanwhile
		}
		r.Log = nil
		all = append(all, hubStatus{h.PID(), h.Config(), h.Shared(), h.Apart(), r, h.Version()})
	}
	switch {
	case c.json():
		if err := c.printJSON(all); err != nil {
			return err
		}
	case len(all) > 0:
		for _, s := range all {
			c.printStatus(s)
		}
	}
	if len(all) == 0 {
		return exitNotReady.of(errNoneRuns)
	}
	for _, st := range all[0].Report.Servers {
		if st.State != tool.ServerReady && st.State != tool.ServerStopped {
			return &exitError{exitNotReady, nil} // which the list has said
		}
	}
	return nil
}

func (c statusCmd) printStatus(s hubStatus) {
	kind := "for its first client, and those that join"
	if s.Shared {
		kind = "in the background"
	}
	if s.Apart != "" {
		c.std.say("beside it    process %d serves its client alone: %s", s.PID, printable(s.Apart))
		return
	}
	ready := 0
	for _, st := range s.Report.Servers {
		if st.State == tool.ServerReady || st.State == tool.ServerStopped {
			ready++
		}
	}
	c.std.say("hub          runs %s since %s, process %d, version %s", kind, moment(s.Report.Started), s.PID, s.Version)
	c.std.say("config       %s", s.Config)
	c.std.say("clients      %d", s.Report.Sessions)
	c.std.say("servers      %d of %d ready", ready, len(s.Report.Servers))
	for _, st := range s.Report.Servers {
		if st.State != tool.ServerReady && st.State != tool.ServerStopped {
			c.std.say("  %s", stateLine(st))
		}
	}
	for _, p := range s.Report.Problems {
		c.std.say("problem      %s", printable(strings.TrimSpace(p)))
	}
	if s.Version != hub.Version() {
		c.std.say("newer        this program is %s: mcp-toolhub restart lets the hub be it, too", hub.Version())
	}
}

func logsCommand(a *app) *cobra.Command {
	c := &statusCmd{app: a}
	run := func(ctx context.Context, words []string) error { return c.logs(ctx, words) }
	cmd := leaf("logs [SERVER]", "Show the log of the hub", logsHelp, run, "mcp-toolhub logs -f",
		"mcp-toolhub logs github")
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.ValidArgsFunction = a.complete(nil, serverNames)
	cmd.Flags().BoolVarP(&c.follow, "follow", "f", false, "go on with what comes, until Ctrl-C")
	return cmd
}

// shownLines is how many lines logs shows before it follows.
const shownLines = 100

// logs prints the log of the hub in the background, otherwise what the hub that runs has in memory.
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
	if err != nil || len(hubs) > 0 && !hubs[0].Shared() {
		if len(hubs) == 0 {
			return exitNotReady.of(errNoneRuns)
		}
		report, err := hubs[0].Report(ctx)
		if err != nil {
			return err
		}
		c.printLog(report.Log, server)
		c.std.note("its client, or its service, has the whole log")
		return nil
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return logLine(line, server) == "" })
	c.printLog(lines[max(0, len(lines)-shownLines):], server)
	again := time.NewTicker(300 * time.Millisecond)
	defer again.Stop()
	for left := []byte(nil); c.follow; {
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
		more, err := io.ReadAll(file)
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		left = append(left, more...)
		whole := bytes.LastIndexByte(left, '\n') + 1
		c.printLog(strings.Split(string(left[:whole]), "\n"), server)
		left = left[whole:]
	}
	return nil
}

func (c statusCmd) printLog(lines []string, server string) {
	for _, line := range lines {
		if text := logLine(line, server); text != "" {
			c.std.say("%s", printable(text))
		}
	}
}

// logLine returns a line of the log for a person; "" where it is not about the server.
func logLine(line, server string) string {
	var record map[string]any
	if json.Unmarshal([]byte(line), &record) != nil {
		if server != "" && !strings.Contains(line, "server="+server) {
			return ""
		}
		return line
	}
	of, _ := record["server"].(string)
	if server != "" && of != server {
		return ""
	}
	at, _ := record["time"].(string)
	if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
		at = moment(t)
	}
	text := fmt.Sprintf("%s %-5v ", at, record["level"])
	if of != "" {
		text += of + ": "
	}
	text += fmt.Sprint(record["msg"])
	for _, name := range slices.Sorted(maps.Keys(record)) {
		if !slices.Contains([]string{"time", "level", "msg", "server", "stream", "pid"}, name) {
			text += fmt.Sprintf(" %s=%v", name, record[name])
		}
	}
	return text
}
