package textfile_test

import (
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// TestCommentAtTheEnd: a // comment may end with the text, without a line end.
func TestCommentAtTheEnd(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a": "b"} // mine`:     "",
		"{\"a\": \"b\"}\n//":     "",
		`{"a": "b" // mine`:      ":1:11: the file ends in the middle of a value; close what is still open: a quote, a bracket or a brace",
		`{"a": "b"} /* mine`:     ":1:12: the file ends in the middle of a value; close what is still open: a quote, a bracket or a brace",
		"{\"a\": \"b\"\n// mine": ":2:1: the file ends in the middle of a value; close what is still open: a quote, a bracket or a brace",
	} {
		root, faults := textfile.ParseJSON([]byte(text))
		if len(faults) > 0 && faults.Error() != want || len(faults) == 0 && want != "" {
			t.Errorf("%q: %v, want %s", text, faults, want)
		} else if want == "" && root.Member("a").Text != "b" {
			t.Errorf("%q: %+v", text, root)
		}
	}
}
