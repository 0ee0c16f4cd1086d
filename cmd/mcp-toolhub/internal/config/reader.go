package config

import (
	"cmp"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// maxFaults bounds the report on a file that is something else altogether.
const maxFaults = 500

// reader walks a file along the table and collects what is wrong. It is used once, by one goroutine.
type reader struct {
	file     string
	path     string // key path of the value that is being read
	faults   textfile.Faults
	warnings textfile.Faults
	strays   textfile.Faults // of Settings
	patterns []Pattern       // of Settings
	origins  []string        // ids of servers, and toolsets
	hubTools []string        // of Source
	vars     *variables

	credentials map[string][]string    // of Settings
	read        map[string]fs.FileInfo // of Settings
	digests     map[string]string      // of Settings

	// dormant is set within a disabled server: its variables may be unset and its files missing.
	dormant bool
}

func newReader(src Source) *reader {
	return &reader{file: src.Path, vars: newVariables(src.Path, src.Env), hubTools: src.HubTools, credentials: make(map[string][]string),
		read: make(map[string]fs.FileInfo), digests: make(map[string]string)}
}

// note remembers what a file held that the settings come from.
func (r *reader) note(path string, data []byte) { r.digests[realPath(path)] = digest(data) }

// tree reads the text of the file, or reports why it cannot and returns nil.
func (r *reader) tree(data []byte) *textfile.Node {
	if len(data) > maxFileBytes {
		const message = "the file is larger than 4 MiB"
		r.report(textfile.Fault{Position: textfile.At(1, 1), Message: message, Hint: "check the path"})
		return nil
	}
	root, faults := textfile.Parse(r.file, data)
	for _, f := range faults {
		r.report(f)
	}
	return root
}

// fault reports what is wrong at the current key path.
func (r *reader) fault(p textfile.Position, message, hint string) {
	r.report(textfile.Fault{Position: p, Key: r.path, Message: message, Hint: hint})
}

func (r *reader) report(f textfile.Fault) {
	if len(r.faults) > maxFaults {
		return
	}
	f.File = r.file
	if len(r.faults) == maxFaults {
		f.Key, f.Message, f.Hint = "", fmt.Sprintf("more than %d faults", maxFaults), "check that this is the right file"
	}
	r.faults = append(r.faults, f)
}

func (r *reader) warn(p textfile.Position, message, hint string) {
	if len(r.warnings) < maxFaults {
		r.warnings = append(r.warnings,
			textfile.Fault{File: r.file, Position: p, Key: r.path, Message: message, Hint: hint})
	}
}

// stray warns of an entry that matches nothing.
func (r *reader) stray(p textfile.Position, message, hint string) {
	before := len(r.warnings)
	r.warn(p, message, hint)
	r.strays = append(r.strays, r.warnings[before:]...)
}

// enter extends the key path by key and returns the function that restores it.
func (r *reader) enter(key string) (leave func()) { return r.at(join(r.path, key)) }

func (r *reader) enterItem(i int) (leave func()) { return r.at(fmt.Sprintf("%s[%d]", r.path, i)) }

// at sets the key path and returns the function that restores it.
func (r *reader) at(path string) (leave func()) {
	before := r.path
	r.path = path
	return func() { r.path = before }
}

// expected reports a value of the wrong type.
func (r *reader) expected(n *textfile.Node, want, hint string) {
	if n.Kind == textfile.Null {
		hint = cmp.Or(hint, "write a value, or remove the key")
	}
	r.fault(n.Position, "want "+want+", found "+string(n.Kind), hint)
}

// faultOf reports what is wrong with a value that was read before.
func faultOf[V any](r *reader, v located[V], message, hint string) {
	defer r.at(v.path)()
	r.fault(v.Position, message, hint)
}

func warnOf[V any](r *reader, v located[V], message, hint string) {
	defer r.at(v.path)()
	r.warn(v.Position, message, hint)
}

var plainKey = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_$-]*$`)

// join appends key to a key path. A key that would be misread there is quoted, a very long one cut. A slip such as
// "TOKEN=value" or "Authorization: value" makes the value a part of the key, so a key is not shown beyond = or :.
func join(path, key string) string {
	if !plainKey.MatchString(key) || len(key) > 100 {
		if i := strings.IndexAny(key, "=:"); i >= 0 {
			key = key[:i+1] + "…"
		}
		return path + "[" + quote(key) + "]"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// quote makes a key or name of the file safe to show: one line, no control characters, not too long.
func quote(s string) string {
	if utf8.RuneCountInString(s) > 100 {
		s = string([]rune(s)[:100]) + "…"
	}
	return strconv.Quote(s)
}
