package splice

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// layout says how values are laid out.
type layout struct {
	newline, indent, unit string
	flat                  bool // all on one line
}

func (l layout) deeper() layout {
	l.indent += l.unit
	return l
}

// moved returns lines of YAML with their first one at this indent, and the others as far from it as they were.
func (l layout) moved(lines string) string {
	was := len(lines) - len(strings.TrimLeft(lines, " "))
	var b strings.Builder
	for line := range strings.Lines(lines) {
		if bare := strings.TrimLeft(line, " "); len(line)-len(bare) >= was &&
			(was > 0 || strings.TrimSpace(bare) != "") {
			line = l.indent + line[was:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// jsonString quotes a text, for JSON as well as YAML and TOML.
func jsonString(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // strings can always be encoded
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

// list writes strings on one line.
func list(items []string) string {
	quoted := make([]string, len(items))
	for i, item := range items {
		quoted[i] = jsonString(item)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// jsonText writes a value. l.indent is the indent of the line on which the value begins.
func jsonText(v any, l layout) string {
	switch v := v.(type) {
	case Object:
		if len(v) == 0 {
			return "{}"
		}
		in := l.deeper()
		members := make([]string, len(v))
		for i, m := range v {
			members[i] = jsonString(m.Key) + ": " + jsonText(m.Value, in)
		}
		if l.flat {
			return "{" + strings.Join(members, ", ") + "}"
		}
		return "{" + l.newline + in.indent + strings.Join(members, ","+l.newline+in.indent) + l.newline + l.indent + "}"
	case []Object:
		items := make([]string, len(v))
		for i := range v {
			items[i] = jsonText(v[i], l)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case []string:
		return list(v)
	case string:
		return jsonString(v)
	}
	return fmt.Sprint(v)
}

// plainYAML matches texts that YAML reads as they stand, without quotes.
var plainYAML = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9_/.@+-]*$`)

func yamlString(s string) string {
	reserved := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
	if plainYAML.MatchString(s) && !slices.Contains(reserved, strings.ToLower(s)) {
		return s
	}
	return jsonString(s)
}

// yamlMember writes a key and its value as lines, each with the indent of l and a line end.
func yamlMember(key string, v any, l layout) string {
	head := l.indent + yamlString(key) + ":"
	switch v := v.(type) {
	case Object:
		if len(v) == 0 {
			return head + " {}" + l.newline
		}
		return head + l.newline + yamlMembers(v, l.deeper())
	case []string:
		return head + " " + list(v) + l.newline
	case string:
		return head + " " + yamlString(v) + l.newline
	}
	return head + " " + fmt.Sprint(v) + l.newline
}

func yamlMembers(o Object, l layout) string {
	var b strings.Builder
	for _, m := range o {
		b.WriteString(yamlMember(m.Key, m.Value, l))
	}
	return b.String()
}

// bareTOML matches keys that need no quotes.
var bareTOML = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func tomlKey(key string) string {
	if bareTOML.MatchString(key) {
		return key
	}
	return jsonString(key)
}

func tomlText(v any) string {
	switch v := v.(type) {
	case Object:
		members := make([]string, len(v))
		for i, m := range v {
			members[i] = tomlKey(m.Key) + " = " + tomlText(m.Value)
		}
		return "{ " + strings.Join(members, ", ") + " }"
	case []string:
		return list(v)
	case string:
		return jsonString(v)
	}
	return fmt.Sprint(v)
}
