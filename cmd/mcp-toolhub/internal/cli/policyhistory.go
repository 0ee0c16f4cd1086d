package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

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
