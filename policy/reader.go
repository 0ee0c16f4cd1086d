package policy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
	"github.com/mcp-toolhub/mcp-toolhub/policy/facts"
)

const maxFile = 1 << 20 // bytes of a file of rules, grants or test calls

// Faults is every fault of one file of rules, grants or test calls, sorted by place. A file with faults is refused whole:
// half of a policy is another policy. The type tells them from the faults of a config.
type Faults struct{ textfile.Faults }

type node = textfile.Node

// reader gathers the faults of one file.
type reader struct {
	file   string
	faults textfile.Faults
}

func (r *reader) fault(n *node, key, message, hint string) {
	f := textfile.Fault{File: r.file, Position: textfile.At(1, 1), Key: key, Message: message, Hint: hint}
	if n != nil {
		f.Position = n.Position
	}
	r.faults = append(r.faults, f)
}

// err is the faults as an error, nil where there are none.
func (r *reader) err() error {
	if len(r.faults) == 0 {
		return nil
	}
	return Faults{r.faults.Sort()}
}

// tree reads the one document of data. It is nil after a fault.
func (r *reader) tree(data []byte) *node {
	if len(data) > maxFile {
		r.fault(nil, "", "the file is larger than 1 MiB", "check the path, or split the rules by source")
		return nil
	}
	// In a file that decides what may run, what is written is what is meant.
	root, faults := textfile.ParseYAML(data, textfile.YAMLRules{Literal: true, Smaller: "split the rules by source"})
	for _, f := range faults {
		f.File = r.file
		r.faults = append(r.faults, f)
	}
	return root
}

// found is the kind of a value, in the words of these files' faults.
func found(n *node) string {
	switch n.Kind {
	case textfile.Text:
		return "a text"
	case textfile.Bool:
		return "true or false"
	case textfile.Integer:
		return string(textfile.Number)
	}
	return string(n.Kind)
}

// must reports a value of another kind than it must be.
func (r *reader) must(n *node, key, want, hint string) {
	r.fault(n, key, "this is "+found(n)+" and must be "+want, hint)
}

// field is a key that a mapping may have, and the function that reads its value.
type field struct {
	name string
	read func(value *node, key string)
}

// fields reads the members of the mapping n, and reports those that are not among known. meant says which key people mean by
// some other words.
func (r *reader) fields(n *node, key string, meant map[string]string, known ...field) {
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.name
	}
	if n.Kind != textfile.Mapping {
		r.must(n, key, "a mapping", "write "+strings.Join(names, ", "))
		return
	}
	for _, m := range n.Members {
		path := join(key, m.Key)
		i := slices.Index(names, m.Key)
		if i < 0 {
			r.fault(&node{Position: m.Position}, path, "unknown key", textfile.DidYouMean(cmp.Or(meant[m.Key], m.Key), names,
				"the keys here are "+strings.Join(names, ", ")))
			continue
		}
		known[i].read(m.Value, path)
	}
}

// text is a field that holds a text.
func text[T ~string](r *reader, name string, into *T) field {
	return field{name, func(value *node, key string) { *into = T(r.word(value, key)) }}
}

// texts is a field that holds a text or a list of texts.
func (r *reader) texts(name string, into *[]string) field {
	return field{name, func(value *node, key string) { *into = r.words(value, key) }}
}

func (r *reader) bool(name string, into *bool) field {
	return field{name, func(value *node, key string) { *into = r.truth(value, key) }}
}

// fact is a field that says true or false of a tool.
func (r *reader) fact(name string, into *facts.Fact[bool]) field {
	return field{name, func(value *node, key string) {
		*into = facts.Fact[bool]{Value: r.truth(value, key), Origin: facts.Configured, Why: "the table says so"}
	}}
}

func (r *reader) time(name string, into *time.Time) field {
	return field{name, func(value *node, key string) { *into = r.instant(value, key) }}
}

// each is a field that holds a list of mappings.
func each[T any](r *reader, name string, into *[]T, read func(n *node, key string) T) field {
	return field{name, func(value *node, key string) {
		r.list(value, key, func(_ int, key string, value *node) { *into = append(*into, read(value, key)) })
	}}
}

func join(key, name string) string {
	switch {
	case key == "":
		return name
	case name == "":
		return key
	}
	return key + "." + name
}

// list calls each for each element of n.
func (r *reader) list(n *node, key string, each func(i int, key string, value *node)) {
	if n.Kind == textfile.Null {
		return
	}
	if n.Kind != textfile.List {
		r.must(n, key, "a list", "begin each element with a dash")
		return
	}
	for i, item := range n.Items {
		each(i, fmt.Sprintf("%s[%d]", key, i), item)
	}
}

// words reads a text or a list of texts.
func (r *reader) words(n *node, key string) []string {
	if n.Kind != textfile.List {
		return []string{r.word(n, key)}
	}
	words := []string{}
	r.list(n, key, func(_ int, key string, v *node) { words = append(words, r.word(v, key)) })
	if len(words) == 0 {
		r.fault(n, key, "the list is empty, so the rule would match nothing by it", "remove the key, or write what it matches")
	}
	return words
}

func (r *reader) word(n *node, key string) string {
	switch n.Kind {
	case textfile.Text, textfile.Integer, textfile.Number:
		return n.Text
	}
	r.must(n, key, "a text", "put it in quotes")
	return ""
}

func (r *reader) truth(n *node, key string) bool {
	if n.Kind != textfile.Bool {
		r.must(n, key, "true or false", "write true or false")
	}
	return n.Kind == textfile.Bool && strings.EqualFold(n.Text, "true")
}

func (r *reader) instant(n *node, key string) time.Time {
	t, err := time.Parse(time.RFC3339, r.word(n, key))
	if err != nil {
		r.fault(n, key, "this is no time", "write it like 2026-11-21T22:00:00Z")
	}
	return t.UTC()
}

// jsonOf is the value as JSON text.
func jsonOf(n *node) json.RawMessage {
	var b strings.Builder
	writeJSON(&b, n)
	return json.RawMessage(b.String())
}

func writeJSON(b *strings.Builder, n *node) {
	switch n.Kind {
	case textfile.Null:
		b.WriteString("null")
	case textfile.Bool:
		b.WriteString(strings.ToLower(n.Text))
	case textfile.Integer, textfile.Number:
		if json.Valid([]byte(n.Text)) {
			b.WriteString(n.Text)
			return
		}
		fallthrough // YAML knows spellings of numbers that JSON does not
	case textfile.Text:
		text, err := json.Marshal(n.Text)
		if err != nil {
			text = []byte(`""`)
		}
		b.Write(text)
	case textfile.List:
		b.WriteByte('[')
		for i, item := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, item)
		}
		b.WriteByte(']')
	case textfile.Mapping:
		b.WriteByte('{')
		for i, m := range n.Members {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, &node{Kind: textfile.Text, Text: m.Key})
			b.WriteByte(':')
			writeJSON(b, m.Value)
		}
		b.WriteByte('}')
	}
}
