package rawjson

// Valid reports whether text is one JSON value with nothing but white space around it, nested at most MaxDepth deep. It
// accepts what encoding/json accepts, to that depth: like there, strings may hold bytes that are no UTF-8.
//
// Every message passes through it, also those of many megabytes, so it is one pass, and strings are
// read in words of eight bytes.
func Valid(text []byte) bool {
	v := checker{text: text}
	return v.whole()
}

// Parse is Valid, and ReadObject of a text that is an object, and of its member name if that is an
// object too, in one pass. What is no object, or does not exist, is the zero value, and so is the
// member if its key is written with escapes.
func Parse(text []byte, name string) (o, member Object, ok bool) {
	v := checker{text: text, keep: true, name: name, members: make([]Member, 0, 4)}
	if !v.whole() {
		return Object{}, Object{}, false
	}
	o, member = v.objects()
	return o, member, true
}

// checker walks through one text.
type checker struct {
	text  []byte
	depth int
	// arrays holds one bit for each open level, set where that is an array.
	arrays [MaxDepth/64 + 1]uint64

	keep    bool     // the members of the outermost object, and those of its member name
	members []Member // all but the last one are complete, here and in inner
	name    string
	within  bool // the last of members is called name
	inner   []Member
	from    int // where the value of the last member called name is
	to      int
	keys    uint64 // see Object
	breaks  int    // line breaks between tokens
	before  int    // of these, before the value of the last of members

	oneLine bool // there is none between from and to
}

// whole checks all of the text.
func (v *checker) whole() bool {
	i, ok := v.value(v.space(0))
	return ok && v.rest(i)
}

// rest checks what follows a value that has ended before i.
func (v *checker) rest(i int) (ok bool) {
	text := v.text
	for v.depth > 0 {
		if i >= len(text) {
			return false
		}
		if v.keep && v.depth <= 2 {
			v.ended(i)
		}
		i = v.space(i)
		if i >= len(text) {
			return false
		}
		switch c := text[i]; {
		case c == v.closer():
			v.depth--
			i++
		case c != ',':
			return false
		default:
			if i, ok = v.element(v.space(i + 1)); !ok {
				return false
			}
		}
	}
	return v.space(i) == len(text)
}

// objects returns the text, which was checked, and its member name as objects.
func (v *checker) objects() (o, member Object) {
	if !IsObject(v.text) {
		return Object{}, Object{}
	}
	o = Object{text: v.text, members: v.members, keys: v.keys, oneLine: v.breaks == 0}
	if value := v.text[v.from:v.to]; IsObject(value) {
		member = Object{text: value, members: v.inner, keys: v.keys, oneLine: v.oneLine}
		for i := range v.inner {
			m := &v.inner[i]
			m.start, m.end, m.valueAt = m.start-v.from, m.end-v.from, m.valueAt-v.from
		}
	}
	return o, member
}

// space returns the index, from i on, of what is no white space.
func (v *checker) space(i int) int {
	if i < len(v.text) && v.text[i] > ' ' {
		return i
	}
	return v.spaces(i)
}

func (v *checker) spaces(i int) int {
	for ; i < len(v.text); i++ {
		switch v.text[i] {
		case ' ', '\t':
		case '\n', '\r':
			v.breaks++
		default:
			return i
		}
	}
	return i
}

// open enters an object or array. ok is false where that is one level too many.
func (v *checker) open(array bool) (ok bool) {
	if v.depth >= MaxDepth {
		return false
	}
	word, bit := &v.arrays[v.depth/64], uint64(1)<<(v.depth%64)
	*word &^= bit
	if array {
		*word |= bit
	}
	v.depth++
	return true
}

// closer is the byte that ends the innermost open level.
func (v *checker) closer() byte {
	at := v.depth - 1
	if v.arrays[at/64]>>(at%64)&1 == 1 {
		return ']'
	}
	return '}'
}

// element checks what stands at i between two commas of the innermost level: a value, or a key and a value.
func (v *checker) element(i int) (next int, ok bool) {
	if v.closer() == ']' {
		return v.value(i)
	}
	if i, ok = v.key(i); !ok {
		return i, false
	}
	return v.value(i)
}

// key checks a key and its colon at i, and returns where its value begins.
func (v *checker) key(i int) (next int, ok bool) {
	if i >= len(v.text) || v.text[i] != '"' {
		return i, false
	}
	start := i
	if i, ok = checkString(v.text, i+1); !ok {
		return i, false
	}
	end := i - 1
	i = v.space(i)
	if i >= len(v.text) || v.text[i] != ':' {
		return i, false
	}
	i = v.space(i + 1)
	if !v.keep {
		return i, true
	}
	v.keys |= keyBit(v.text[start+1 : end])
	if v.depth <= 2 {
		v.begins(Member{Key: v.text[start+1 : end], start: start, valueAt: i})
	}
	return i, true
}

// begins notes a member whose value is still to come.
func (v *checker) begins(m Member) {
	switch {
	case v.depth == 1:
		v.members = append(v.members, m)
		if v.within = string(m.Key) == v.name; v.within {
			v.inner, v.before = v.inner[:0], v.breaks
		}
	case v.within:
		v.inner = append(v.inner, m)
	}
}

// ended notes that the innermost level's value before i has ended.
func (v *checker) ended(i int) {
	kept := v.members
	if v.depth == 2 {
		kept = v.inner
	}
	if len(kept) == 0 || v.depth == 2 && !v.within {
		return
	}
	m := &kept[len(kept)-1]
	m.end, m.Value = i, v.text[m.valueAt:i]
	if v.depth == 1 && v.within {
		v.from, v.to, v.oneLine = m.valueAt, i, v.breaks == v.before
	}
}

// value checks a scalar at i, or enters objects and arrays up to and including the first scalar or empty one in them,
// and returns the index after that.
func (v *checker) value(i int) (next int, ok bool) {
	for {
		if i >= len(v.text) {
			return i, false
		}
		c := v.text[i]
		switch c {
		case '"':
			return checkString(v.text, i+1)
		case 't':
			return checkWord(v.text, i, "true")
		case 'f':
			return checkWord(v.text, i, "false")
		case 'n':
			return checkWord(v.text, i, "null")
		case '{', '[':
			if !v.open(c == '[') {
				return i, false
			}
		default:
			return checkNumber(v.text, i)
		}
		i = v.space(i + 1)
		if i < len(v.text) && v.text[i] == v.closer() {
			v.depth--
			return i + 1, true
		}
		if c == '[' {
			continue
		}
		if i, ok = v.key(i); !ok {
			return i, false
		}
	}
}

func checkWord(text []byte, i int, word string) (next int, ok bool) {
	next = i + len(word)
	return next, next <= len(text) && string(text[i:next]) == word
}

// checkNumber checks the number at i.
func checkNumber(text []byte, i int) (next int, ok bool) {
	if i < len(text) && text[i] == '-' {
		i++
	}
	first := i
	if i, ok = digits(text, i); !ok || text[first] == '0' && i > first+1 {
		return i, false
	}
	if i < len(text) && text[i] == '.' {
		if i, ok = digits(text, i+1); !ok {
			return i, false
		}
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		return digits(text, i)
	}
	return i, true
}

// digits skips the digits at i. ok is false where there is none.
func digits(text []byte, i int) (next int, ok bool) {
	next = i
	for next < len(text) && text[next]-'0' <= 9 {
		next++
	}
	return next, next > i
}
