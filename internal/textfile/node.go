package textfile

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is the type of a value, in the words of messages.
type Kind string

// The kinds of values.
const (
	Null    Kind = "nothing"
	Bool    Kind = "a boolean"
	Integer Kind = "a whole number"
	Number  Kind = "a number"
	Text    Kind = "a string"
	List    Kind = "a list"
	Mapping Kind = "a mapping"
)

// Node is a value of a file, the same for every format. It is not changed once it is read. Aliases share nodes.
type Node struct {
	Position
	Kind    Kind
	Text    string // of a scalar: the decoded string, otherwise the source text
	Items   []*Node
	Members []Member // in the order of the file, duplicates included
	Source  []byte   // of JSON: the text of the value, comments included

	weight int // nodes in the tree below, aliases counted in full
}

// Member is one key of a mapping and its value.
type Member struct {
	Position // of the key
	Key      string
	Value    *Node
}

// Member returns the value of key, or nil. Of a key that stands there twice it is the last one, as for JSON.parse.
func (n *Node) Member(key string) *Node {
	for _, m := range slices.Backward(n.Members) {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// isJSON goes by the extension; where that says nothing, by what the file begins with.
func isJSON(path string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".json", ".jsonc":
		return true
	case ".yaml", ".yml":
		return false
	}
	data = bytes.TrimLeft(data, " \t\n")
	return bytes.HasPrefix(data, []byte("{")) || bytes.HasPrefix(data, []byte("//")) ||
		bytes.HasPrefix(data, []byte("/*"))
}

// Parse reads the text of a file whose name tells its format: YAML, or JSON with comments and
// trailing commas. Faults have no File and show nothing of the text. A text that is empty is an
// empty mapping.
func Parse(name string, data []byte) (*Node, Faults) {
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return nil, Faults{{Position: At(1, 1), Message: "the file is UTF-16", Hint: "save it as UTF-8"}}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	// Either line ending counts as one, so that positions are those that an editor shows.
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	data = bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
	if fault := unreadable(data); fault != nil {
		return nil, Faults{*fault}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return &Node{Position: At(1, 1), Kind: Mapping}, nil
	}
	if isJSON(name, data) {
		return ParseJSON(data)
	}
	return ParseYAML(data)
}

// unreadable refuses bytes that are no text, before a parser stumbles over them.
func unreadable(data []byte) *Fault {
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		switch {
		case c == utf8.RuneError && size <= 1:
			return &Fault{Position: PositionOf(data, i), Message: "a byte that is not UTF-8",
				Hint: "save the file as UTF-8"}
		case c < ' ' && c != '\t' && c != '\n':
			return &Fault{Position: PositionOf(data, i), Message: "a control character",
				Hint: "remove it, or write it as an escape in a quoted string"}
		}
		i += size
	}
	return nil
}

// PositionOf is the place of the byte at offset.
func PositionOf(data []byte, offset int) Position {
	offset = min(max(offset, 0), len(data))
	start := bytes.LastIndexByte(data[:offset], '\n') + 1
	return At(1+bytes.Count(data[:offset], []byte("\n")), 1+utf8.RuneCount(data[start:offset]))
}
