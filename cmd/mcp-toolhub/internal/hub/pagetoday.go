package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/console"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

const (
	staleAfter = 20 * time.Second // bounds how old Today may be
	todayCalls = 2000             // the newest calls of today say who uses a server
)

// Today counts for a small part of the time only: a page asks every two seconds.
func (p *pageHub) Today(ctx context.Context) (console.Today, error) {
	p.counting.Lock()
	defer p.counting.Unlock()
	began := time.Now()
	if began.Before(p.countAgain) {
		return p.today, nil
	}
	s, err := p.store(ctx, false)
	if err != nil {
		return p.today, err
	}
	opened := time.Now() // which takes its time once
	q := store.Query{Since: time.Date(began.Year(), began.Month(), began.Day(), 0, 0, 0, 0, began.Location())}
	clients, clientsErr := s.Stats(ctx, store.Client, q) // a list is that of one client: each counts once
	servers, serversErr := s.Stats(ctx, store.Server, q)
	midnight, hourAgo := q.Since, began.Add(-time.Hour)
	if q.Limit = todayCalls; hourAgo.Before(midnight) {
		q.Since = hourAgo
	}
	calls, err := s.List(ctx, q)
	if err = errors.Join(clientsErr, serversErr, err); err != nil {
		return p.today, err
	}
	t := console.Today{Servers: make(map[string]console.ServerToday)}
	for _, st := range clients {
		t.Calls, t.Failed = t.Calls+st.Calls, t.Failed+st.Failed
		t.Kept, t.Deferred = t.Kept+st.KeptTokens, t.Deferred+st.DeferredTokens
		if st.Value != "" {
			t.Clients = append(t.Clients, st.Value)
		}
	}
	for _, st := range servers {
		t.Servers[st.Value] = console.ServerToday{Stat: st}
	}
	for i := range calls {
		c := &calls[i]
		if ago := began.Sub(c.Created); ago < time.Hour {
			minute := &t.Hour[len(t.Hour)-1-max(0, int(ago/time.Minute))]
			minute.Calls++
			if c.Ended != nil && c.Status != tool.StatusSucceeded && c.Status != tool.StatusYielded &&
				c.Class != string(tool.ClassSchemaNotLoaded) { // as Stats counts them
				minute.Failed++
			}
		}
		server := t.Servers[c.Server]
		if c.Client != "" && !c.Created.Before(midnight) && !slices.Contains(server.Clients, c.Client) {
			server.Clients = append(server.Clients, c.Client)
			t.Servers[c.Server] = server
		}
	}
	p.today, p.countAgain = t, time.Now().Add(min(staleAfter, 20*time.Since(opened)))
	return t, nil
}

func (p *pageHub) Clients() int { return p.server.Health().Sessions + p.guests.count() }

// recordedArguments returns the arguments of a call as the records have them; "" if they do not.
func recordedArguments(ctx context.Context, s store.Store, id tool.InvocationID) string {
	lines, _ := s.Lines(ctx, id) // the call may have been removed meanwhile
	for _, line := range lines {
		if given, ok := rawjson.Get(line, "model_input"); ok {
			return string(given)
		}
	}
	return ""
}

// shownLog bounds what is read of the log's end, and the lines of it that are shown.
const (
	shownLog   = 1 << 20
	shownLines = 200
)

// Log implements console.Hub. As for "mcp-toolhub logs", the log is the file of a hub in the
// background, which has what a server wrote; otherwise what the hub has in memory, which has not.
func (p *pageHub) Log(server string) []string {
	var all []string
	if end, ok := p.logEnd(); ok {
		all = strings.Split(end, "\n")
	} else if p.telemetry != nil {
		all = p.telemetry.Log()
	}
	return LogLines(all, server, shownLines)
}

// LogLines returns the last lines of a log about a server for a person, so many at most.
func LogLines(all []string, server string, most int) (lines []string) {
	for _, line := range all {
		if line = logLine(line, server); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-most):]
}

// logEnd returns the whole lines at the end of the log file. ok is false where the hub writes none.
func (p *pageHub) logEnd() (end string, ok bool) {
	name := filepath.Join(p.Settings().StateDir, LogFile)
	info, err := os.Stat(name)
	own, ownErr := os.Stderr.Stat()
	if err != nil || ownErr != nil || !os.SameFile(info, own) {
		return "", false
	}
	end, err = TailOf(name, 0, shownLog)
	if len(end) == shownLog {
		_, end, _ = strings.Cut(end, "\n")
	}
	return end, err == nil
}

// TailOf returns the last bytes of a file from an offset on: all of them, or the most that are
// wanted.
func TailOf(name string, from, most int64) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(io.NewSectionReader(file, max(from, info.Size()-most), most))
	return string(text), err
}

// logLine returns a line of the log for a person; "" where it is not about the server. Without a
// server it is about all.
func logLine(line, server string) string {
	var record map[string]any
	if !strings.Contains(line, server) {
		return ""
	}
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
		at = console.Clock(t)
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
