// Package splice puts single entries into files that people and other programs write, and takes
// them out: JSON with comments, YAML and TOML. It splices bytes. All others stay as they are:
// comments, indentation, line ends, byte order mark. After each change it reads the file again and
// compares. It refuses a change after which anything else in the file would mean something else.
package splice

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// Format is the format of a file.
type Format string

// The formats.
const (
	JSON Format = "json" // with comments and trailing commas
	YAML Format = "yaml"
	TOML Format = "toml"
)

// Place says where a file keeps its entries.
type Place struct {
	Path []string // the keys that lead to the mapping of entries, at least one
	List bool     // there is a list instead: of plain texts, or of mappings with a key that names them
	Key  string   // that key; "" for "name". JSON has such lists of mappings for Put alone
}

// Object is a mapping to be written, in this order.
type Object []Member

// Member is one key of an Object.
type Member struct {
	Key   string
	Value any // string, bool, int, []string or Object
}

// Entry is one entry of a file.
type Entry struct {
	Name string
	textfile.Position
	Value *textfile.Node
}

// File holds the text of a file, and the tree that the text says. Nothing changes a File: Put and
// Take return another one.
type File struct {
	Format Format
	Root   *textfile.Node
	bom    []byte
	body   []byte // all but bom
	lineAt []int  // offsets in body
	last   *step  // what has made the file; nil where it was read
}

var errUnsafe = errors.New("the place cannot be changed without changing more than it: edit the file by hand")

// Read reads a file. The error is textfile.Faults, in which the file has no name yet.
func Read(format Format, raw []byte) (*File, error) {
	f := &File{Format: format, body: bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))}
	f.bom = raw[:len(raw)-len(f.body)]
	var faults textfile.Faults
	if format == TOML {
		f.Root, faults = textfile.ParseTOML(raw)
	} else {
		f.Root, faults = textfile.Parse("file."+string(format), raw)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	if f.Root.Kind != textfile.Mapping {
		return nil, textfile.Faults{{Position: f.Root.Position, Message: "the file holds " + string(f.Root.Kind) +
			", not a mapping"}}
	}
	f.lineAt = linesOf(f.body)
	return f, nil
}

// linesOf returns where each line begins, by the line ends that textfile counts, and where the last one ends.
func linesOf(body []byte) []int {
	at := []int{0}
	for i, c := range body {
		if c == '\n' || c == '\r' && (i+1 == len(body) || body[i+1] != '\n') {
			at = append(at, i+1)
		}
	}
	if at[len(at)-1] < len(body) {
		at = append(at, len(body))
	}
	return at
}

// Bytes returns the text of the file, which is not nil.
func (f *File) Bytes() []byte { return append(append([]byte{}, f.bom...), f.body...) }

// At returns the value that the keys lead to, nil where there is none.
func (f *File) At(path ...string) *textfile.Node {
	n := f.Root
	for _, key := range path {
		if n == nil {
			return nil
		}
		n = n.Member(key)
	}
	return n
}

// Entries returns the entries of p, in the order of the file.
func (f *File) Entries(p Place) []Entry {
	n := f.At(p.Path...)
	if n == nil {
		return nil
	}
	var all []Entry
	for _, m := range n.Members {
		all = append(all, Entry{m.Key, m.Position, m.Value})
	}
	for _, item := range n.Items {
		if name := p.itemName(item); p.List && name != "" {
			all = append(all, Entry{name, item.Position, item})
		}
	}
	return all
}

// itemName returns the name of an item of a list, "" where it has none.
func (p Place) itemName(item *textfile.Node) string {
	if name := item.Member(p.key()); name != nil {
		return name.Text
	}
	return item.Text
}

// key is the key that names the mappings of a list.
func (p Place) key() string { return cmp.Or(p.Key, "name") }

// Entry returns the entry of that name, nil where there is none.
func (f *File) Entry(p Place, name string) *Entry {
	all := f.Entries(p)
	if i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// content is what put writes as an entry.
type content struct {
	value    any      // string, bool, int, []string or Object; nil for a plain text of a list, which is its name
	comments []string // lines above it, without their marks
	text     string   // instead of both: the entry as Text has it
}

// under returns the mapping or list of p with nothing but the entry.
func (c content) under(p Place, name string) any {
	switch {
	case p.List && c.value == nil:
		return []string{name}
	case p.List:
		return []Object{c.item(p, name)}
	}
	return Object{{name, c.value}}
}

// Put returns the file with one more entry, after the others, below lines of comment. The value is
// a string, bool, int, []string or Object; it is nil for a plain text of a list.
func (f *File) Put(p Place, name string, value any, comments ...string) (*File, error) {
	return f.put(p, name, content{value: value, comments: comments})
}

// PutText puts back an entry, as Text has returned it from an earlier state of the file.
func (f *File) PutText(p Place, name, text string) (*File, error) {
	if f.Format != JSON && !strings.HasSuffix(text, "\n") { // it was the end of the file
		text += f.newline()
	}
	return f.put(p, name, content{text: text})
}

func (f *File) put(p Place, name string, c content) (*File, error) {
	if e := f.Entry(p, name); e != nil {
		return nil, fmt.Errorf("there is an entry %q already, at line %d", name, e.Line)
	}
	var edits []edit
	var err error
	switch {
	case f.Format == JSON:
		edits, err = f.putJSON(p, name, c)
	case f.Format == YAML && f.isBorrowed(p):
		err = errUnsafe
	case f.Format == YAML:
		edits, err = f.putYAML(p, name, c)
	default:
		edits, err = f.putTOML(p, name, c)
	}
	if err != nil {
		return nil, err
	}
	return f.changed(edits, p, name, true)
}

// Take returns the file without an entry.
func (f *File) Take(p Place, name string) (*File, error) { return f.take(p, name, false) }

// TakeKeepingKey returns the file without an entry. The last key of p stays, also in YAML where
// nothing is left below it.
func (f *File) TakeKeepingKey(p Place, name string) (*File, error) {
	if n := f.At(p.Path...); f.Format != YAML || f.Entry(p, name) == nil || f.isBorrowed(p) || f.isFlow(n) {
		return f.take(p, name, false)
	}
	return f.changed(f.entryBlock(p, name), p, name, false)
}

// TakeWhole returns the file without an entry and without the lines of comment right above it.
func (f *File) TakeWhole(p Place, name string) (*File, error) { return f.take(p, name, true) }

func (f *File) take(p Place, name string, comments bool) (*File, error) {
	edits, err := f.spans(p, name, comments)
	if err != nil {
		return nil, err
	}
	return f.changed(edits, p, name, false)
}

// Text returns an entry as it is written, for PutText.
func (f *File) Text(p Place, name string) (string, error) {
	var edits []edit
	var err error
	switch {
	case f.Format == JSON:
		return f.textJSON(p, name)
	case f.Format == YAML && f.Entry(p, name) != nil && !f.isBorrowed(p) && !f.isFlow(f.At(p.Path...)):
		edits = f.entryBlock(p, name) // without the key above it, also where nothing else is below that
		if at := f.Entry(p, name).Value.Position; at.Line > 0 && f.offset(at) >= edits[0].to {
			err = errUnsafe // the value is not below its key
		}
	default:
		edits, err = f.spans(p, name, false)
	}
	var b bytes.Buffer
	for _, e := range edits {
		b.Write(f.body[e.from:e.to])
	}
	return b.String(), err
}

// spans returns the edits that take out an entry, with the comments above it if comments is set.
func (f *File) spans(p Place, name string, comments bool) ([]edit, error) {
	if f.Entry(p, name) == nil {
		return nil, fmt.Errorf("there is no entry %q", name)
	}
	switch {
	case f.Format == JSON:
		return f.takeJSON(p, name, comments)
	case f.Format == YAML && f.isBorrowed(p):
		return nil, errUnsafe
	case f.Format == YAML:
		return f.takeYAML(p, name, comments)
	}
	return f.takeTOML(p, name)
}

// edit replaces the bytes from from to to of the body by text.
type edit struct {
	from, to int
	text     string
}

// changed makes the edits. It refuses them unless the entry is there afterwards, or is gone, as
// there says, and nothing else has changed.
func (f *File) changed(edits []edit, p Place, name string, there bool) (*File, error) {
	body := slices.Clone(f.body)
	for _, e := range slices.Backward(edits) { // in the order of the file
		body = slices.Concat(body[:e.from], []byte(e.text), body[e.to:])
	}
	after, err := Read(f.Format, slices.Concat(f.bom, body))
	if err != nil || (after.Entry(p, name) != nil) != there || !sameBut(f.Root, after.Root, p, name) {
		return nil, errUnsafe
	}
	after.last = &step{f, edits, p, name}
	return after, nil
}

// sameBut reports whether two trees differ in nothing but the entry of that name.
func sameBut(a, b *textfile.Node, p Place, name string) bool {
	if len(p.Path) == 0 {
		drop := func(n *textfile.Node) *textfile.Node {
			if n == nil || n.Kind == textfile.Null {
				return &textfile.Node{Kind: textfile.Mapping}
			}
			bare := &textfile.Node{Kind: textfile.Mapping, Text: n.Text, Members: without(n, name)}
			for _, item := range n.Items {
				if p.itemName(item) != name {
					bare.Items = append(bare.Items, item)
				}
			}
			return bare
		}
		return Equal(drop(a), drop(b))
	}
	empty := &textfile.Node{Kind: textfile.Mapping}
	if a == nil || a.Kind == textfile.Null {
		a = empty
	}
	if b == nil || b.Kind == textfile.Null {
		b = empty
	}
	key := p.Path[0]
	rest := func(n *textfile.Node) *textfile.Node {
		return &textfile.Node{Kind: n.Kind, Text: n.Text, Items: n.Items, Members: without(n, key)}
	}
	return Equal(rest(a), rest(b)) && sameBut(a.Member(key), b.Member(key), Place{p.Path[1:], p.List, p.Key}, name)
}

func without(n *textfile.Node, key string) []textfile.Member {
	return slices.DeleteFunc(slices.Clone(n.Members), func(m textfile.Member) bool { return m.Key == key })
}

// Equal reports whether two values say the same, whatever their places and their spelling.
func Equal(a, b *textfile.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.Text == b.Text && slices.EqualFunc(a.Items, b.Items, Equal) &&
		slices.EqualFunc(a.Members, b.Members, func(x, y textfile.Member) bool {
			return x.Key == y.Key &&
				Equal(x.Value, y.Value)
		})
}

// newline returns the line end that the file uses.
func (f *File) newline() string {
	if i := bytes.IndexByte(f.body, '\n'); i > 0 && f.body[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// refuse returns the error about a value below which no entry can stand.
func refuse(n *textfile.Node, path []string) error {
	return textfile.Faults{{Position: n.Position, Key: joined(path), Message: "holds " + string(n.Kind) +
		", so no entry can be put there"}}
}
