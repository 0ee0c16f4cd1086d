package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/events"
	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// knownValues are the values of those columns that have no others.
func knownValues() map[store.Column][]string {
	return map[store.Column][]string{store.Status: names(tool.Statuses()), store.Class: names(invoke.ErrorClasses())}
}

// names returns values as texts.
func names[T ~string](values []T) (texts []string) {
	for _, v := range values {
		texts = append(texts, string(v))
	}
	return texts
}

// findCalls returns the calls that the query and the filter mean.
func findCalls(ctx context.Context, s store.Store, q store.Query, filter *events.Filter) ([]store.Call, error) {
	if filter == nil {
		return s.List(ctx, q)
	}
	const page = 500
	limit, found := q.Limit, []store.Call(nil)
	for q.Limit = page; ; {
		calls, err := s.List(ctx, q)
		if err != nil {
			return nil, err
		}
		kept, err := filtered(calls, filter)
		if found = append(found, kept...); err != nil || len(calls) < page || limit > 0 && len(found) >= limit {
			return found[:min(len(found), cmp.Or(limit, len(found)))], err
		}
		q.Before = &calls[len(calls)-1]
	}
}

// filtered returns those of calls that the filter lets pass.
func filtered(calls []store.Call, filter *events.Filter) (kept []store.Call, err error) {
	if filter == nil {
		return calls, nil
	}
	for i := range calls {
		text, err := json.Marshal(&calls[i])
		if err != nil {
			return nil, err
		}
		if filter.Holds(text) {
			kept = append(kept, calls[i])
		}
	}
	return kept, nil
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
