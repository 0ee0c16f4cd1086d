package preview

import (
	"bytes"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Bounds of a scan: what of a JSON text is remembered, however large it is.
const (
	maxValues = 20_000 // values in all
	maxKids   = 1_000  // elements of one array, members of one object
	maxNested = 64     // how deep values are remembered
	maxNames  = 200    // names that elements of one array have
)

// kinds are the bytes that stand for the kinds of values.
const kinds = `{["0tfn`

// value is one JSON value that a scan found.
type value struct {
	kind     byte   // one of kinds
	from, to int    // where it stands
	key      []byte // of a member, as written, without its quotes
	n        int    // elements or members, also those that are not in kids
	kids     []value
	elements *elements // of an array
}

// elements is what is known of all elements of an array.
type elements struct {
	kinds [len(kinds)]int // how many are of each kind
	names []name          // of the members of those that are objects
	more  bool            // there are more than maxNames
}

// name is a name that members of an array's elements have.
type name struct {
	key []byte
	n   int // how many elements have it
}

// scanner reads a valid JSON text once, from its beginning to its end.
type scanner struct {
	text []byte
	left int // how many more values it may remember
}

// scan reads text, which is valid JSON. ok is false where it is not, as far as that was noticed.
func scan(text []byte) (v value, ok bool) {
	s := scanner{text: text, left: maxValues}
	return s.value(rawjson.SkipSpace(text, 0), 0, nil)
}

// value reads the value at i. Its own members go to own, if that is not nil, when it is an object.
func (s *scanner) value(i, depth int, own *elements) (v value, ok bool) {
	if i >= len(s.text) {
		return v, false
	}
	v = value{kind: s.text[i], from: i}
	switch v.kind {
	case '{':
		ok = s.object(&v, depth, own)
	case '[':
		ok = s.array(&v, depth)
	default:
		v.to = rawjson.SkipValue(s.text, i)
		ok = v.to > i
		if v.kind == '-' || v.kind >= '0' && v.kind <= '9' {
			v.kind = '0'
		}
	}
	return v, ok
}

// keeps reports whether a value may be remembered among kids.
func (s *scanner) keeps(kids []value, depth int) bool {
	return len(kids) < maxKids && depth < maxNested && s.left > 0
}

func (s *scanner) object(v *value, depth int, own *elements) bool {
	i, done := s.first(v.from, '}')
	for ; !done; v.n++ {
		if i >= len(s.text) || s.text[i] != '"' {
			return false
		}
		end := rawjson.SkipString(s.text, i)
		if end-i < 2 {
			return false
		}
		key := s.text[i+1 : end-1]
		if own != nil {
			own.add(key, v.n)
		}
		i = rawjson.SkipSpace(s.text, end)
		if i >= len(s.text) || s.text[i] != ':' {
			return false
		}
		i = rawjson.SkipSpace(s.text, i+1)
		kid, ok := s.kid(i, depth, v.kids, nil)
		if !ok {
			return false
		}
		if kid.key = key; kid.kind != 0 {
			v.kids = append(v.kids, kid)
		}
		if i, done, ok = s.next(kid.to, '}'); !ok {
			return false
		}
	}
	v.to = i
	return true
}

func (s *scanner) array(v *value, depth int) bool {
	v.elements = &elements{}
	i, done := s.first(v.from, ']')
	for ; !done; v.n++ {
		if i >= len(s.text) {
			return false
		}
		kind := s.text[i]
		if kind == '-' || kind >= '0' && kind <= '9' {
			kind = '0'
		}
		at := strings.IndexByte(kinds, kind)
		if at < 0 {
			return false
		}
		v.elements.kinds[at]++
		kid, ok := s.kid(i, depth, v.kids, v.elements)
		if !ok {
			return false
		}
		if kid.kind != 0 {
			v.kids = append(v.kids, kid)
		}
		if i, done, ok = s.next(kid.to, ']'); !ok {
			return false
		}
	}
	v.to = i
	return true
}

// kid reads the value at i. Its kind is 0 where it is not to be remembered.
func (s *scanner) kid(i, depth int, kids []value, own *elements) (value, bool) {
	if s.keeps(kids, depth) {
		s.left--
		return s.value(i, depth+1, own)
	}
	if own != nil && i < len(s.text) && s.text[i] == '{' {
		end, ok := s.names(i, own)
		return value{to: end}, ok
	}
	end := rawjson.SkipValue(s.text, i)
	return value{to: end}, end > i
}

// names adds the names of the members of the object at i to own, and returns where it ends.
func (s *scanner) names(i int, own *elements) (end int, ok bool) {
	i, done := s.first(i, '}')
	for n := 0; !done; n++ {
		if i >= len(s.text) || s.text[i] != '"' {
			return i, false
		}
		end := rawjson.SkipString(s.text, i)
		if end-i < 2 {
			return i, false
		}
		own.add(s.text[i+1:end-1], n)
		i = rawjson.SkipSpace(s.text, end)
		if i >= len(s.text) || s.text[i] != ':' {
			return i, false
		}
		i = rawjson.SkipSpace(s.text, i+1)
		if end = rawjson.SkipValue(s.text, i); end <= i {
			return i, false
		}
		if i, done, ok = s.next(end, '}'); !ok {
			return i, false
		}
	}
	return i, true
}

// first returns where the first element or member stands in what begins at i. done is true where there is none: then it
// returns the index after the end.
func (s *scanner) first(i int, closer byte) (at int, done bool) {
	i = rawjson.SkipSpace(s.text, i+1)
	if i < len(s.text) && s.text[i] == closer {
		return i + 1, true
	}
	return i, false
}

// next is first for what stands after a value that ended before i.
func (s *scanner) next(i int, closer byte) (at int, done, ok bool) {
	i = rawjson.SkipSpace(s.text, i)
	switch {
	case i >= len(s.text):
		return i, false, false
	case s.text[i] == closer:
		return i + 1, true, true
	case s.text[i] == ',':
		return rawjson.SkipSpace(s.text, i+1), false, true
	}
	return i, false, false
}

// add counts a name. at is its place among its object's members: most objects of an array have the
// same names in the same order.
func (e *elements) add(key []byte, at int) {
	if at < len(e.names) && bytes.Equal(e.names[at].key, key) {
		e.names[at].n++
		return
	}
	for i := range e.names {
		if bytes.Equal(e.names[i].key, key) {
			e.names[i].n++
			return
		}
	}
	if len(e.names) == maxNames {
		e.more = true
		return
	}
	e.names = append(e.names, name{key: key, n: 1})
}
