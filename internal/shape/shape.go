// Package shape describes what a file may hold, in tables: one line for each key, with its name,
// what it means, the form of its value and where the value goes. One reader walks a file along such
// a table and reports every fault with its place, and the JSON Schema of the file is printed from
// the same table, so that what is read and what editors are told cannot differ.
//
// A new key is one more line of a table. A form of value that the shapes here do not cover is a
// type with Read and Schema, or a Func.
package shape

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// Shape is the form of a value of the file. It reads such a value, and writes the JSON Schema of it.
type Shape[V any] interface {
	// Read returns the value of n, and whether all of it is sound. What is not was reported.
	Read(r *Reader, n *textfile.Node) (V, bool)
	Schema() Schema
}

// Schema is a JSON Schema, or a part of one.
type Schema map[string]any

// Func is a shape of files that need no JSON Schema.
type Func[V any] func(r *Reader, n *textfile.Node) (V, bool)

// Read calls f.
func (f Func[V]) Read(r *Reader, n *textfile.Node) (V, bool) { return f(r, n) }

// Schema allows everything.
func (f Func[V]) Schema() Schema { return Schema{} }

// Located is a value with its place, for checks that need more than the value. Its zero value is an absent key.
type Located[V any] struct {
	textfile.Position
	Path    string // of the key
	Node    *textfile.Node
	Present bool // the key stands in the file
	OK      bool // and its value is sound
	Value   V
}

// Or is the value, and usual where the key is absent.
func (v Located[V]) Or(usual V) V {
	if v.Present {
		return v.Value
	}
	return usual
}

// Values are the values without their places.
func Values[V any](all []Located[V]) (out []V) {
	for _, v := range all {
		out = append(out, v.Value)
	}
	return out
}

// at keeps the place of what the inner shape reads. It is always sound itself: whoever uses the value looks at OK.
type at[V any] struct{ Shape[V] }

func (s at[V]) Read(r *Reader, n *textfile.Node) (Located[V], bool) {
	v, ok := s.Shape.Read(r, n)
	return Located[V]{n.Position, r.Path, n, true, ok, v}, true
}

// List is any number of values of one shape.
type List[V any] struct{ Of Shape[V] }

// ListAt is a list whose values keep their places.
func ListAt[V any](of Shape[V]) List[Located[V]] { return List[Located[V]]{at[V]{of}} }

// Read takes a key whose entries are all commented out for an empty list.
func (s List[V]) Read(r *Reader, n *textfile.Node) ([]V, bool) {
	switch n.Kind {
	case textfile.List:
	case textfile.Null:
		return nil, true
	default:
		hint := ""
		if n.Kind == textfile.Text {
			hint = `write it as a list: ["…"]`
		}
		r.Expected(n, "a list", hint)
		return nil, false
	}
	values, sound := make([]V, 0, len(n.Items)), true
	for i, item := range n.Items {
		leave := r.At(fmt.Sprintf("%s[%d]", r.Path, i))
		v, ok := s.Of.Read(r, item)
		leave()
		sound = sound && ok
		values = append(values, v)
	}
	return values, sound
}

// Schema is that of an array.
func (s List[V]) Schema() Schema {
	return Schema{"type": []string{"array", "null"}, "items": s.Of.Schema()}
}

// Words is one string, or a list of strings that is not empty.
type Words struct{ Of Text }

// Read returns one string as a list.
func (s Words) Read(r *Reader, n *textfile.Node) ([]string, bool) {
	if n.Kind != textfile.List {
		v, ok := s.Of.Read(r, n)
		return []string{v}, ok
	}
	if len(n.Items) == 0 {
		r.Fault(n.Position, "the list is empty", "remove the key, or write what it matches")
		return nil, false
	}
	return List[string]{s.Of}.Read(r, n)
}

// Schema allows both.
func (s Words) Schema() Schema {
	return Schema{"anyOf": []Schema{s.Of.Schema(), List[string]{s.Of}.Schema()}}
}

// Entry is one member of a mapping whose keys the user chooses.
type Entry[V any] struct {
	Located[V]                   // of the value
	Key        textfile.Position // of the key
	Name       string
}

// Mapping is any number of values of one shape under keys that the user chooses, in the order of the file.
type Mapping[V any] struct {
	Of  Shape[V]
	Key func(string) (problem, hint string) // nil: any. Its problem does not hold the key: the key path does.
}

// Read takes a key whose entries are all commented out for an empty mapping.
func (s Mapping[V]) Read(r *Reader, n *textfile.Node) ([]Entry[V], bool) {
	members, sound := r.Members(n)
	var entries []Entry[V]
	for _, m := range members {
		leave := r.Enter(m.Key)
		if s.Key != nil {
			if problem, hint := s.Key(m.Key); problem != "" {
				r.Fault(m.Position, problem, hint)
				sound = false
			}
		}
		v, _ := at[V]{s.Of}.Read(r, m.Value)
		leave()
		sound = sound && v.OK
		entries = append(entries, Entry[V]{v, m.Position, m.Key})
	}
	return entries, sound
}

// Schema is that of an object with any keys.
func (s Mapping[V]) Schema() Schema {
	return Schema{"type": []string{"object", "null"}, "additionalProperties": s.Of.Schema()}
}

// AsMap are the values of a mapping by their keys; nil for none.
func AsMap[V any](entries []Entry[V]) map[string]V {
	var all map[string]V
	for _, e := range entries {
		if all == nil {
			all = make(map[string]V, len(entries))
		}
		all[e.Name] = e.Value
	}
	return all
}

// Field is one key that an object may have.
type Field struct {
	name, doc string
	others    []string // see Or
	read      func(r *Reader, m textfile.Member) bool
	schema    func() Schema
	required  bool
	foreign   bool
}

// Key is a field whose value goes to at.
func Key[V any](name, doc string, s Shape[V], at *V) Field {
	return Field{name: name, doc: doc, schema: s.Schema, read: func(r *Reader, m textfile.Member) (ok bool) {
		// also where it is unsound in part: the rest takes part in the checks of several values
		*at, ok = s.Read(r, m.Value)
		return ok
	}}
}

// KeyAt is Key for a value that keeps its place.
func KeyAt[V any](name, doc string, s Shape[V], to *Located[V]) Field {
	return Key(name, doc, at[V]{s}, to)
}

// Section is a field that is an object of fields.
func Section(name, doc string, fields ...Field) Field { return SectionWith(name, doc, nil, fields...) }

// SectionWith is Section with the keys gone, see [Object].
func SectionWith(name, doc string, gone map[string]string, fields ...Field) Field {
	of := Object[struct{}]{Fields: func(*struct{}) []Field { return fields }, Gone: gone}
	return Key(name, doc, of, new(struct{}))
}

// SectionSince is Section with the keys retired, see [Object].
func SectionSince(name, doc string, retired map[string]string, fields ...Field) Field {
	of := Object[struct{}]{Fields: func(*struct{}) []Field { return fields }, Retired: retired}
	return Key(name, doc, of, new(struct{}))
}

// Or is the field with further names, which other clients have for it. One of them may stand in an object.
func (f Field) Or(names ...string) Field {
	f.others = names
	return f
}

func (f Field) is(key string) bool { return f.name == key || slices.Contains(f.others, key) }

// Must is a field without which the object makes no sense.
func Must(f Field) Field {
	f.required = true
	return f
}

// Foreign is a key of another program that is accepted with any value and never suggested. ignored,
// where it is not "", is why the key has no effect: a warning says so.
func Foreign(name, doc, ignored string) Field {
	return Field{name: name, doc: doc, foreign: true, schema: func() Schema { return Schema{} },
		read: func(r *Reader, m textfile.Member) bool {
			if ignored != "" {
				r.Warn(m.Position, "ignored", ignored)
			}
			return true
		}}
}

// Object is a mapping whose keys the table knows.
type Object[T any] struct {
	Fields  func(*T) []Field      // with places in a T for their values
	Meant   map[string]string     // keys that people mean by other words
	Gone    map[string]string     // keys that are no more, and what to write in their place
	Retired map[string]string     // keys that have no effect any more, and what to do about each; warnings
	Unknown string                // added to the fault of an unknown key; "" adds the known keys
	Lenient func(key string) bool // unknown keys that belong to another program; nil: none
	Extra   Schema                // further members of the schema
}

// ObjectOf is an object without more than its fields.
func ObjectOf[T any](fields func(*T) []Field) Object[T] { return Object[T]{Fields: fields} }

// Read reads the keys in the order of the table, and then reports those that are not in it.
func (s Object[T]) Read(r *Reader, n *textfile.Node) (T, bool) {
	var t T
	members, sound := r.Members(n)
	if n.Kind != textfile.Mapping && n.Kind != textfile.Null {
		return t, false
	}
	fields := s.Fields(&t)
	for _, f := range fields {
		given := slices.DeleteFunc(slices.Clone(members), func(m textfile.Member) bool { return !f.is(m.Key) })
		if len(given) == 0 && f.required {
			r.Fault(n.Position, "the key "+f.name+" is missing", "add it: "+f.doc)
			sound = false
		}
		for i, m := range given {
			leave := r.Enter(m.Key)
			if i == 0 {
				sound = f.read(r, m) && sound
			} else {
				r.Fault(m.Position, "another word for "+given[0].Key+", which stands at "+r.Place(given[0].Position),
					"keep one of the two")
				sound = false
			}
			leave()
		}
	}
	for _, m := range n.Members {
		if !slices.ContainsFunc(fields, func(f Field) bool { return f.is(m.Key) }) {
			sound = s.stray(r, m) && sound
		}
	}
	return t, sound
}

// ReadFields reads the keys of a mapping into places that are there already, and reports whether all of it is sound.
func ReadFields(r *Reader, n *textfile.Node, fields ...Field) bool {
	_, sound := ObjectOf(func(*struct{}) []Field { return fields }).Read(r, n)
	return sound
}

// Known are the keys to suggest.
func (s Object[T]) Known() []string {
	var names []string
	for _, f := range s.Fields(new(T)) {
		if !f.foreign {
			names = append(append(names, f.name), f.others...)
		}
	}
	return names
}

// stray reports a key that the table does not hold.
func (s Object[T]) stray(r *Reader, m textfile.Member) bool {
	defer r.Enter(m.Key)()
	known := s.Known()
	if instead, gone := s.Gone[m.Key]; gone {
		r.Fault(m.Position, "there is no such key any more", instead)
		return false
	}
	if instead, retired := s.Retired[m.Key]; retired {
		r.Warn(m.Position, "there is no such key any more, ignored", instead)
		return true
	}
	if s.Lenient != nil && s.Lenient(m.Key) {
		r.Warn(m.Position, "not a key of the hub, ignored", textfile.DidYouMean(m.Key, known, ""))
		return true
	}
	otherwise := cmp.Or(s.Unknown, "known here: "+strings.Join(known, ", "))
	r.Fault(m.Position, "unknown key", textfile.DidYouMean(cmp.Or(s.Meant[m.Key], m.Key), known, otherwise))
	return false
}

// Schema is that of an object with these keys and no others.
func (s Object[T]) Schema() Schema {
	properties, required := Schema{}, []string{}
	for _, f := range s.Fields(new(T)) {
		p := f.schema()
		if f.doc != "" {
			p["description"] = f.doc
		}
		properties[f.name] = p
		for _, other := range f.others {
			again := maps.Clone(p)
			again["description"] = "Another client's word for " + f.name + "."
			properties[other] = again
		}
		if f.required {
			required = append(required, f.name)
		}
	}
	m := Schema{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		m["type"], m["required"] = "object", required
	}
	maps.Copy(m, s.Extra)
	return m
}
