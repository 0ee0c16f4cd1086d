package store_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
	"github.com/mcp-toolhub/mcp-toolhub/persist/store"
)

// TestErase checks that what is erased is in no line, in no search and in no file of the store, and that the calls stay.
func TestErase(t *testing.T) {
	withStores(t, func(t *testing.T, j *journal, open func() store.Store) {
		s := open()
		of := func(actor, text string) tool.InvocationID {
			return j.write(t, did{tool: "mcp.a.b", actor: actor, input: `{"text":"` + text + `","n":[1,2]}`, text: text, noted: true})
		}
		mine := []tool.InvocationID{of("ann", "zebra"), j.write(t, did{tool: "mcp.a.c", actor: "ann", text: "zebra", class: tool.ClassTimeout, task: "zebra"})}
		theirs := of("bob", "okapi")
		j.fill(t, s)
		if n, err := s.Erase(t.Context(), append(mine, "inv_none")); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		for text, want := range map[string]int{"zebra": 0, "okapi": 1} {
			if got := list(t, s, store.Query{Text: text}); len(got) != want {
				t.Errorf("%s: %s", text, got)
			}
		}
		if got := list(t, s, store.Query{Is: map[store.Column]string{store.Actor: "ann"}}); !slices.Equal(got, []tool.InvocationID{mine[1], mine[0]}) {
			t.Error(got)
		}
		for _, id := range append(mine, theirs) {
			lines, err := s.Lines(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range lines {
				if strings.Contains(string(l), "zebra") || id == theirs && strings.Contains(string(l), "erased") {
					t.Errorf("%s", l)
				}
			}
		}
		files, _ := filepath.Glob(filepath.Join(filepath.Dir(j.dir), store.FileName+"*")) // none of PostgreSQL
		for _, path := range files {
			if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "zebra") {
				t.Errorf("%s has it: %v", path, err)
			}
		}
		if n, err := s.Erase(t.Context(), mine); n != 0 || err != nil {
			t.Error(n, err)
		}
		j.fill(t, s) // the journal was not erased here, but the store has read it
		if got := list(t, s, store.Query{Text: "zebra"}); len(got) != 0 {
			t.Error(got)
		}
	})
}
