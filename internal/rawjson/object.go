package rawjson

import "bytes"

// Object is a JSON object that was read once: what it holds, and what it is with other members, is known without going
// through a long text again. The zero value is no object and has no members.
type Object struct {
	text    []byte
	members []Member
}

// ReadObject reads the members of an object.
func ReadObject(text []byte) (Object, error) {
	o := Object{text: text, members: make([]Member, 0, 4)}
	err := Members(text, func(m Member) bool {
		o.members = append(o.members, m)
		return true
	})
	if err != nil {
		return Object{}, err
	}
	return o, nil
}

// Text is the object as it was read; nil of the zero value.
func (o Object) Text() []byte { return o.text }

// Members are the object's members in order. They must not be changed.
func (o Object) Members() []Member { return o.members }

// Get returns the value of the member name, as the function Get does.
func (o Object) Get(name string) (value []byte, ok bool) {
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.members[i].Is(name) {
			return o.members[i].Value, true
		}
	}
	return nil, false
}

// Change says what becomes of a member: it gets Value, or is taken out where Value is nil.
type Change struct {
	Name  string
	Value []byte
}

// With returns the object's text with the changes made, as Set and Delete make them, in pieces, so
// that a long text need not be copied. No two changes are of the same name. Pieces alias the object
// and the changes.
func (o Object) With(changes ...Change) [][]byte {
	pieces := make([][]byte, 0, 2*len(changes)+3)
	done := make([]bool, len(changes)) // was set
	i, kept := 0, false
	for _, m := range o.members {
		at := -1
		for n, c := range changes {
			if m.Is(c.Name) {
				at = n
			}
		}
		if at < 0 {
			kept = true
			continue
		}
		if changes[at].Value != nil && !done[at] {
			pieces = append(pieces, o.text[i:m.valueAt], changes[at].Value)
			i, done[at], kept = m.end, true, true
			continue
		}
		from, to := dropSpan(o.text, i, m, kept)
		pieces = append(pieces, o.text[i:from])
		i = to
	}
	end := bytes.LastIndexByte(o.text, '}')
	if end < 0 {
		return pieces // the zero value
	}
	var more []byte
	for n, c := range changes {
		if c.Value == nil || done[n] {
			continue
		}
		if kept {
			more = append(more, ',')
		}
		more = append(append(AppendQuote(more, c.Name), ':'), c.Value...)
		kept = true
	}
	if more != nil {
		pieces = append(pieces, o.text[i:end], more)
		i = end
	}
	return append(pieces, o.text[i:])
}

// dropSpan returns the span of member m with its comma: the one before it, or the one behind it if
// nothing stays before it. i is the end of what was written before it.
func dropSpan(object []byte, i int, m Member, kept bool) (from, to int) {
	from, to = m.start, m.end
	if next := SkipSpace(object, to); kept || next >= len(object) || object[next] != ',' {
		// The comma before the member goes with it: it is the last one, or all that follows has its own comma.
		if comma := bytes.LastIndexByte(object[i:from], ','); comma >= 0 {
			from = i + comma
		}
	} else {
		to = SkipSpace(object, next+1)
	}
	return from, to
}
