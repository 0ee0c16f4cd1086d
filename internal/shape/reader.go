package shape

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// maxFaults bounds the report on a file that is something else altogether.
const maxFaults = 500

// Reader walks a file along a table and collects what is wrong. It is used once, by one goroutine.
type Reader struct {
	File     string
	Path     string // key path of the value that is being read
	Faults   textfile.Faults
	Warnings textfile.Faults
	Noted    []Located[string] // texts that Note has noted

	// Expand replaces references such as ${NAME} in the texts that allow them: text, which stands
	// at p. It returns false after a fault. nil: there are no such texts. With defaults a fault may
	// suggest to give a default.
	Expand func(p textfile.Position, text string, defaults bool) (Expansion, bool)
}

// Expansion is a text whose references have been replaced.
type Expansion struct {
	Text      string
	FromFile  bool // part of the text stands in the file itself, as a default
	Reference bool // part of the text comes from elsewhere
	Unknown   bool // a reference had no value and needs none, so the text means nothing
}

// Fault reports what is wrong at the current key path.
func (r *Reader) Fault(p textfile.Position, message, hint string) {
	r.Report(textfile.Fault{File: r.File, Position: p, Key: r.Path, Message: message, Hint: hint})
}

// Report reports a fault that is complete: of another file, or of the file as a whole.
func (r *Reader) Report(f textfile.Fault) {
	if len(r.Faults) > maxFaults {
		return
	}
	if len(r.Faults) == maxFaults {
		f.Key, f.Message, f.Hint = "", fmt.Sprintf("more than %d faults", maxFaults),
			"check that this is the right file"
	}
	r.Faults = append(r.Faults, f)
}

// Warn reports what has no effect at the current key path.
func (r *Reader) Warn(p textfile.Position, message, hint string) {
	if len(r.Warnings) < maxFaults {
		r.Warnings = append(r.Warnings, textfile.Fault{File: r.File, Position: p, Key: r.Path, Message: message,
			Hint: hint})
	}
}

// Note notes a text, which is to be looked at once all of the file has been read.
func (r *Reader) Note(n *textfile.Node, text string) {
	r.Noted = append(r.Noted, Located[string]{n.Position, r.Path, n, true, true, text})
}

// Expected reports a value of the wrong type.
func (r *Reader) Expected(n *textfile.Node, want, hint string) {
	if n.Kind == textfile.Null {
		hint = cmp.Or(hint, "write a value, or remove the key")
	}
	r.Fault(n.Position, "want "+want+", found "+string(n.Kind), hint)
}

// Parsed takes over the tree of a file and the faults of its parser. It returns nil where there are any.
func (r *Reader) Parsed(root *textfile.Node, faults textfile.Faults) *textfile.Node {
	for _, f := range faults {
		f.File = r.File
		r.Report(f)
	}
	return root
}

// Members returns the members of a mapping, and whether n is one, or nothing, that has each key
// once. Of a key that stands there more than once it returns the first.
func (r *Reader) Members(n *textfile.Node) (members []textfile.Member, sound bool) {
	if n.Kind != textfile.Mapping {
		if n.Kind != textfile.Null {
			r.Expected(n, "a mapping", "")
		}
		return nil, n.Kind == textfile.Null
	}
	first := make(map[string]textfile.Position, len(n.Members))
	sound = true
	for _, m := range n.Members {
		if at, twice := first[m.Key]; twice {
			leave := r.Enter(m.Key)
			r.Fault(m.Position, "duplicate key, first at "+r.Place(at), "remove one of the two")
			leave()
			sound = false
			continue
		}
		first[m.Key] = m.Position
		members = append(members, m)
	}
	return members, sound
}

// Place is file:line:column.
func (r *Reader) Place(p textfile.Position) string {
	return fmt.Sprintf("%s:%d:%d", r.File, p.Line, p.Column)
}

// At sets the key path and returns the function that restores it.
func (r *Reader) At(path string) (leave func()) {
	before := r.Path
	r.Path = path
	return func() { r.Path = before }
}

// Enter extends the key path by key and returns the function that restores it.
func (r *Reader) Enter(key string) (leave func()) { return r.At(join(r.Path, key)) }

// FaultOf reports what is wrong with a value that was read before.
func FaultOf[V any](r *Reader, v Located[V], message, hint string) {
	defer r.At(v.Path)()
	r.Fault(v.Position, message, hint)
}

// WarnOf reports that a value that was read before has no effect.
func WarnOf[V any](r *Reader, v Located[V], message, hint string) {
	defer r.At(v.Path)()
	r.Warn(v.Position, message, hint)
}

// FaultWithin reports a fault at a key path below v, such as match[1], at the deepest place of it that the file holds.
func FaultWithin[V any](r *Reader, v Located[V], path, message, hint string) {
	at := v.Position
	if n := v.Node; n != nil {
		for _, step := range strings.FieldsFunc(path, func(c rune) bool { return c == '.' || c == '[' || c == ']' }) {
			next := n.Member(step)
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Items) {
				next = n.Items[i]
			}
			if next == nil {
				break
			}
			n, at = next, next.Position
		}
	}
	if path != "" && path[0] != '.' && path[0] != '[' {
		path = "." + path
	}
	defer r.At(v.Path + path)()
	r.Fault(at, message, hint)
}

var plainKey = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

// join appends key to a key path. A key that would be misread there is quoted, a very long one cut. A slip such as
// "TOKEN=value" or "Authorization: value" makes the value a part of the key, so a key is not shown beyond = or :.
func join(path, key string) string {
	if !plainKey.MatchString(key) || len(key) > 100 {
		if i := strings.IndexAny(key, "=:"); i >= 0 {
			key = key[:i+1] + "…"
		}
		return path + "[" + Quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Quote makes a key or name of the file safe to show: one line, no control characters, not too long.
func Quote(s string) string {
	if utf8.RuneCountInString(s) > 100 {
		s = string([]rune(s)[:100]) + "…"
	}
	return strconv.Quote(s)
}
