package hub

import (
	"context"
	"encoding/json"
	"fmt"
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

// todayCalls bounds the calls of today by which the page knows who uses a server: the newest.
const todayCalls = 2000

// sums is what was counted of the calls of today, and until when it counts as new.
type sums struct {
	today console.Today
	until time.Time
}

// staleAfter bounds how old what was counted may be.
const staleAfter = 20 * time.Second

// Today counts for a small part of the time only, however many calls there are: a page asks every two seconds.
func (p *pageHub) Today(ctx context.Context) (console.Today, error) {
	p.counting.Lock()
	defer p.counting.Unlock()
	now := time.Now()
	if now.Before(p.sums.until) {
		return p.sums.today, nil
	}
	s, err := p.store(ctx, false)
	if err != nil {
		return console.Today{}, err
	}
	began := time.Now() // the store is opened once
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	today, err := count(ctx, s, midnight)
	if err != nil {
		return today, err
	}
	p.sums = sums{today, time.Now().Add(min(staleAfter, 20*time.Since(began)))}
	return today, nil
}

// count sums up the calls since then.
func count(ctx context.Context, s store.Store, since time.Time) (t console.Today, err error) {
	q := store.Query{Since: since}
	clients, err := s.Stats(ctx, store.Client, q) // a list is that of one client: each counts once
	if err != nil {
		return t, err
	}
	for _, st := range clients {
		t.Calls, t.Failed = t.Calls+st.Calls, t.Failed+st.Failed
		t.Kept, t.Deferred = t.Kept+st.KeptTokens, t.Deferred+st.DeferredTokens
		if st.Value != "" {
			t.Clients = append(t.Clients, st.Value)
		}
	}
	servers, err := s.Stats(ctx, store.Server, q)
	if err != nil {
		return t, err
	}
	t.Servers = make(map[string]console.ServerToday)
	for _, st := range servers {
		t.Servers[st.Value] = console.ServerToday{Stat: st}
	}
	q.Limit = todayCalls
	calls, err := s.List(ctx, q)
	if err != nil {
		return t, err
	}
	for i := range calls {
		server := t.Servers[calls[i].Server]
		if client := calls[i].Client; client != "" && !slices.Contains(server.Clients, client) {
			server.Clients = append(server.Clients, client)
			t.Servers[calls[i].Server] = server
		}
	}
	return t, nil
}

func (p *pageHub) Clients() int {
	n := p.server.Health().Sessions
	if g := p.guests; g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		n += len(g.here)
	}
	return n
}

// isOver reports whether a call of that status has ended.
func isOver(s tool.Status) bool {
	return slices.Contains([]tool.Status{tool.StatusSchemaParseFailed, tool.StatusValidationFailed, tool.StatusDenied,
		tool.StatusYielded, tool.StatusSucceeded, tool.StatusFailed, tool.StatusCanceled, tool.StatusTimedOut,
		tool.StatusBlocked}, s)
}

func (p *pageHub) Running(ctx context.Context, q console.CallQuery) (all []console.Call, err error) {
	for _, status := range tool.Statuses() {
		if isOver(status) {
			continue
		}
		of := q
		of.Is = maps.Clone(q.Is)
		of.Is[store.Status] = string(status)
		found, err := p.Calls(ctx, of)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if found[i].Ended == nil {
				all = append(all, found[i])
			}
		}
	}
	slices.SortFunc(all, func(a, b console.Call) int { return b.Created.Compare(a.Created) })
	return all, nil
}

// argumentsOf returns the arguments of a call as they are recorded; "" where they are not.
func argumentsOf(ctx context.Context, s store.Store, id tool.InvocationID) string {
	lines, err := s.Lines(ctx, id)
	if err != nil {
		return "" // removed meanwhile
	}
	for _, line := range lines {
		if given, ok := rawjson.Get(line, "model_input"); ok {
			return string(given)
		}
	}
	return ""
}

// logTail bounds what is read of the log of a hub in the background.
const logTail = 128 << 10

// Log reads the file of a hub in the background, which has what servers wrote to stderr, too.
// Otherwise it has what the hub keeps in memory.
func (p *pageHub) Log(server string) (lines []string) {
	if p.telemetry != nil {
		lines = p.telemetry.Log()
	}
	if file, err := os.Open(filepath.Join(p.Settings().StateDir, LogFile)); err == nil {
		defer file.Close()
		info, err := file.Stat()
		if err == nil && info.ModTime().After(p.started) {
			text := make([]byte, min(logTail, info.Size()))
			n, _ := file.ReadAt(text, info.Size()-int64(len(text)))
			lines = strings.Split(string(text[:n]), "\n")
		}
	}
	var shown []string
	for _, line := range lines {
		if text := logLine(line, server); text != "" {
			text, _ = p.secrets.Text(text)
			shown = append(shown, text)
		}
	}
	return shown[max(0, len(shown)-console.MaxLog):]
}

// logLine is a line of the log about a server, for people; "" for another line.
func logLine(line, server string) string {
	var r map[string]any
	if !strings.Contains(line, server) || json.Unmarshal([]byte(line), &r) != nil || r["server"] != server {
		return ""
	}
	at, _ := r["time"].(string)
	if when, err := time.Parse(time.RFC3339Nano, at); err == nil {
		at = when.Local().Format("15:04:05")
	}
	text := fmt.Sprintf("%s %-5v %v", at, r["level"], r["msg"])
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if !slices.Contains([]string{"time", "level", "msg", "server", "stream", "pid"}, name) {
			text += fmt.Sprintf("  %s=%v", name, r[name])
		}
	}
	return text
}
