package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
	q.Limit = todayCalls
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
		server := t.Servers[calls[i].Server]
		if client := calls[i].Client; client != "" && !slices.Contains(server.Clients, client) {
			server.Clients = append(server.Clients, client)
			t.Servers[calls[i].Server] = server
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

// Log implements console.Hub. Nothing that a server has written is kept in memory.
func (p *pageHub) Log(server string) (lines []string) {
	if p.telemetry == nil {
		return nil
	}
	for _, line := range p.telemetry.Log() {
		var r struct {
			Time                             time.Time
			Level, Msg, Server, Error, State string
		}
		if json.Unmarshal([]byte(line), &r) == nil && r.Server == server {
			lines = append(lines, fmt.Sprintf("%s %-5s %s  %s  %s", r.Time.Local().Format(time.TimeOnly), r.Level, r.Msg,
				r.State, r.Error))
		}
	}
	return lines
}
