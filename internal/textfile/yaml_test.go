package textfile_test

import (
	"strings"
	"testing"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

func TestYAMLRefuses(t *testing.T) {
	t.Parallel()
	const here = "check indentation, quotes and brackets here and on the line before"
	for name, c := range map[string]struct {
		text string
		want textfile.Refusal
	}{
		"open bracket": {"a: [\n", textfile.Refusal{
			Position: textfile.At(1, 4), Message: "not valid YAML", Hint: here, Detail: "sequence end token ']' not found"}},
		"tab": {"a:\n\tb: 1\n", textfile.Refusal{
			Position: textfile.At(2, 1), Message: "not valid YAML", Hint: here, Detail: `found character '\t' that cannot start any token`}},
		"flow depth": {"a:\n  " + strings.Repeat("[", 101), textfile.Refusal{
			Position: textfile.At(2, 103), Message: "nested more than 100 levels deep", Hint: "flatten the file"}},
		"depth on one line": {strings.Repeat("- ", 101) + "x", textfile.Refusal{
			Position: textfile.At(1, 201), Message: "nested more than 100 levels deep", Hint: "flatten the file"}},
		"tokens": {strings.Repeat("- a\n", 50_001), textfile.Refusal{
			Position: textfile.At(50_001, 1), Message: "more than 100,000 YAML tokens"}},
	} {
		if docs, got := textfile.YAML([]byte(c.text)); docs != nil || got == nil || *got != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestYAMLReadsDocuments(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", textfile.MaxDepth) + strings.Repeat("]", textfile.MaxDepth)
	for text, want := range map[string]int{"a: 1\na: 2\n": 1, "a: 1\n---\nb: 1\n": 2, deep: 1} {
		if docs, refused := textfile.YAML([]byte(text)); refused != nil || len(docs) != want {
			t.Errorf("%q: %d documents, %+v; want %d", text, len(docs), refused, want)
		}
	}
}

// FuzzYAML: whatever the bytes, there are documents or a refusal with a place and words, and never a panic.
func FuzzYAML(f *testing.F) {
	for _, text := range []string{"a: &a {<<: *a}\n? [x]\n: y\n", "rules: [[[[{", "- !!str 1\n...\n---\n|\n x", "a:\n\tb"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		docs, refused := textfile.YAML(data)
		switch {
		case refused == nil:
		case docs != nil || refused.Line < 1 || refused.Column < 1 || refused.Message == "":
			t.Errorf("%d documents and %+v", len(docs), refused)
		}
	})
}
