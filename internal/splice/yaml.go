package splice

import (
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

func (f *File) putYAML(p Place, name string, c content) ([]edit, error) {
	holder, key, rest := f.Root, (*textfile.Member)(nil), p.Path
	for len(rest) > 0 {
		i := len(holder.Members) - 1
		for i >= 0 && holder.Members[i].Key != rest[0] {
			i--
		}
		if i < 0 {
			break
		}
		key, holder, rest = &holder.Members[i], holder.Members[i].Value, rest[1:]
		if wanted := kindOf(p, rest); holder.Kind != wanted && holder.Kind != textfile.Null {
			return nil, refuse(holder, p.Path[:len(p.Path)-len(rest)])
		}
	}
	l := layout{newline: f.newline(), unit: "  "}
	write := func(l layout) string { // the entry, below the keys that are not there yet
		var b strings.Builder
		for _, missing := range rest {
			b.WriteString(l.indent + yamlString(missing) + ":" + l.newline)
			l = l.deeper()
		}
		b.WriteString(yamlEntry(p, name, c, l))
		return b.String()
	}
	if key == nil && holder.Kind == textfile.Mapping && len(holder.Members) == 0 {
		return []edit{f.atLine(len(f.lineAt)-1, write(l))}, nil
	}
	if key != nil && holder.Kind == textfile.Null {
		line := f.line(key.Line - 1)
		if _, after, _ := strings.Cut(line, ":"); !blankOrComment(after) {
			return nil, refuse(holder, p.Path)
		}
		l.indent = strings.Repeat(" ", key.Column-1+2)
		return []edit{f.atLine(key.Line, write(l))}, nil
	}
	if at := f.offset(holder.Position); strings.IndexByte("{[", f.body[at]) >= 0 {
		return f.putFlow(p, name, c, rest, holder, at+1)
	}
	l.indent = strings.Repeat(" ", holder.Column-1)
	from, indent := 0, -1
	if key != nil {
		from, indent = key.Line, key.Column-1
	}
	return []edit{f.atLine(f.trimmed(from, f.blockEnd(from, indent, p.List && len(rest) == 0)), write(l))}, nil
}

// kindOf is the kind of the value at which rest of the path remains.
func kindOf(p Place, rest []string) textfile.Kind {
	if p.List && len(rest) == 0 {
		return textfile.List
	}
	return textfile.Mapping
}

func yamlEntry(p Place, name string, c content, l layout) string {
	if c.text != "" {
		return c.text
	}
	var b strings.Builder
	for _, comment := range c.comments {
		b.WriteString(l.indent + "# " + comment + l.newline)
	}
	if !p.List {
		return b.String() + yamlMember(name, c.value, l)
	}
	in := layout{newline: l.newline, indent: l.indent + "  ", unit: "  "}
	item := yamlMembers(append(Object{{"name", name}}, c.value...), in)
	return b.String() + l.indent + "- " + strings.TrimPrefix(item, in.indent)
}

// putFlow puts an entry into a mapping or list that is written in brackets, as JSON.
func (f *File) putFlow(p Place, name string, c content, rest []string, holder *textfile.Node, at int) ([]edit, error) {
	if c.text != "" {
		return nil, errUnsafe
	}
	flat := layout{flat: true}
	text := jsonString(name) + ": " + jsonText(c.value, flat)
	if p.List {
		text = jsonText(append(Object{{"name", name}}, c.value...), flat)
	}
	for i := len(rest) - 1; i >= 0; i-- {
		inner := "{" + text + "}"
		if p.List && i == len(rest)-1 {
			inner = "[" + text + "]"
		}
		text = jsonString(rest[i]) + ": " + inner
	}
	if len(holder.Members)+len(holder.Items) > 0 {
		text += ", "
	}
	return []edit{{at, at, text}}, nil
}

// atLine puts lines before line i, from 0.
func (f *File) atLine(i int, text string) edit {
	at := f.lineAt[min(i, len(f.lineAt)-1)]
	if at > 0 && f.body[at-1] != '\n' && f.body[at-1] != '\r' {
		text = f.newline() + text
	}
	return edit{at, at, text}
}

// offset is where a place of the tree is in the body.
func (f *File) offset(p textfile.Position) int {
	at := f.lineAt[p.Line-1]
	for range p.Column - 1 {
		_, size := utf8.DecodeRune(f.body[at:])
		at += size
	}
	return min(at, len(f.body)-1)
}

// blockEnd returns the first line from line i on that is not within a block whose key has that indent. Items of a list may have the
// indent of its key.
func (f *File) blockEnd(i, indent int, items bool) int {
	for ; i+1 < len(f.lineAt); i++ {
		line := f.line(i)
		text := strings.TrimLeft(line, " ")
		if blankOrComment(text) || len(line)-len(text) > indent {
			continue
		}
		if items && len(line)-len(text) == indent && strings.HasPrefix(text, "-") {
			continue
		}
		break
	}
	return i
}

func blankOrComment(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || text[0] == '#'
}

func (f *File) takeYAML(p Place, name string) ([]edit, error) {
	holder := f.At(p.Path...)
	if holder.Line > 0 && strings.IndexByte("{[", f.body[f.offset(holder.Position)]) >= 0 {
		return nil, errUnsafe
	}
	path := p.Path
	if len(holder.Members)+len(holder.Items) == 1 { // nothing stays: its key goes, too
		parent := f.At(path[:len(path)-1]...)
		for _, m := range parent.Members {
			if m.Key == path[len(path)-1] {
				return f.block(m.Line-1, m.Column-1, p.List), nil
			}
		}
	}
	e := f.Entry(p, name)
	first, indent := e.Line-1, e.Column-1
	if p.List {
		indent = holder.Column - 1
		for first > 0 && !strings.HasPrefix(strings.TrimLeft(f.line(first), " "), "-") {
			first--
		}
	}
	return f.block(first, indent, false), nil
}

// block is the lines of a block that begins with line first.
func (f *File) block(first, indent int, items bool) []edit {
	end := f.trimmed(first+1, f.blockEnd(first+1, indent, items))
	return []edit{{f.lineAt[first], f.lineAt[end], ""}}
}
