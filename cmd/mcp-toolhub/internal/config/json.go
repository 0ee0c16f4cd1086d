package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// jsonTree reads JSON with comments and trailing commas.
func (r *reader) jsonTree(data []byte) *node {
	if offset := tooDeep(data); offset >= 0 {
		r.faultAt(positionOf(data, offset), "nested more than 100 levels deep", "flatten the file")
		return nil
	}
	v, err := hujson.Parse(data)
	if err != nil {
		r.jsonFault(data, err)
		return nil
	}
	w := jsonWalk{data: data}
	for i, c := range data {
		if c == '\n' {
			w.lines = append(w.lines, i+1)
		}
	}
	return w.node(v)
}

// jsonFault reports a syntax error in words of its own: the parser's message would show a piece of the file.
func (r *reader) jsonFault(data []byte, err error) {
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
		message, hint = "the file ends in the middle of a value", "close what is still open: a quote, a bracket or a brace"
	case offset < len(data) && data[offset] == '\'':
		hint = "JSON strings take double quotes"
	case offset < len(data) && data[offset] == '"':
		hint = "check the string's escapes, line breaks and the comma before it"
	case offset < len(data) && data[offset] == '#':
		hint = "comments in JSON begin with //"
	case offset < len(data) && isWordByte(data[offset]):
		hint = "put keys and strings in double quotes, and a comma between two members"
	}
	r.faultAt(positionOf(data, offset), message, hint)
}

func isWordByte(c byte) bool {
	return c == '_' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf
}

// tooDeep returns the offset of the bracket that passes textfile.MaxDepth, or -1. Strings and comments do not count.
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
			if depth++; depth > textfile.MaxDepth {
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

// jsonWalk turns a parsed value into nodes.
type jsonWalk struct {
	data  []byte
	lines []int // offsets at which lines 2, 3, … begin
}

func (w jsonWalk) position(offset int) textfile.Position {
	line := sort.SearchInts(w.lines, offset+1)
	start := 0
	if line > 0 {
		start = w.lines[line-1]
	}
	return textfile.At(line+1, 1+utf8.RuneCount(w.data[start:offset]))
}

func (w jsonWalk) node(v hujson.Value) *node {
	n := &node{Position: w.position(v.StartOffset), weight: 1}
	switch x := v.Value.(type) {
	case *hujson.Object:
		n.kind = kindMapping
		for _, m := range x.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			child := w.node(m.Value)
			n.members = append(n.members, member{w.position(m.Name.StartOffset), name.String(), child})
			n.weight += child.weight
		}
	case *hujson.Array:
		n.kind = kindList
		for _, e := range x.Elements {
			child := w.node(e)
			n.items = append(n.items, child)
			n.weight += child.weight
		}
	case hujson.Literal:
		n.text = string(x)
		switch x.Kind() {
		case '"':
			n.kind, n.text = kindText, x.String()
		case 't', 'f':
			n.kind = kindBool
		case '0':
			n.kind = kindInteger
			if strings.ContainsAny(n.text, ".eE") {
				n.kind = kindNumber
			}
		default:
			n.kind = kindNull
		}
	}
	return n
}
