package textfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// ParseJSON reads JSON with comments and trailing commas. Faults show nothing of the text.
func ParseJSON(data []byte) (*Node, Faults) {
	if offset := tooDeep(data); offset >= 0 {
		return nil, Faults{{Position: PositionOf(data, offset), Message: "nested more than 100 levels deep",
			Hint: "flatten the file"}}
	}
	v, err := SyntaxOf(data)
	if err != nil {
		return nil, Faults{jsonFault(data, err)}
	}
	w := jsonWalk{data: data, at: At(1, 1)}
	return w.node(v), nil
}

// SyntaxOf parses JSON with comments and trailing commas. A // comment may end with the text, which
// the parser alone refuses.
func SyntaxOf(data []byte) (hujson.Value, error) {
	v, err := hujson.Parse(data)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		if ended, err := hujson.Parse(append(slices.Clip(data), '\n')); err == nil {
			return ended, nil
		}
	}
	return v, err
}

// jsonFault reports a syntax error in words of its own: the parser's message would show a piece of the file.
func jsonFault(data []byte, err error) Fault {
	var line, column int
	// The documented start of the error is the only place where the parser tells the position. Should the text change,
	// the fault points at the beginning of the file.
	if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scanErr != nil {
		line, column = 1, 1
	}
	offset := 0
	for range line - 1 {
		offset += bytes.IndexByte(data[offset:], '\n') + 1
	}
	offset = min(offset+column-1, len(data))
	message, hint := "not valid JSON here", "look for a missing comma, quote or bracket just before this place"
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		message, hint = "the file ends in the middle of a value",
			"close what is still open: a quote, a bracket or a brace"
	case offset < len(data) && data[offset] == '\'':
		hint = "JSON strings take double quotes"
	case offset < len(data) && data[offset] == '"':
		hint = "check the string's escapes, line breaks and the comma before it"
	case offset < len(data) && data[offset] == '#':
		hint = "comments in JSON begin with //"
	case offset < len(data) && isWordByte(data[offset]):
		hint = "put keys and strings in double quotes, and a comma between two members"
	}
	return Fault{Position: PositionOf(data, offset), Message: message, Hint: hint}
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf
}

// tooDeep returns the offset of the bracket that passes MaxDepth, or -1. Strings and comments do not count.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			i = skipComment(data, i)
		case '{', '[':
			if depth++; depth > MaxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// skipComment returns the offset of the last byte of the comment that begins at i, or i where none does.
func skipComment(data []byte, i int) int {
	rest := string(data[i:min(i+2, len(data))])
	var end string
	switch rest {
	case "//":
		end = "\n"
	case "/*":
		end = "*/"
	default:
		return i
	}
	n := bytes.Index(data[i+2:], []byte(end))
	if n < 0 {
		return len(data)
	}
	return i + 2 + n + len(end) - 1
}

// jsonWalk turns a parsed value into nodes, from the beginning of the text to its end.
type jsonWalk struct {
	data   []byte
	offset int // how far it has come
	at     Position
}

// position goes on to offset.
func (w *jsonWalk) position(offset int) Position {
	passed := w.data[w.offset:offset]
	if i := bytes.LastIndexByte(passed, '\n'); i >= 0 {
		w.at = At(w.at.Line+bytes.Count(passed, []byte("\n")), 1)
		passed = passed[i+1:]
	}
	w.at.Column += utf8.RuneCount(passed)
	w.offset = offset
	return w.at
}

func (w *jsonWalk) node(v hujson.Value) *Node {
	n := &Node{Position: w.position(v.StartOffset), Source: w.data[v.StartOffset:v.EndOffset]}
	switch x := v.Value.(type) {
	case *hujson.Object:
		n.Kind = Mapping
		for _, m := range x.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			at := w.position(m.Name.StartOffset)
			n.Members = append(n.Members, Member{at, name.String(), w.node(m.Value)})
		}
	case *hujson.Array:
		n.Kind = List
		for _, e := range x.Elements {
			n.Items = append(n.Items, w.node(e))
		}
	case hujson.Literal:
		n.Text = string(x)
		switch x.Kind() {
		case '"':
			n.Kind, n.Text = Text, x.String()
		case 't', 'f':
			n.Kind = Bool
		case '0':
			n.Kind = Integer
			if strings.ContainsAny(n.Text, ".eE") {
				n.Kind = Number
			}
		default:
			n.Kind = Null
		}
	}
	return n
}
