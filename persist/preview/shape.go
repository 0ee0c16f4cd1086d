package preview

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// detail is how much of a JSON text is shown.
type detail struct {
	elements int // of an array
	members  int // of an object
	chars    int // of a string
	inline   int // characters of a value that is shown as it is, on one line
}

// details are tried from the richest to the poorest until one fits. What is nested is shown in less
// detail than what it is in.
var details = [...]detail{
	{100, 100, 40_000, 8000}, {100, 100, 4000, 2000}, {30, 100, 1000, 800}, {10, 60, 300, 400}, {3, 40, 150, 200},
	{1, 20, 60, 60}, {0, 5, 20, 40},
}

// maxKids is how many elements or members of one value are remembered: no detail shows more.
const maxKids = 100

// showJSON describes text, which is valid JSON, in at most limit characters. JSON pointers to it begin with at.
func showJSON(text []byte, at string, limit int) []byte {
	s := shape{seen: make(map[*byte]seen)}
	text = text[rawjson.SkipSpace(text, 0):]
	for level := range details {
		s.out, s.left = s.out[:0], limit
		s.value(text, at, level, "\n")
		if s.left >= 0 {
			return s.out
		}
	}
	return s.out[:Fit(s.out, limit)]
}

// shape writes one description.
type shape struct {
	out  []byte
	left int            // how many more characters fit; below 0: something did not, and nothing more is written
	seen map[*byte]seen // values that were read, by their first byte
}

// seen is what was read of a value, so that every try reads it once.
type seen struct {
	text []byte // of a string
	n    int    // elements or members
	kids []rawjson.Member
}

func (s *shape) add(text string) {
	if s.left >= 0 {
		s.out = append(s.out, text...)
		s.left -= Size([]byte(text))
	}
}

// read reads a value that is not empty.
func (s *shape) read(value []byte) seen {
	v, ok := s.seen[&value[0]]
	if ok {
		return v
	}
	keep := func(m rawjson.Member) bool {
		if v.n++; v.n <= maxKids {
			v.kids = append(v.kids, m)
		}
		return true
	}
	switch value[0] {
	case '"':
		v.text = Unquote(value)
	case '{':
		_ = rawjson.Members(value, keep)
	case '[':
		_ = rawjson.Elements(value, func(element []byte) bool { return keep(rawjson.Member{Value: element}) })
	}
	s.seen[&value[0]] = v
	return v
}

// value shows the value at a JSON pointer. indent begins a line.
func (s *shape) value(value []byte, at string, level int, indent string) {
	d := details[min(level, len(details)-1)]
	if s.left < 0 || s.inline(value, d) {
		return
	}
	v := s.read(value)
	switch value[0] {
	case '"':
		s.add(string(rawjson.Quote(string(cut(v.text, d.chars)))))
		s.add(" (" + textfile.Count(utf8.RuneCount(v.text), "character") + " at " + strconv.Quote(at) + ")")
	case '{':
		s.add("object with " + textfile.Count(v.n, "member") + ":")
		for _, m := range v.kids[:min(len(v.kids), d.members)] {
			s.add(indent + `  "` + string(m.Key) + `": `)
			s.value(m.Value, Pointer(at, m.Name()), level+1, indent+"  ")
		}
		if v.n > d.members {
			s.add(indent + "  ... " + textfile.Grouped(v.n-d.members) + " more")
		}
	case '[':
		s.add("array of " + textfile.Count(v.n, "element"))
		if d.elements == 0 {
			return
		}
		s.add(":")
		for i, m := range v.kids[:min(len(v.kids), d.elements)] {
			s.add(indent + "  ")
			s.value(m.Value, at+"/"+strconv.Itoa(i), level+1, indent+"  ")
		}
		if v.n > d.elements {
			s.add(indent + "  ... " + textfile.Grouped(v.n-d.elements) + " more, from " + at + "/" + strconv.Itoa(d.elements))
		}
	default: // a number of very many digits
		s.add(string(value[:Fit(value, d.chars)]) + "... (" + textfile.Count(len(value), "digit") + ")")
	}
}

// inline shows a value as it is, without its white space, if it is short.
func (s *shape) inline(value []byte, d detail) bool {
	if value[0] == '"' {
		if len(value) > d.chars {
			return false
		}
		s.add(string(value))
		return true
	}
	var line bytes.Buffer
	if len(value) > 4*d.inline || json.Compact(&line, value) != nil || line.Len() > d.inline {
		return false
	}
	s.add(line.String())
	return true
}

// Pointer is the JSON pointer of the member name in the object at a pointer.
func Pointer(at, name string) string {
	return at + "/" + rawjson.PointerToken(name)
}
