//go:build e2e

package search_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
)

// slowly is a context in which each look at it takes longer than a pattern has, as where others have the processor.
type slowly struct{ context.Context }

func (c slowly) Err() error {
	time.Sleep(time.Second) // virtual
	return c.Context.Err()
}

// TestPatternsOnABusyMachine: fifty tools are looked at whatever the time, and not all of a great many.
func TestPatternsOnABusyMachine(t *testing.T) {
	t.Parallel()
	for tools, whole := range map[int]bool{50: true, 2200: false} {
		servers, docs := invent(tools)
		x := fill(search.New(search.Options{}), servers, docs)
		for _, expression := range []string{`.*`, `[a-z]+_[a-z]+`, `(?i)create|update`} {
			synctest.Test(t, func(t *testing.T) {
				a := x.Regexp(slowly{t.Context()}, pattern(expression), search.Query{Limit: tools})
				if len(a.Notes) > 0 == whole || len(a.Hits) == 0 {
					t.Errorf("%s among %d tools: %d hits, %q", expression, tools, len(a.Hits), a.Notes)
				}
			})
		}
	}
}
