package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/command"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/config"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy/gate"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// look is what the commands that look back at decisions need. No server is started for it: tools
// are those of an earlier start.
type look struct {
	settings *config.Settings
	own      *builtins
	table    []*tool.HubTool
	gate     *gate.Gate // of settings, without remembered answers
	tools    history.Tools
	calls    []history.Call // oldest first
}

// lookBack reads the config, and what was decided since then.
func (a *app) lookBack(ctx context.Context, since string) (l *look, err error) {
	from, err := parseWhen(since, time.Now())
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	s, err := a.load(ctx)
	if err != nil {
		return nil, err
	}
	l = &look{settings: s, table: hubTools(&hub{})}
	now, err := configuredBy(s)
	if err != nil {
		return nil, err
	}
	l.gate, l.own = now.gate, now.own
	catalogs, err := knownCatalogs(s)
	if err != nil {
		return nil, failed(err)
	}
	l.tools = knownTools(catalogs, l.table)
	records, err := openRecords(s)(ctx)
	if err != nil {
		return nil, failed(err)
	}
	defer func() { err = errors.Join(err, failed(records.Close())) }()
	if err := store.FillUp(ctx, records, s.Journal.Dir); err != nil {
		fmt.Fprintln(a.std.err, "mcp-toolhub: warning: the newest calls may be missing:", err)
	}
	l.calls, err = pastCalls(ctx, records, store.Query{Since: from})
	return l, failed(err)
}

// configuredBy makes what settings configure, with a gate that remembers no answers.
func configuredBy(s *config.Settings) (*configured, error) {
	logger := slog.New(slog.DiscardHandler)
	c, err := configure(s, nil, hubTools(&hub{}), command.NewRunner("", logger), logger)
	if err != nil {
		return nil, &exitError{exitConfig, err}
	}
	return c, nil
}

// knownTools finds the tools of catalogs, and those of the hub itself.
func knownTools(catalogs []tool.Catalog, own []*tool.HubTool) history.Tools {
	all := make(map[tool.Name]*tool.Tool)
	for _, c := range catalogs {
		for _, t := range c.Tools {
			all[t.Name] = t
		}
	}
	for _, t := range own {
		all[t.Name] = &tool.Tool{Name: t.Name, Server: tool.OwnServer, Native: string(t.Name), Hub: t,
			Declaration: json.RawMessage(`{"annotations":` + t.Annotations + `}`)}
	}
	return func(name tool.Name) *tool.Tool { return all[name] }
}

// pastCalls reads calls of the store about which something was decided, oldest first.
func pastCalls(ctx context.Context, s store.Store, q store.Query) (all []history.Call, err error) {
	found, err := s.List(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, one := range slices.Backward(found) {
		lines, err := s.Lines(ctx, one.ID)
		if errors.Is(err, store.ErrNotFound) { // removed meanwhile
			continue
		}
		var objects []json.RawMessage
		if err == nil {
			err = persist.Derive(lines, func(object json.RawMessage) bool {
				objects = append(objects, object)
				return true
			})
		}
		if err != nil {
			return nil, fmt.Errorf("read the records of %s: %w", one.ID, err)
		}
		c, ok, err := history.Read(objects)
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, c)
		}
	}
	return all, nil
}
