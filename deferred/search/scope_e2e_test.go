//go:build e2e

package search_test

import (
	"context"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/deferred/search"
)

// matches are what patterns find, in so far as there was the time to look everywhere.
func matches(x *search.Index, scope *search.Scope) (out [3]search.Answer, all [3]bool) {
	for i, expression := range []string{"^get_.*", "[a-f]{3}_", "(?i)ba"} {
		out[i] = x.Regexp(context.Background(), pattern(expression), search.Query{Limit: 20, Scope: scope})
		all[i] = len(out[i].Notes) == 0
	}
	return out, all
}

// TestScopeHides: within a scope every answer, with its scores, is that of an index that never had the rest.
func TestScopeHides(t *testing.T) {
	t.Parallel()
	servers, docs := invent(330)
	seeds := uint64(3)
	if underRace {
		seeds = 1 // nothing in it is concurrent
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		shown := make(map[string]bool)
		all, part := search.New(search.Options{}), search.New(search.Options{})
		for _, i := range r.Perm(len(servers)) {
			var own []search.Document
			kind := r.IntN(3) // hidden, in part, shown
			for _, d := range docs[i] {
				if kind == 2 || kind == 1 && r.IntN(3) == 0 {
					shown[d.ID] = true
					own = append(own, d)
				}
			}
			all.Put(servers[i], docs[i])
			part.Put(servers[i], own)
		}
		scope := search.NewScope(func(id string) bool { return shown[id] })
		texts := questions(docs)[:60]
		for i, own := range docs { // what only hidden ones have: names, servers, words that are misspelt, written in one, or not
			d := own[i%len(own)]
			words := strings.Fields(d.Description)
			texts = append(texts, d.Name, d.ID, servers[i].Name+" "+words[0], words[1][1:]+" "+words[2]+"x", words[3]+words[4], d.Name[:len(d.Name)-2])
		}
		compare := func(when string) {
			t.Helper()
			got, want := everything(all, scope, texts), everything(part, nil, texts)
			for i := range got {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Fatalf("seed %d, %s, %d: a hidden tool shows:\n%+v\n%+v", seed, when, i, got[i], want[i])
				}
			}
			found, whole := matches(all, scope)
			wanted, wholly := matches(part, nil)
			for i := range found {
				if whole[i] && wholly[i] && !reflect.DeepEqual(found[i], wanted[i]) {
					t.Fatalf("seed %d, %s, pattern %d: a hidden tool shows:\n%+v\n%+v", seed, when, i, found[i], wanted[i])
				}
			}
		}
		compare("at first")
		all.Put(search.Server{Name: "new", Description: "A hidden one."}, []search.Document{{ID: "mcp.new.x", Name: "x", Description: docs[0][0].Description}})
		compare("after a hidden server came")
		all.Remove("new")
		compare("after it went")
		for _, d := range docs[3] {
			shown[d.ID] = true
		}
		all.Put(servers[3], docs[3])
		part.Put(servers[3], docs[3])
		compare("after a server came into sight")
	}
}
