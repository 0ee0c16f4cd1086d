package splice

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// findJSON follows the path of p as far as it leads, and returns the object or list there and the rest of the path.
func (f *File) findJSON(p Place) (hujson.Value, []string, error) {
	path := p.Path
	at, err := textfile.SyntaxOf(f.body)
	if err != nil {
		return at, nil, errUnsafe
	}
	for i, key := range path {
		all := elements(at)
		next := indexOf(all, key)
		if next < 0 {
			return at, path[i:], nil
		}
		if twice := indexOf(all[next+1:], key); twice >= 0 {
			return at, nil, textfile.Faults{{Position: textfile.PositionOf(f.body, all[next+1+twice].from),
				Key:     joined(path[:i+1]),
				Message: "this key stands here twice", Hint: "remove one of the two"}}
		}
		at = at.Value.(*hujson.Object).Members[next].Value
		wanted := byte('{')
		if p.List && i == len(path)-1 {
			wanted = '['
		}
		if at.Value.Kind() != hujson.Kind(wanted) {
			return at, nil, refuse(f.At(path[:i+1]...), path[:i+1])
		}
	}
	return at, nil, nil
}

// element is a member of an object, or an item of a list.
type element struct {
	name     string // the key, or the item that is a plain text
	from, to int    // where it stands
	after    int    // bytes between it and the comma
}

func elements(v hujson.Value) (all []element) {
	switch v := v.Value.(type) {
	case *hujson.Object:
		for _, m := range v.Members {
			name, _ := m.Name.Value.(hujson.Literal)
			all = append(all, element{name.String(), m.Name.StartOffset, m.Value.EndOffset, len(m.Value.AfterExtra)})
		}
	case *hujson.Array:
		for _, item := range v.Elements {
			name, _ := item.Value.(hujson.Literal)
			all = append(all, element{name.String(), item.StartOffset, item.EndOffset, len(item.AfterExtra)})
		}
	}
	return all
}

// indexOf returns the index of the first element of that name, or -1.
func indexOf(all []element, name string) int {
	return slices.IndexFunc(all, func(e element) bool { return e.name == name })
}

func joined(path []string) string { return strings.Join(path, ".") }

func (f *File) putJSON(p Place, name string, c content) ([]edit, error) {
	if len(bytes.TrimSpace(f.body)) == 0 {
		text, err := c.alone(p, name, f.newline())
		return []edit{{len(f.body), len(f.body), text}}, err
	}
	at, rest, err := f.findJSON(p)
	if err != nil {
		return nil, err
	}
	all := elements(at)
	l, multi := f.layout(at)
	value := c.value
	key := name
	if len(rest) > 0 {
		value, key = c.under(p, name), rest[0]
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
		text = jsonString(key)
		if p.List && value != nil && len(rest) == 0 {
			text = jsonText(c.item(p, name), l)
		} else if value != nil {
			text += ": " + jsonText(value, l)
		}
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
	if n := len(all); n > 0 {
		last := all[n-1]
		if f.body[last.to+last.after] != ',' {
			comma = ","
		} else {
			text += "," // as the one before has it
		}
		if bytes.Contains(f.body[last.to:pos], []byte("//")) {
			lead = l.newline + l.indent
		}
		if comma != "" && pos > last.to {
			edits = append(edits, edit{last.to, last.to, comma})
			comma = ""
		}
	} else if pos == at.StartOffset+1 && l.flat && len(c.comments) == 0 {
		lead = ""
	} else if !bytes.ContainsAny(f.body[pos:closing], "\r\n") {
		text += l.newline + strings.TrimSuffix(l.indent, l.unit)
	}
	return append(edits, edit{pos, pos, comma + lead + text}), nil
}

// alone returns a JSON text with nothing but the entry. Comments go above the entry, once its place is there.
func (c content) alone(p Place, name, newline string) (string, error) {
	value := c.under(p, name)
	switch {
	case len(c.comments) > 0 && p.List:
		value = []string{}
	case len(c.comments) > 0:
		value = Object{}
	}
	for i := len(p.Path) - 1; i >= 0; i-- {
		value = Object{{p.Path[i], value}}
	}
	text := jsonText(value, layout{newline: newline, unit: "  "}) + newline
	if len(c.comments) == 0 {
		return text, nil
	}
	empty, err := Read(JSON, []byte(text))
	if err != nil {
		return "", err
	}
	with, err := empty.put(p, name, c)
	if err != nil {
		return "", err
	}
	return string(with.body), nil
}

// layout returns the layout of an object's members or a list's items. multi reports whether each has a line of its own.
func (f *File) layout(at hujson.Value) (l layout, multi bool) {
	l = layout{newline: f.newline(), unit: "  "}
	if root, err := textfile.SyntaxOf(f.body); err == nil {
		if all := elements(root); len(all) > 0 {
			if indent, ok := indentBefore(f.body, all[0].from); ok && indent != "" {
				l.unit = indent
			}
		}
	}
	all := elements(at)
	for _, e := range all {
		if indent, ok := indentBefore(f.body, e.from); ok && bytes.ContainsAny(f.body[at.StartOffset:e.from], "\n") {
			l.indent, multi = indent, true
		}
	}
	if multi {
		return l, true
	}
	start := bytes.LastIndexByte(f.body[:at.StartOffset], '\n') + 1
	line := f.body[start:at.StartOffset]
	l.indent = string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))]) + l.unit
	l.flat = len(all) > 0 || at.StartOffset > 0 && !bytes.ContainsAny(bytes.TrimSpace(f.body), "\r\n")
	return l, !l.flat // what is all on one line stays so
}

// indentBefore returns the blanks between the beginning of the line and offset. It returns false
// where anything but blanks stands there.
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

func (f *File) takeJSON(p Place, name string, comments bool) ([]edit, error) {
	at, rest, err := f.findJSON(p)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, errUnsafe
	}
	all := elements(at)
	i := indexOf(all, name)
	e := all[i]
	start := e.from
	if _, alone := indentBefore(f.body, start); comments && alone {
		start = f.commentsAbove(start, "//")
	}
	from, to, comma := f.blanksBefore(start), e.to, e.to+e.after
	follows := f.body[comma] == ','
	switch {
	case follows && len(bytes.TrimSpace(f.body[to:comma])) == 0:
		return []edit{{from, comma + 1, ""}}, nil
	case follows:
		return []edit{{from, to, ""}, {comma, comma + 1, ""}}, nil
	case i > 0:
		comma := all[i-1].to + all[i-1].after
		if comma+1 >= from {
			return []edit{{min(comma, from), to, ""}}, nil
		}
		return []edit{{comma, comma + 1, ""}, {from, to, ""}}, nil
	}
	return []edit{{from, to, ""}}, nil
}

// commentsAbove returns where the lines of comment right above the line of offset begin; offset where there are none.
// mark begins a comment of one line.
func (f *File) commentsAbove(offset int, mark string) int {
	i, _ := slices.BinarySearch(f.lineAt, offset+1)
	for i--; i > 0 && strings.HasPrefix(strings.TrimLeft(f.line(i-1), " \t"), mark); i-- {
		offset = f.lineAt[i-1]
	}
	return offset
}

func (f *File) textJSON(p Place, name string) (string, error) {
	at, rest, err := f.findJSON(p)
	i := indexOf(elements(at), name)
	if err != nil || len(rest) > 0 || i < 0 {
		return "", errUnsafe
	}
	e := elements(at)[i]
	return string(f.body[e.from:e.to]), nil
}
