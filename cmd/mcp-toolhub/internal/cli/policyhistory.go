package cli

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/hub"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/lookup"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// lookBack reads the config, and what was decided since then.
func (a *app) lookBack(ctx context.Context, since string) (l *hub.Look, err error) {
	from, err := lookup.ParseWhen(since, time.Now())
	if err != nil {
		return nil, exitUsage.of(err)
	}
	s, err := a.load(ctx)
	if err != nil {
		return nil, err
	}
	l = &hub.Look{Settings: s, Table: hub.Tools(&hub.Hub{})}
	now, err := hub.ConfiguredBy(s)
	if err != nil {
		return nil, exitConfig.of(err)
	}
	l.Gate, l.Own = now.Gate, now.Own
	catalogs, err := knownCatalogs(s)
	if err != nil {
		return nil, err
	}
	l.Catalogs, l.Tools = catalogs, hub.KnownTools(catalogs, l.Table)
	records, err := hub.OpenRecords(s)(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	if err := store.FillUp(ctx, records, s.Journal.Dir); err != nil {
		a.std.warn("the newest calls may be missing: %v", err)
	}
	l.Calls, err = lookup.Past(ctx, records, store.Query{Since: from})
	return l, err
}
