package splice

import (
	"bytes"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// findJSON follows the path as far as it leads, and returns the object there and the rest of the path.
func (f *File) findJSON(path []string) (hujson.Value, []string, error) {
	at, err := hujson.Parse(f.body)
	if err != nil {
		return at, nil, errUnsafe
	}
	for i, key := range path {
		next := member(at, key)
		if next < 0 {
			return at, path[i:], nil
		}
		found := at.Value.(*hujson.Object).Members
		for _, m := range found[next+1:] {
			if name, _ := m.Name.Value.(hujson.Literal); name.String() == key {
				return at, nil, textfile.Faults{{Position: textfile.PositionOf(f.body, m.Name.StartOffset), Key: joined(path[:i+1]),
					Message: "this key stands here twice", Hint: "remove one of the two"}}
			}
		}
		at = found[next].Value
		if _, ok := at.Value.(*hujson.Object); !ok {
			return at, nil, refuse(f.At(path[:i+1]...), path[:i+1])
		}
	}
	return at, nil, nil
}

func joined(path []string) string { return strings.Join(path, ".") }

// member returns the index of the first member of that name, or -1.
func member(v hujson.Value, key string) int {
	if object, ok := v.Value.(*hujson.Object); ok {
		for i, m := range object.Members {
			if name, _ := m.Name.Value.(hujson.Literal); name.String() == key {
				return i
			}
		}
	}
	return -1
}

func (f *File) putJSON(p Place, name string, c content) ([]edit, error) {
	if len(bytes.TrimSpace(f.body)) == 0 {
		value := any(Object{{name, c.value}})
		for i := len(p.Path) - 1; i >= 0; i-- {
			value = Object{{p.Path[i], value}}
		}
		nl := f.newline()
		return []edit{{len(f.body), len(f.body), jsonText(value, layout{newline: nl, unit: "  "}) + nl}}, nil
	}
	at, rest, err := f.findJSON(p.Path)
	if err != nil {
		return nil, err
	}
	object := at.Value.(*hujson.Object)
	l, multi := f.layout(at)
	value := any(c.value)
	key := name
	if len(rest) > 0 {
		value, key = Object{{name, c.value}}, rest[0]
		for i := len(rest) - 1; i > 0; i-- {
			value = Object{{rest[i], value}}
		}
	}
	text := c.text
	switch {
	case text != "" && len(rest) > 0:
		text = jsonString(key) + ": {" + text + strings.Repeat("}", len(rest))
		for _, inner := range rest[1:] {
			text = strings.Replace(text, "{", "{"+jsonString(inner)+": {", 1)
		}
	case text == "":
		text = jsonString(key) + ": " + jsonText(value, l)
		for i := len(c.comments) - 1; i >= 0; i-- {
			text = "// " + c.comments[i] + l.newline + l.indent + text
		}
	}
	closing := at.EndOffset - 1
	pos := closing
	for pos > 0 && strings.IndexByte(" \t\r\n", f.body[pos-1]) >= 0 {
		pos--
	}
	var edits []edit
	lead := " "
	if multi || len(c.comments) > 0 {
		lead = l.newline + l.indent
	}
	comma := ""
	if n := len(object.Members); n > 0 {
		last := object.Members[n-1].Value
		after := f.body[last.EndOffset:pos]
		if f.body[last.EndOffset+len(last.AfterExtra)] != ',' {
			comma = ","
		}
		if bytes.Contains(after, []byte("//")) {
			lead = l.newline + l.indent
		}
		if comma != "" && pos > last.EndOffset {
			edits = append(edits, edit{last.EndOffset, last.EndOffset, comma})
			comma = ""
		}
	} else if bytes.HasSuffix(f.body[:pos], []byte("{")) && l.flat && len(c.comments) == 0 {
		lead = ""
	} else if !bytes.ContainsAny(f.body[pos:closing], "\r\n") {
		text += l.newline + strings.TrimSuffix(l.indent, l.unit)
	}
	return append(edits, edit{pos, pos, comma + lead + text}), nil
}

// layout is how an object is laid out: indent is that of its members. multi says that they have lines of their own.
func (f *File) layout(at hujson.Value) (l layout, multi bool) {
	l = layout{newline: f.newline(), unit: "  "}
	if root, err := hujson.Parse(f.body); err == nil {
		if object, ok := root.Value.(*hujson.Object); ok && len(object.Members) > 0 {
			if indent, ok := indentBefore(f.body, object.Members[0].Name.StartOffset); ok && indent != "" {
				l.unit = indent
			}
		}
	}
	object := at.Value.(*hujson.Object)
	for _, m := range object.Members {
		if indent, ok := indentBefore(f.body, m.Name.StartOffset); ok && bytes.ContainsAny(f.body[at.StartOffset:m.Name.StartOffset], "\n") {
			l.indent, multi = indent, true
		}
	}
	if multi {
		return l, true
	}
	start := bytes.LastIndexByte(f.body[:at.StartOffset], '\n') + 1
	line := f.body[start:at.StartOffset]
	l.indent = string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))]) + l.unit
	l.flat = len(object.Members) > 0 || at.StartOffset > 0 && !bytes.ContainsAny(bytes.TrimSpace(f.body), "\r\n")
	return l, !l.flat // what is all on one line stays so
}

// indentBefore returns the blanks between the beginning of the line and offset; false where there is more than blanks.
func indentBefore(body []byte, offset int) (string, bool) {
	start := bytes.LastIndexByte(body[:offset], '\n') + 1
	blank := body[start:offset]
	return string(blank), len(bytes.Trim(blank, " \t")) == 0
}

// blanksBefore returns where the blanks before offset begin.
func (f *File) blanksBefore(offset int) int {
	for offset > 0 && strings.IndexByte(" \t\r\n", f.body[offset-1]) >= 0 {
		offset--
	}
	return offset
}

func (f *File) takeJSON(p Place, name string) ([]edit, error) {
	at, rest, err := f.findJSON(p.Path)
	if err != nil || len(rest) > 0 {
		return nil, errUnsafe
	}
	members := at.Value.(*hujson.Object).Members
	i := member(at, name)
	m := members[i]
	from, to := f.blanksBefore(m.Name.StartOffset), m.Value.EndOffset
	comma := m.Value.EndOffset + len(m.Value.AfterExtra)
	follows := f.body[comma] == ','
	switch {
	case follows && len(bytes.TrimSpace(m.Value.AfterExtra)) == 0:
		return []edit{{from, comma + 1, ""}}, nil
	case follows:
		return []edit{{from, to, ""}, {comma, comma + 1, ""}}, nil
	case i > 0:
		before := members[i-1].Value
		comma := before.EndOffset + len(before.AfterExtra)
		if comma+1 >= from {
			return []edit{{min(comma, from), to, ""}}, nil
		}
		return []edit{{comma, comma + 1, ""}, {from, to, ""}}, nil
	}
	return []edit{{from, to, ""}}, nil
}

func (f *File) textJSON(p Place, name string) (string, error) {
	at, rest, err := f.findJSON(p.Path)
	if err != nil || len(rest) > 0 || member(at, name) < 0 {
		return "", errUnsafe
	}
	m := at.Value.(*hujson.Object).Members[member(at, name)]
	return string(f.body[m.Name.StartOffset:m.Value.EndOffset]), nil
}
