package admit

import (
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// FuzzMayHide holds that nothing is found in a declaration that is not looked at.
func FuzzMayHide(f *testing.F) {
	for _, seed := range []string{
		`{"description":"a\u202eb"}`, "{\"title\":\"a\u200bb\"}", `{"title":"a\b"}`, `{"title":"a\rb"}`, `{"title":"a\r\nb\t\"\\\/"}`,
		"{\"description\":\"\x7f\"}", `{"description":"plain"}`, `{"title":"\\u202e"}`, `{"description":"\f"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, declaration []byte) {
		if !rawjson.Valid(declaration) || mayHide(declaration) {
			return
		}
		if _, found := withoutHidden(declaration); len(found) > 0 {
			t.Errorf("%q hides %q", declaration, found)
		}
	})
}
