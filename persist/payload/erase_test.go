package payload_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/persist/payload"
)

// TestErase checks that erased payloads are gone at once, but for bytes that another result has, and that their entries say why and nothing else.
func TestErase(t *testing.T) {
	onEach(t, func(t *testing.T, at testbed) {
		s := openAt(t, at)
		of := func(e payload.Entry) bool { return e.Actor == "actor:stdio/ann" }
		if n, err := s.Erase(t.Context(), "gone", of); n != 0 || err != nil {
			t.Fatal(n, err)
		}
		mine := entry("a")
		mine.Text = []byte("in a file of its own")
		mine = put(t, s, mine, []byte("only ann"))
		named := entry("a.1")
		named.Name = "ann.txt"
		named = put(t, s, named, []byte("ann's artifact"))
		second := put(t, s, entry("b"), []byte("the same bytes"))
		theirs := entry("c")
		theirs.Actor = "actor:stdio/bob"
		theirs = put(t, s, theirs, []byte("the same bytes"))
		if n, err := openAt(t, at).Erase(t.Context(), "it was erased", of); n != 3 || err != nil {
			t.Fatal(n, err)
		}
		if keys := at.keys(t, "bytes/"); !slices.Equal(keys, []string{payloadOf(theirs)}) {
			t.Error(keys)
		}
		if raw, err := read(s, theirs.ID); string(raw) != "the same bytes" || err != nil {
			t.Errorf("%q %v", raw, err)
		}
		for _, e := range []payload.Entry{mine, named, second} {
			var gone *payload.ExpiredError
			if _, err := read(s, e.ID); !errors.As(err, &gone) || gone.Entry.Reason != "it was erased" || gone.Entry.Size != e.Size {
				t.Errorf("%s: %v", e.ID, err)
			}
			if text := string(at.get(t, "gone/"+string(e.ID)+".json")); strings.Contains(text, e.Digest) || strings.Contains(text, "ann.txt") {
				t.Error(text)
			}
		}
		if n, err := s.Erase(t.Context(), "again", of); n != 0 || err != nil {
			t.Error(n, err)
		}
	})
}
