package preview

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// detail is how much of a JSON text is shown.
type detail struct {
	items   int // elements of an array
	members int // members of an object, and names of an array's objects
	chars   int // characters of a string
	inline  int // characters of what stands on one line
}

// details are tried from the richest to the poorest until one fits. What is nested is shown in less
// detail than what it is in.
var details = [...]detail{
	{1000, 1000, 40000, 8000}, {1000, 1000, 10000, 4000}, {500, 500, 4000, 2000}, {200, 200, 2000, 1500},
	{100, 200, 1500, 1200},
	{50, 100, 1000, 1000}, {30, 100, 700, 800}, {20, 60, 500, 700}, {12, 60, 400, 600}, {8, 50, 300, 500},
	{5, 40, 250, 400},
	{3, 40, 200, 300}, {3, 30, 120, 240}, {2, 20, 80, 160}, {1, 15, 60, 120}, {1, 8, 30, 60}, {0, 5, 20, 40},
}

// showJSON describes text, which is valid JSON, in at most limit characters. JSON pointers to it begin with at.
func showJSON(text []byte, at string, limit int) []byte {
	root, ok := scan(text)
	if !ok {
		return cut(text, limit) // not in a checked text
	}
	long := make(map[int][]byte)
	var w shapeWriter
	for level := range details {
		w = shapeWriter{text: text, out: w.out[:0], left: limit, long: long, path: []byte(at)}
		w.value(&root, level, 0)
		if !w.over {
			return w.out
		}
	}
	return w.out[:Fit(w.out, limit)]
}

// shapeWriter writes one description.
type shapeWriter struct {
	text []byte
	out  []byte
	left int            // how many more characters fit
	over bool           // something did not fit: nothing more is written
	path []byte         // JSON pointer of the value at hand
	long map[int][]byte // strings that were decoded, by where they stand
}

func (w *shapeWriter) add(s string) {
	if w.over {
		return
	}
	w.out = append(w.out, s...)
	w.left -= Size([]byte(s))
	w.over = w.left < 0
}

func (w *shapeWriter) line(indent int) {
	w.add("\n")
	for range min(indent, 40) {
		w.add(" ")
	}
}

func (w *shapeWriter) value(v *value, level, indent int) {
	d := details[min(level, len(details)-1)]
	if w.over {
		return
	}
	if v.kind == '"' {
		w.str(v, d.chars)
		return
	}
	if text, ok := w.compact(v, d); ok {
		w.add(text)
		return
	}
	switch v.kind {
	case '{':
		w.object(v, level, indent)
	case '[':
		w.array(v, level, indent)
	default: // a number of very many digits
		end := v.from + Fit(w.text[v.from:v.to], d.chars)
		w.add(string(w.text[v.from:end]) + "... (" + plural(v.to-v.from, "digit") + w.at() + ")")
	}
}

// compact returns the value as it is on one line, if it is short. Long strings in it stay whole
// where the line has room.
func (w *shapeWriter) compact(v *value, d detail) (string, bool) {
	raw := w.text[v.from:v.to]
	if len(raw) > 16*d.inline {
		return "", false
	}
	out := make([]byte, 0, min(len(raw), 2*d.inline))
	for i := 0; i < len(raw); {
		switch raw[i] {
		case ' ', '\n', '\t', '\r':
			i++
		case '"':
			end := rawjson.SkipString(raw, i)
			out = append(out, raw[i:end]...)
			i = end
		default:
			out = append(out, raw[i])
			i++
		}
		if len(out) > 4*d.inline {
			return "", false
		}
	}
	return string(out), utf8.RuneCount(out) <= d.inline
}

// str writes a string: whole, or its head and tail.
func (w *shapeWriter) str(v *value, chars int) {
	raw := w.text[v.from:v.to]
	if len(raw)-2 <= chars {
		w.add(string(raw))
		return
	}
	text, ok := w.long[v.from]
	if !ok {
		text = Unquote(raw)
		w.long[v.from] = text
	}
	if len(text) <= 4*chars && utf8.RuneCount(text) <= chars {
		w.add(string(raw))
		return
	}
	head, tail := Fit(text, chars), len(text)
	if chars >= 80 {
		head = Fit(text, chars*2/3)
		tail = max(head, fitTail(text, chars-chars*2/3))
	}
	w.add(string(rawjson.Quote(string(text[:head]))) + " ... ")
	if tail < len(text) {
		w.add(string(rawjson.Quote(string(text[tail:]))) + " ")
	}
	w.add("(" + plural(utf8.RuneCount(text), "character"))
	if n := Lines(text); n > 1 {
		w.add(" in " + plural(n, "line"))
	}
	w.add(w.at() + ")")
}

// at says where the value at hand stands.
func (w *shapeWriter) at() string {
	if len(w.path) == 0 {
		return ""
	}
	return " at " + string(w.path)
}

func (w *shapeWriter) object(v *value, level, indent int) {
	d := details[min(level, len(details)-1)]
	w.add("object with " + plural(v.n, "member"))
	shown := min(len(v.kids), d.members)
	if shown > 0 {
		w.add(":")
	}
	below := len(w.path)
	for i := range v.kids[:shown] {
		kid := &v.kids[i]
		w.line(indent + 2)
		w.add(`"` + string(kid.key) + `": `)
		w.path = appendToken(w.path, kid.key)
		w.value(kid, level+1, indent+2)
		w.path = w.path[:below]
		if w.over {
			return
		}
	}
	if rest := v.n - shown; rest > 0 && shown > 0 {
		w.line(indent + 2)
		w.add("... " + number(rest) + " more")
		for i, kid := range v.kids[shown:min(len(v.kids), shown+d.members)] {
			w.add([]string{": ", ", "}[min(i, 1)] + string(kid.key[:Fit(kid.key, 60)]))
		}
	}
}

func (w *shapeWriter) array(v *value, level, indent int) {
	d := details[min(level, len(details)-1)]
	w.add("array of " + v.elements.count(v.n))
	w.names(v, d.members)
	shown := min(len(v.kids), d.items)
	switch {
	case shown == 0:
		return
	case shown < v.n:
		w.add("; the first " + number(shown))
	}
	w.add(":")
	below := len(w.path)
	for i := range v.kids[:shown] {
		w.line(indent + 2)
		w.path = strconv.AppendInt(append(w.path, '/'), int64(i), 10)
		w.value(&v.kids[i], level+1, indent+2)
		w.path = w.path[:below]
		if w.over {
			return
		}
	}
	if shown < v.n {
		w.line(indent + 2)
		w.add("... " + number(v.n-shown) + " more, from " + string(w.path) + "/" + strconv.Itoa(shown))
	}
}

// names says which members the objects of an array have.
func (w *shapeWriter) names(v *value, most int) {
	objects := v.elements.kinds[0] // the first of kinds
	if objects == 0 || len(v.elements.names) == 0 {
		return
	}
	var all, some []string
	for _, n := range v.elements.names {
		key := string(n.key[:Fit(n.key, 60)])
		if n.n >= objects {
			all = append(all, key)
		} else {
			some = append(some, key)
		}
	}
	w.list(" with ", all, most)
	if len(all) > 0 {
		w.list(" (some with ", some, most)
	} else {
		w.list(" (with ", some, most)
	}
	if v.elements.more {
		w.add(" and others")
	}
	if len(some) > 0 {
		w.add(")")
	}
}

// list writes names after an introduction, most of them at most.
func (w *shapeWriter) list(intro string, names []string, most int) {
	for i, n := range names {
		if i == most {
			w.add(" and " + number(len(names)-most) + " more")
			return
		}
		if i > 0 {
			intro = ", "
		}
		w.add(intro + n)
	}
}

// count is how many elements there are, by their kinds.
func (e *elements) count(n int) string {
	parts := make([]string, 0, len(kinds))
	for i, name := range [len(kinds)]string{"object", "array", "string", "number", "true value", "false value",
		"null value"} {
		if of := e.kinds[i]; of > 0 {
			parts = append(parts, plural(of, name))
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	out := plural(n, "value")
	for i, p := range parts {
		out += []string{" (", ", "}[min(i, 1)] + p
	}
	if len(parts) > 0 {
		out += ")"
	}
	return out
}

// appendToken appends the reference token of a key, which is as written in JSON, to a JSON pointer.
func appendToken(path, key []byte) []byte {
	path = append(path, '/')
	if bytes.IndexByte(key, '\\') >= 0 {
		key = Unquote(append(append([]byte{'"'}, key...), '"'))
	}
	for _, c := range key {
		switch c {
		case '~':
			path = append(path, "~0"...)
		case '/':
			path = append(path, "~1"...)
		default:
			path = append(path, c)
		}
	}
	return path
}
