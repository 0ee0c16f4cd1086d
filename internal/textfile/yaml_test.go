package textfile

import (
	"strings"
	"testing"
)

func TestYAMLRefuses(t *testing.T) {
	t.Parallel()
	const here = "check indentation, quotes and brackets here and on the line before"
	for name, c := range map[string]struct {
		text string
		want Fault
	}{
		"open bracket": {"a: [\n", Fault{
			Position: At(1, 4), Message: "not valid YAML: sequence end token ']' not found", Hint: here}},
		"tab": {"a:\n\tb: 1\n", Fault{
			Position: At(2, 1), Message: `not valid YAML: found character '\t' that cannot start any token`, Hint: "indent with spaces"}},
		"flow depth": {"a:\n  " + strings.Repeat("[", 101), Fault{
			Position: At(2, 103), Message: "nested more than 100 levels deep", Hint: "flatten the file"}},
		"depth on one line": {strings.Repeat("- ", 101) + "x", Fault{
			Position: At(1, 201), Message: "nested more than 100 levels deep", Hint: "flatten the file"}},
		"tokens": {strings.Repeat("- a\n", 50_001), Fault{
			Position: At(50_001, 1), Message: "more than 100,000 YAML tokens", Hint: "check the path, or write the file as JSON"}},
	} {
		if docs, got := documents([]byte(c.text)); docs != nil || got == nil || *got != c.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestYAMLReadsDocuments(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	for text, want := range map[string]int{"a: 1\na: 2\n": 1, "a: 1\n---\nb: 1\n": 2, deep: 1} {
		if docs, refused := documents([]byte(text)); refused != nil || len(docs) != want {
			t.Errorf("%q: %d documents, %+v; want %d", text, len(docs), refused, want)
		}
	}
}

// FuzzParseYAML: whatever the bytes, there is a tree or faults with places and words, and never a panic.
func FuzzParseYAML(f *testing.F) {
	for _, text := range []string{"a: &a {<<: *a}\n? [x]\n: y\n", "rules: [[[[{", "- !!str 1\n...\n---\n|\n x", "a:\n\tb"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root, faults := ParseYAML(data)
		if (root == nil) == (faults == nil) {
			t.Errorf("%v and %v", root, faults)
		}
		for _, fault := range faults {
			if fault.Line < 1 || fault.Column < 1 || fault.Message == "" {
				t.Errorf("%+v", fault)
			}
		}
	})
}
