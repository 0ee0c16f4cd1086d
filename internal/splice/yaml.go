package splice

import (
	"bytes"
	"regexp"
	"slices"
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
		return []edit{f.atLine(f.blockEnd(0, -1, false), write(l))}, nil
	}
	if key != nil && holder.Kind == textfile.Null {
		line := f.line(key.Line - 1)
		if _, after, _ := strings.Cut(line, ":"); !blankOrComment(after) {
			return nil, refuse(holder, p.Path)
		}
		l.indent = strings.Repeat(" ", key.Column-1+2)
		return []edit{f.atLine(key.Line, write(l))}, nil
	}
	if f.isFlow(holder) {
		at := f.offset(holder.Position)
		// only a block has room for comments
		if end, ok := f.emptyFlow(key, at); ok && len(rest) == 0 && len(c.comments) > 0 {
			l.indent = strings.Repeat(" ", key.Column-1+2)
			return []edit{{at - 1, end, ""}, f.atLine(key.Line, write(l))}, nil
		}
		return f.putFlow(p, name, c, rest, at)
	}
	l.indent = strings.Repeat(" ", holder.Column-1)
	from, indent := 0, -1
	if key != nil {
		from, indent = key.Line, key.Column-1
	}
	return []edit{f.atLine(f.trimmed(from, f.blockEnd(from, indent, p.List && len(rest) == 0)), write(l))}, nil
}

// isBorrowed reports whether the keys of p lead through an alias or a merge: what stands there
// stands elsewhere in the file, and has other meanings, too.
func (f *File) isBorrowed(p Place) bool {
	n, from := f.Root, 0
	for _, key := range p.Path {
		i := slices.IndexFunc(n.Members, func(m textfile.Member) bool { return m.Key == key })
		if i < 0 {
			return false
		}
		m := n.Members[i]
		if slices.ContainsFunc(n.Members[i+1:], func(other textfile.Member) bool { return other.Key == key }) {
			return true // nobody knows which of the two counts
		}
		if m.Value.Kind == textfile.Null {
			return false
		}
		at := f.offset(m.Position)
		if at < from || f.offset(m.Value.Position) < at {
			return true
		}
		n, from = m.Value, at
	}
	return false
}

var emptyBraces = regexp.MustCompile(`^\{[ \t]*\}`)

// emptyFlow returns the end of a mapping in brackets that opens at offset at, if nothing is in it,
// it is all that its line holds after the key, and it is not within other brackets.
func (f *File) emptyFlow(key *textfile.Member, at int) (end int, ok bool) {
	if key == nil || f.body[f.offset(f.Root.Position)] == '{' || at >= f.lineAt[key.Line] {
		return 0, false
	}
	before := f.body[f.lineAt[key.Line-1]:at]
	m := emptyBraces.Find(f.body[at:])
	end = at + len(m)
	line := string(f.body[end:f.lineAt[key.Line]])
	return end, m != nil && bytes.HasSuffix(before, []byte(": ")) && len(bytes.TrimSpace(before[:key.Column-1])) == 0 &&
		blankOrComment(line)
}

// kindOf returns the kind that a value on the path of p has to have; rest is the path below that value.
func kindOf(p Place, rest []string) textfile.Kind {
	if p.List && len(rest) == 0 {
		return textfile.List
	}
	return textfile.Mapping
}

func yamlEntry(p Place, name string, c content, l layout) string {
	if c.text != "" {
		return l.moved(c.text)
	}
	var b strings.Builder
	for _, comment := range c.comments {
		b.WriteString(l.indent + "# " + comment + l.newline)
	}
	if !p.List {
		return b.String() + yamlMember(name, c.value, l)
	}
	if c.value == nil {
		return b.String() + l.indent + "- " + yamlString(name) + l.newline
	}
	in := layout{newline: l.newline, indent: l.indent + "  ", unit: "  "}
	item := yamlMembers(c.item(p, name), in)
	return b.String() + l.indent + "- " + strings.TrimPrefix(item, in.indent)
}

// item is the entry as an item of a list of mappings.
func (c content) item(p Place, name string) Object {
	value, _ := c.value.(Object)
	return append(Object{{p.key(), name}}, value...)
}

// putFlow puts an entry into a mapping or list that is written in brackets and opens at offset open.
func (f *File) putFlow(p Place, name string, c content, rest []string, open int) ([]edit, error) {
	if c.text != "" {
		return nil, errUnsafe
	}
	flat := layout{flat: true}
	text := yamlString(name)
	switch {
	case p.List && c.value != nil:
		text = jsonText(c.item(p, name), flat)
	case c.value != nil:
		text += ": " + jsonText(c.value, flat)
	}
	if len(c.comments) > 0 { // each has a line of its own, and so has what comes after it
		start := f.body[bytes.LastIndexByte(f.body[:open], '\n')+1:]
		line := f.newline() + string(start[:len(start)-len(bytes.TrimLeft(start, " \t"))]) + "  "
		text = line + "# " + strings.Join(c.comments, line+"# ") + line + text
	}
	for i := len(rest) - 1; i >= 0; i-- {
		inner := "{" + text + "}"
		if p.List && i == len(rest)-1 {
			inner = "[" + text + "]"
		}
		text = yamlString(rest[i]) + ": " + inner
	}
	if all := f.flowParts(open); len(all) > 0 {
		at := all[len(all)-1].to
		if text[0] != '\r' && text[0] != '\n' {
			text = " " + text
		}
		return []edit{{at, at, "," + text}}, nil
	}
	return []edit{{open + 1, open + 1, text}}, nil
}

// flowParts returns where the parts stand of a mapping or list that is written in brackets and opens at offset open.
func (f *File) flowParts(open int) (all []edit) {
	const blank = " \t\r\n"
	in := func(chars string, i int) bool { return strings.IndexByte(chars, f.body[i]) >= 0 }
	depth, part := 1, edit{from: -1}
	for i := open + 1; i < len(f.body); i++ {
		begins := in(blank+"[{,:", i-1)
		switch c := f.body[i]; {
		case in(blank, i):
			continue
		case c == '#' && begins:
			i += max(bytes.IndexByte(f.body[i:], '\n'), 0)
			continue
		case in(",]}", i) && depth == 1:
			if part.from >= 0 {
				all, part = append(all, part), edit{from: -1}
			}
			if c != ',' {
				return all
			}
			continue
		case in("[{", i):
			depth++
		case in("]}", i):
			depth--
		}
		if part.from < 0 {
			part.from = i
		}
		if quote := f.body[i]; in(`"'`, i) && begins {
			for i++; i < len(f.body)-1 && f.body[i] != quote; i++ {
				if quote == '"' && f.body[i] == '\\' {
					i++
				}
			}
		}
		part.to = min(i+1, len(f.body))
	}
	return nil // unreachable: the file was read
}

// atLine puts lines before line i, from 0.
func (f *File) atLine(i int, text string) edit {
	at := f.lineAt[min(i, len(f.lineAt)-1)]
	if at > 0 && f.body[at-1] != '\n' && f.body[at-1] != '\r' {
		text = f.newline() + text
	}
	return edit{at, at, text}
}

// offset returns where a place of the tree is in the body.
func (f *File) offset(p textfile.Position) int {
	at := f.lineAt[p.Line-1]
	for range p.Column - 1 {
		_, size := utf8.DecodeRune(f.body[at:])
		at += size
	}
	return min(at, len(f.body)-1)
}

// blockEnd returns the first line, from line i on, that does not belong to a block whose key has
// that indent. Items of a list may have the same indent as its key.
func (f *File) blockEnd(i, indent int, items bool) int {
	for ; i+1 < len(f.lineAt); i++ {
		line := f.line(i)
		text := strings.TrimLeft(line, " ")
		if strings.TrimSpace(line) == "..." && text == line { // the end of the document
			break
		}
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

func (f *File) takeYAML(p Place, name string, comments bool) ([]edit, error) {
	holder := f.At(p.Path...)
	if f.isFlow(holder) {
		return f.takeFlow(p, holder, name, comments)
	}
	path := p.Path
	if len(path) > 0 && len(holder.Members)+len(holder.Items) == 1 { // nothing stays: its key goes, too
		parent := f.At(path[:len(path)-1]...)
		for _, m := range parent.Members {
			if m.Key == path[len(path)-1] {
				return f.block(m.Line-1, m.Column-1, p.List), nil
			}
		}
	}
	edits := f.entryBlock(p, name)
	if comments {
		edits[0].from = f.commentsAbove(edits[0].from, "#")
	}
	return edits, nil
}

// isFlow reports whether a mapping or list is written in brackets.
func (f *File) isFlow(n *textfile.Node) bool {
	return strings.IndexByte("{[", f.body[f.offset(n.Position)]) >= 0
}

// entryBlock returns the edit that takes out the lines of an entry that is not within brackets.
func (f *File) entryBlock(p Place, name string) []edit {
	e := f.Entry(p, name)
	first, indent := e.Line-1, e.Column-1
	if p.List {
		indent = f.At(p.Path...).Column - 1
		for first > 0 && !strings.HasPrefix(strings.TrimLeft(f.line(first), " "), "-") {
			first--
		}
	}
	return f.block(first, indent, false)
}

// takeFlow takes an entry out of a mapping or list that is written in brackets, with the comments
// above it if comments is set.
func (f *File) takeFlow(p Place, holder *textfile.Node, name string, comments bool) ([]edit, error) {
	open := f.offset(holder.Position)
	all := f.flowParts(open)
	i := slices.IndexFunc(holder.Members, func(m textfile.Member) bool { return m.Key == name })
	if holder.Kind == textfile.List {
		i = slices.IndexFunc(holder.Items, func(item *textfile.Node) bool { return p.itemName(item) == name })
	}
	if len(all) != len(holder.Members)+len(holder.Items) {
		return nil, errUnsafe
	}
	e, own := all[i], all[i].from // own: where the entry and its comments begin
	if _, alone := indentBefore(f.body, own); alone && comments {
		if at := f.commentsAbove(own, "#"); at < own {
			own = at + bytes.IndexByte(f.body[at:], '#')
		}
	}
	if i < len(all)-1 {
		to, behind := all[i+1].from, f.body[e.to:all[i+1].from]
		// somebody else's comments stay
		if comma, hash := bytes.IndexByte(behind, ','), bytes.IndexByte(behind, '#'); comma < hash {
			to = e.to + hash
		}
		return []edit{{own, to, ""}}, nil
	}
	from, to := open+1, e.to
	if i > 0 {
		from = all[i-1].to
	}
	rest := bytes.TrimLeft(f.body[to:], " \t\r\n")
	// the comma before the entry stays: it may stand at the end
	if foreign := bytes.IndexByte(f.body[from:own], '#') >= 0; foreign || i == 0 {
		if rest[0] == ',' {
			to = len(f.body) - len(rest) + 1
		}
		if foreign {
			from = own
			if end := bytes.TrimLeft(f.body[to:], " \t"); end[0] == '\r' || end[0] == '\n' {
				from = f.blanksBefore(own)
			}
		}
	}
	return []edit{{from, to, ""}}, nil
}

// block returns the edit that takes out the block which begins with line first.
func (f *File) block(first, indent int, items bool) []edit {
	end := f.trimmed(first+1, f.blockEnd(first+1, indent, items))
	return []edit{{f.lineAt[first], f.lineAt[end], ""}}
}
