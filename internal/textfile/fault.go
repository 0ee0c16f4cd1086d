// Package textfile reads files that people write, YAML, JSON with comments or TOML, into one kind
// of tree. Each value has its place. It makes faults with a hint at what to do, and finds the word
// that was most likely meant. No size or depth of a file can keep it busy. Its callers say what a
// file may hold.
package textfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Position is a place in a file.
type Position struct {
	Line   int // from 1
	Column int // from 1, in characters
}

// At is the place in that line and column.
func At(line, column int) Position { return Position{line, column} }

// Fault is one thing that is wrong in a file. Whoever makes one for a file that may hold secrets puts no value of the
// file into it.
type Fault struct {
	File     string // as it was given
	Position        // of what is wrong
	// path of the key: mcpServers.github.env.TOKEN, rules[2].when; "" for a fault of the file as a
	// whole
	Key     string
	Message string // what is wrong
	Hint    string // what to do; "" where the message says it
}

// Error is file:line:column: key: message; hint.
func (f Fault) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", f.File, f.Line, f.Column)
	if f.Key != "" {
		b.WriteString(f.Key + ": ")
	}
	b.WriteString(f.Message)
	if f.Hint != "" {
		b.WriteString("; " + f.Hint)
	}
	return b.String()
}

// Faults is every fault of one file.
type Faults []Fault

// Error is one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each fault to errors.As.
func (f Faults) Unwrap() []error {
	errs := make([]error, len(f))
	for i, fault := range f {
		errs[i] = fault
	}
	return errs
}

// Cover reports whether one of the faults is about the value at the key path or something in it: a later check of that
// value has nothing to add.
func (f Faults) Cover(path string) bool {
	return slices.ContainsFunc(f, func(one Fault) bool {
		rest, ok := strings.CutPrefix(one.Key, path)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// Sort puts the faults in the order of their files and places and returns them.
func (f Faults) Sort() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return f
}
