package search_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
)

// everything asked of an index, within a scope.
func everything(x *search.Index, scope *search.Scope, texts []string) (out []any) {
	for i, text := range texts {
		q := search.Query{Text: text, Limit: 1 + i%30, Scope: scope}
		if i%7 == 0 {
			q.Servers = strings.Fields(text) // none, usually
		}
		out = append(out, x.Search(context.Background(), q), x.Names(text, scope))
		if i%5 == 0 {
			out = append(out, x.Nearest(text, 4, scope))
		}
	}
	return out
}

// TestScopeOfAll: a scope that hides nothing is as none.
func TestScopeOfAll(t *testing.T) {
	t.Parallel()
	servers, docs := invent(220)
	x := fill(search.New(search.Options{}), servers, docs)
	all := search.NewScope(func(string) bool { return true })
	if got, want := fmt.Sprint(everything(x, all, questions(docs))), fmt.Sprint(everything(x, nil, questions(docs))); got != want {
		t.Error("a scope of all finds something else than no scope")
	}
}
