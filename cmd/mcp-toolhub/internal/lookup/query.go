// Package lookup finds calls in the record store, as people ask for them, and tells their story.
package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/cmd/mcp-toolhub/internal/invoke"
	"github.com/mcp-toolhub/mcp-toolhub/internal/glob"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
	"github.com/mcp-toolhub/mcp-toolhub/policy/history"
)

// KnownValues are the values of those columns that have no others.
func KnownValues() map[store.Column][]string {
	return map[store.Column][]string{store.Status: names(tool.Statuses()), store.Class: names(invoke.ErrorClasses())}
}

// names returns values as texts.
func names[T ~string](values []T) (texts []string) {
	for _, v := range values {
		texts = append(texts, string(v))
	}
	return texts
}

// idLength is the length in bytes of an invocation id.
var idLength = len(tool.NewInvocationID())

// Whole returns the id of the call that a beginning of an id means: one of the latest 1,000 calls.
// An id that begins none of them is returned as it is.
func Whole(ctx context.Context, s store.Store, id tool.InvocationID) (tool.InvocationID, error) {
	if len(id) >= idLength {
		return id, nil
	}
	calls, err := s.List(ctx, store.Query{Limit: 1000})
	if err != nil {
		return "", err
	}
	ids := make([]tool.InvocationID, len(calls))
	for i := range calls {
		ids[i] = calls[i].ID
	}
	return Meant(id, ids)
}

// Meant returns the only one of all that begins with id; id itself where none does.
func Meant[ID ~string](id ID, all []ID) (ID, error) {
	var meant []ID
	for _, one := range all {
		if one == id {
			return id, nil
		}
		if strings.HasPrefix(string(one), string(id)) {
			meant = append(meant, one)
		}
	}
	switch len(meant) {
	case 0:
		return id, nil
	case 1:
		return meant[0], nil
	}
	return "", fmt.Errorf("%q may be %d of them, %s for instance: write more of the id", string(id), len(meant),
		string(meant[0]))
}

// Past reads calls of the store about which something was decided, oldest first.
func Past(ctx context.Context, s store.Store, q store.Query) (all []history.Call, err error) {
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

// Search says which calls are meant, as people write it.
type Search struct {
	Since, Until string                   // as parseWhen reads them; "" for no bound
	Is           map[store.Column]*string // values, or patterns with * or ?; "" for any
	Text         string                   // words in arguments, results and errors
	Limit        int                      // 0 for all
}

// Query reads what people wrote.
func (s *Search) Query() (q store.Query, err error) {
	q = store.Query{Text: s.Text, Limit: s.Limit, Is: make(map[store.Column]string)}
	for text, at := range map[*string]*time.Time{&s.Since: &q.Since, &s.Until: &q.Until} {
		if *text == "" {
			continue
		}
		if *at, err = ParseWhen(*text, time.Now()); err != nil {
			return q, err
		}
	}
	known := KnownValues()
	for column, value := range s.Is {
		if *value != "" {
			q.Is[column] = *value
		}
		if all := known[column]; *value != "" && all != nil && !slices.Contains(all, *value) {
			return q, fmt.Errorf("--%s %q: no call can have that; use one of %s", column,
				*value, strings.Join(all, ", "))
		}
		if err := glob.Check(*value); err != nil && glob.HasWildcard(*value) {
			return q, fmt.Errorf("--%s: %w", column, err)
		}
	}
	return q, nil
}
