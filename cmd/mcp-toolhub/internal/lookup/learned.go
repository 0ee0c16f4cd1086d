package lookup

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/deferred"
	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// Bounds of what is learned from.
const (
	learnedSearches = 100
	learnedCalls    = 1000
	learnedWithin   = 10 * time.Minute // between a search and the call that it led to
)

// Learned returns the questions of the latest searches of a caller, each with the tool that the
// caller called next of those that it found, if that call succeeded.
func Learned(ctx context.Context, s store.Store, actor string) (all []search.Example, err error) {
	searches, err := s.List(ctx, store.Query{Limit: learnedSearches,
		Is: map[store.Column]string{store.Tool: string(deferred.SearchName), store.Actor: actor}})
	if err != nil || len(searches) == 0 {
		return nil, err
	}
	calls, err := s.List(ctx, store.Query{Since: searches[len(searches)-1].Created, Limit: learnedCalls,
		Is: map[store.Column]string{store.Actor: actor, store.Status: string(tool.StatusSucceeded)}})
	if err != nil {
		return nil, err
	}
	for _, one := range searches {
		question, found, err := searched(ctx, s, one.ID)
		if err != nil {
			return nil, err
		}
		for _, call := range slices.Backward(calls) {
			if after := call.Created.Sub(one.Created); after > 0 && after < learnedWithin &&
				slices.Contains(found, call.Tool) {
				all = append(all, search.Example{Text: question, ID: call.Tool})
				break
			}
		}
	}
	return all, nil
}

// searched returns the question of a recorded search, and the deferred tools that it found.
func searched(ctx context.Context, s store.Store, id tool.InvocationID) (question string, found []string, err error) {
	lines, err := s.Lines(ctx, id)
	if err != nil {
		if errors.Is(err, store.ErrNotFound) { // removed meanwhile
			err = nil
		}
		return "", nil, err
	}
	err = persist.Derive(lines, func(object json.RawMessage) bool {
		var r struct {
			tool.Head
			ToolID     string `json:"tool_id"`
			ModelInput struct {
				Query string `json:"query"`
			} `json:"model_input"`
		}
		switch err := json.Unmarshal(object, &r); {
		case err != nil: // of another kind
		case r.Object == tool.ObjectInvocation && r.ModelInput.Query != "":
			question = r.ModelInput.Query
		case r.Object == tool.ObjectDeferredRef:
			found = append(found, r.ToolID)
		}
		return true
	})
	return question, found, err
}
