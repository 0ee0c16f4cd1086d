package splice

import (
	"regexp"
	"slices"
	"strings"
)

// putTOML appends a table to the end of the file, where a table can always stand. Keys that are put
// back go to the head of their table.
func (f *File) putTOML(p Place, name string, c content) ([]edit, error) {
	nl := f.newline()
	value, ok := c.value.(Object)
	if !ok && c.text == "" {
		return nil, errUnsafe
	}
	var b strings.Builder
	if len(f.body) > 0 {
		if f.body[len(f.body)-1] != '\n' {
			b.WriteString(nl)
		}
		b.WriteString(nl)
	}
	if c.text != "" {
		if first, _, _ := strings.Cut(strings.TrimSpace(c.text), "\n"); headerKeys(first) == nil {
			if i := f.headOf(p.Path, valueKeys(first)); i >= 0 {
				return []edit{{f.lineAt[i], f.lineAt[i], c.text}}, nil
			}
			b.WriteString("[" + tomlKeys(p.Path) + "]" + nl)
		}
		b.WriteString(c.text)
	} else {
		for _, comment := range c.comments {
			b.WriteString("# " + comment + nl)
		}
		b.WriteString("[" + tomlKeys(append(slices.Clone(p.Path), name)) + "]" + nl)
		for _, m := range value {
			b.WriteString(tomlKey(m.Key) + " = " + tomlText(m.Value) + nl)
		}
	}
	return []edit{{len(f.body), len(f.body), b.String()}}, nil
}

var (
	tomlHeader = regexp.MustCompile(`^[ \t]*\[\[?([^\[\]]+)\]\]?[ \t]*(#.*)?$`)
	tomlWord   = regexp.MustCompile(`^[ \t]*("[^"\\]*"|'[^']*'|[A-Za-z0-9_-]+)[ \t]*(\.|$)`)
	tomlBegin  = regexp.MustCompile(`^((?:[ \t]*(?:"[^"\\]*"|'[^']*'|[A-Za-z0-9_-]+)[ \t]*\.)*` +
		`[ \t]*(?:"[^"\\]*"|'[^']*'|[A-Za-z0-9_-]+)[ \t]*)=`)
)

// headerKeys returns the keys of a line that looks like the header of a table; nil for any other.
func headerKeys(line string) []string {
	return dottedKeys(tomlHeader.FindStringSubmatch(strings.TrimRight(line, "\r\n")))
}

// valueKeys returns the keys of a line that looks like the beginning of a key's value; nil for any other.
func valueKeys(line string) []string { return dottedKeys(tomlBegin.FindStringSubmatch(line)) }

// dottedKeys returns the keys of what a pattern has found.
func dottedKeys(m []string) []string {
	if m == nil {
		return nil
	}
	var keys []string
	for rest := m[1]; rest != ""; {
		word := tomlWord.FindStringSubmatch(rest)
		if word == nil {
			return nil
		}
		keys = append(keys, strings.Trim(word[1], `"'`))
		rest = rest[len(word[0]):]
	}
	return keys
}

// headOf returns the line before which keys of a table can stand: behind its header, or at the
// beginning of the file where they have the whole path; -1 where there is none.
func (f *File) headOf(path, keys []string) int {
	if len(keys) > len(path) && slices.Equal(keys[:len(path)], path) {
		return 0
	}
	for i := 0; i+1 < len(f.lineAt); i++ {
		if slices.Equal(headerKeys(f.line(i)), path) {
			return i + 1
		}
	}
	return -1
}

// tomlKeys writes keys with dots between them.
func tomlKeys(path []string) string {
	keys := make([]string, len(path))
	for i, key := range path {
		keys[i] = tomlKey(key)
	}
	return strings.Join(keys, ".")
}

// takeTOML takes out the tables of an entry, or its keys: it = {…}, it.command = "…". It finds them
// by lines that look like headers and keys. Such a line may belong to a text of several lines: then
// changed refuses the edit.
func (f *File) takeTOML(p Place, name string) ([]edit, error) {
	path := append(slices.Clone(p.Path), name)
	var edits []edit
	var table []string // in which a line stands
	for i := 0; i+1 < len(f.lineAt); i++ {
		header := headerKeys(f.line(i))
		keys := header
		if header != nil {
			table = header
		} else if keys = valueKeys(f.line(i)); keys != nil {
			keys = slices.Concat(table, keys)
		}
		if len(keys) < len(path) || !slices.Equal(keys[:len(path)], path) {
			continue
		}
		end := i + 1
		for end+1 < len(f.lineAt) && headerKeys(f.line(end)) == nil &&
			(header != nil || valueKeys(f.line(end)) == nil) {
			end++
		}
		end = f.trimmed(i+1, end)
		from := i
		if header != nil && len(edits) == 0 && i > 0 && strings.TrimSpace(f.line(i-1)) == "" {
			from-- // the empty line that stands before the table
		}
		edits = append(edits, edit{f.lineAt[from], f.lineAt[end], ""})
		i = end - 1
	}
	return edits, nil
}

// line returns a line with its end.
func (f *File) line(i int) string { return string(f.body[f.lineAt[i]:f.lineAt[i+1]]) }

// trimmed returns the line after the last one before end that is neither empty nor a comment: those
// belong to what follows them.
func (f *File) trimmed(from, end int) int {
	for end > from {
		if line := strings.TrimSpace(f.line(end - 1)); line != "" && line[0] != '#' {
			break
		}
		end--
	}
	return end
}
