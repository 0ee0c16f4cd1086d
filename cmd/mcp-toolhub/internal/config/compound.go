package config

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// list is any number of values of one shape.
type list[V any] struct{ of shape[V] }

// listAt is a list whose values keep their places.
func listAt[V any](of shape[V]) list[located[V]] { return list[located[V]]{in[V]{of}} }

func (s list[V]) read(r *reader, n *textfile.Node) ([]V, bool) {
	switch n.Kind {
	case textfile.List:
	case textfile.Null:
		return nil, true // a key whose entries are all commented out
	default:
		hint := ""
		if n.Kind == textfile.Text {
			hint = `write it as a list: ["…"]`
		}
		r.expected(n, "a list", hint)
		return nil, false
	}
	values, sound := make([]V, 0, len(n.Items)), true
	for i, item := range n.Items {
		leave := r.enterItem(i)
		v, ok := s.of.read(r, item)
		leave()
		sound = sound && ok
		values = append(values, v)
	}
	return values, sound
}

func (s list[V]) schema() schema {
	return schema{"type": []string{"array", "null"}, "items": s.of.schema()}
}

// entry is one member of a mapping whose keys the user chooses.
type entry[V any] struct {
	located[V]                   // of the value
	key        textfile.Position // of the key
	name       string
}

// mapping is any number of values of one shape under keys that the user chooses, in the order of the file.
type mapping[V any] struct {
	of  shape[V]
	key func(string) (problem, hint string) // nil: any. Its problem does not hold the key: the key path does.
}

func (s mapping[V]) read(r *reader, n *textfile.Node) ([]entry[V], bool) {
	if n.Kind == textfile.Null {
		return nil, true
	}
	if n.Kind != textfile.Mapping {
		r.expected(n, "a mapping", "")
		return nil, false
	}
	var entries []entry[V]
	sound := r.duplicates(n)
	seen := map[string]bool{}
	for _, m := range n.Members {
		if seen[m.Key] {
			continue
		}
		seen[m.Key] = true
		leave := r.enter(m.Key)
		if s.key != nil {
			if problem, hint := s.key(m.Key); problem != "" {
				r.fault(m.Position, problem, hint)
				sound = false
			}
		}
		v, ok := in[V]{s.of}.read(r, m.Value)
		leave()
		sound = sound && ok && v.ok
		entries = append(entries, entry[V]{v, m.Position, m.Key})
	}
	return entries, sound
}

func (s mapping[V]) schema() schema {
	return schema{"type": []string{"object", "null"}, "additionalProperties": s.of.schema()}
}

// duplicates reports each key of n that stands there more than once.
func (r *reader) duplicates(n *textfile.Node) bool {
	first := make(map[string]textfile.Position, len(n.Members))
	sound := true
	for _, m := range n.Members {
		if at, twice := first[m.Key]; twice {
			leave := r.enter(m.Key)
			r.fault(m.Position, "duplicate key, first at "+r.place(at), "remove one of the two")
			leave()
			sound = false
			continue
		}
		first[m.Key] = m.Position
	}
	return sound
}

// field is one key that an object may have.
type field struct {
	name, doc string
	read      func(r *reader, m textfile.Member) bool
	schema    func() schema
	required  bool
	client    bool // a client's key without meaning here: never suggested, any value
}

// key is a field whose value goes to at.
func key[V any](name, doc string, s shape[V], at *V) field {
	return field{name: name, doc: doc, schema: s.schema, read: func(r *reader, m textfile.Member) (ok bool) {
		*at, ok = s.read(r, m.Value) // also where it is unsound in part: the rest takes part in the checks of several values
		return ok
	}}
}

// keyAt is key for a value that keeps its place.
func keyAt[V any](name, doc string, s shape[V], at *located[V]) field {
	return key(name, doc, in[V]{s}, at)
}

// section is a field that is an object of fields.
func section(name, doc string, fields ...field) field {
	return key(name, doc, objectOf(func(*struct{}) []field { return fields }), new(struct{}))
}

// must is a field without which the object makes no sense.
func must(f field) field {
	f.required = true
	return f
}

// object is a mapping whose keys the table knows.
type object[T any] struct {
	fields  func(*T) []field      // with places in a T for their values
	meant   map[string]string     // keys that people mean by other words
	unknown string                // added to the fault of an unknown key; "" adds the known keys
	lenient func(key string) bool // unknown keys that belong to another program; nil: none
	extra   schema                // further members of the schema
}

func objectOf[T any](fields func(*T) []field) object[T] { return object[T]{fields: fields} }

func (s object[T]) read(r *reader, n *textfile.Node) (T, bool) {
	var t T
	if n.Kind != textfile.Mapping && n.Kind != textfile.Null {
		r.expected(n, "a mapping", "")
		return t, false
	}
	sound := r.duplicates(n)
	first := make(map[string]textfile.Member, len(n.Members))
	for _, m := range slices.Backward(n.Members) {
		first[m.Key] = m
	}
	fields := s.fields(&t)
	for _, f := range fields {
		m, there := first[f.name]
		switch {
		case there:
			leave := r.enter(f.name)
			sound = f.read(r, m) && sound
			leave()
		case f.required:
			r.fault(n.Position, "the key "+f.name+" is missing", "add it: "+f.doc)
			sound = false
		}
	}
	for _, m := range n.Members {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == m.Key }) {
			sound = s.stray(r, m) && sound
		}
	}
	return t, sound
}

// known are the keys to suggest.
func (s object[T]) known() []string {
	var names []string
	for _, f := range s.fields(new(T)) {
		if !f.client {
			names = append(names, f.name)
		}
	}
	return names
}

// stray reports a key that the table does not hold.
func (s object[T]) stray(r *reader, m textfile.Member) bool {
	defer r.enter(m.Key)()
	known := s.known()
	if s.lenient != nil && s.lenient(m.Key) {
		r.warn(m.Position, "not a key of the hub, ignored", textfile.DidYouMean(m.Key, known, ""))
		return true
	}
	otherwise := s.unknown
	if otherwise == "" {
		otherwise = "known here: " + strings.Join(known, ", ")
	}
	r.fault(m.Position, "unknown key", textfile.DidYouMean(cmp.Or(s.meant[m.Key], m.Key), known, otherwise))
	return false
}

func (s object[T]) schema() schema {
	properties, required := schema{}, []string{}
	for _, f := range s.fields(new(T)) {
		p := f.schema()
		if f.doc != "" {
			p["description"] = f.doc
		}
		properties[f.name] = p
		if f.required {
			required = append(required, f.name)
		}
	}
	m := schema{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		m["type"], m["required"] = "object", required
	}
	maps.Copy(m, s.extra)
	return m
}
