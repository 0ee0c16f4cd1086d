// Package rawjson reads and changes single members of JSON texts without decoding the rest: every byte that is not part
// of a change stays as it was, so key order, numbers of any size, escapes and unknown members survive.
//
// Functions take texts that were checked with Valid, or are parts of such texts; on anything else they return "not
// found" or an error, never panic, and never read past the end. Results alias their input unless a function says
// otherwise; nothing modifies its input.
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	fast "github.com/segmentio/encoding/json"
)

// MaxDepth bounds how deep Valid lets objects and arrays nest. Real messages nest a dozen levels;
// the bound keeps everybody who later decodes the text recursively from being led into a deep
// stack.
const MaxDepth = 1000

// ErrSyntax is wrapped by every error about text that is no JSON, or not the kind of JSON that was needed.
var ErrSyntax = errors.New("malformed JSON")

// Errors of reading. They are made once, because scalars are read as objects or arrays all the time.
var (
	errNoObject = fmt.Errorf("read members: not an object: %w", ErrSyntax)
	errMembers  = fmt.Errorf("read members: %w", ErrSyntax)
	errNoArray  = fmt.Errorf("read elements: not an array: %w", ErrSyntax)
	errElements = fmt.Errorf("read elements: %w", ErrSyntax)
)

// Depth returns how deep objects and arrays nest in text: 0 for a scalar. It looks at brackets outside strings only, so
// it is meaningful for malformed text too.
func Depth(text []byte) int {
	depth, deepest := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = SkipString(text, i) - 1
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	return deepest
}

// Member is one member of an object.
type Member struct {
	Key   []byte // as written, without its quotes: may hold escapes
	Value []byte // as written, without surrounding white space

	start, end int // of the whole member in the object's text, from its key's quote to the end of its value
	valueAt    int
}

// Is reports whether the member's key is name once its escapes are decoded.
func (m Member) Is(name string) bool {
	if len(m.Key) > 0 && len(name) > 0 && m.Key[0] != name[0] && m.Key[0] != '\\' && m.Key[0] < utf8.RuneSelf {
		return false // as it stands for itself, whatever follows
	}
	return string(m.Decoded()) == name
}

// Name is the member's key with its escapes decoded.
func (m Member) Name() string { return string(m.Decoded()) }

// Decoded is Name as bytes. It is Key itself where that stands for itself.
func (m Member) Decoded() []byte {
	if plain(m.Key) {
		return m.Key
	}
	return unquote(m.Key)
}

// plain reports whether the inside of a JSON string stands for itself: no escape, and no byte that decoders replace.
func plain(inner []byte) bool { return bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) }

// Members calls yield for each member of the object in order, until yield returns false. It returns an error if object
// is no object.
func Members(object []byte, yield func(Member) bool) error {
	i := SkipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return errNoObject
	}
	i = SkipSpace(object, i+1)
	if i < len(object) && object[i] == '}' {
		return nil
	}
	for i < len(object) {
		if object[i] != '"' {
			break
		}
		m, keyEnd := Member{start: i}, SkipString(object, i)
		if keyEnd-i < 2 {
			break
		}
		m.Key = object[i+1 : keyEnd-1]
		i = SkipSpace(object, keyEnd)
		if i >= len(object) || object[i] != ':' {
			break
		}
		m.valueAt = SkipSpace(object, i+1)
		if m.end = SkipValue(object, m.valueAt); m.end <= m.valueAt {
			break
		}
		m.Value = object[m.valueAt:m.end]
		if !yield(m) {
			return nil
		}
		i = SkipSpace(object, m.end)
		if i < len(object) && object[i] == '}' {
			return nil
		}
		if i >= len(object) || object[i] != ',' {
			break
		}
		i = SkipSpace(object, i+1)
	}
	return errMembers
}

// Get returns the value of the object's member name: the last one where the name occurs twice, as encoding/json has it.
func Get(object []byte, name string) (value []byte, ok bool) {
	err := Members(object, func(m Member) bool {
		if m.Is(name) {
			value, ok = m.Value, true
		}
		return true
	})
	if err != nil {
		return nil, false
	}
	return value, ok
}

// GetString returns the text that Get finds; ok is false where that is no string.
func GetString(object []byte, name string) (text string, ok bool) {
	value, _ := Get(object, name)
	return String(value)
}

// GetObject returns the object that Get finds; {} where there is none.
func GetObject(object []byte, name string) []byte {
	if value, ok := Get(object, name); ok && IsObject(value) {
		return value
	}
	return []byte("{}")
}

// Set returns object with member name holding value. The first member of that name keeps its place and key as written;
// further ones of the same name are removed; where there is none, the member is appended. The result is a fresh text.
func Set(object []byte, name string, value []byte) ([]byte, error) {
	o, err := ReadObject(object)
	if err != nil {
		return nil, fmt.Errorf("set member %q: %w", name, err)
	}
	return slices.Concat(o.With(Change{name, value})...), nil
}

// SetIn is Set for the member at the end of a path of names. The objects on the path must be there.
func SetIn(object, value []byte, path ...string) ([]byte, error) {
	if len(path) > 1 {
		inner, _ := Get(object, path[0])
		changed, err := SetIn(inner, value, path[1:]...)
		if err != nil {
			return nil, err
		}
		value = changed
	}
	return Set(object, path[0], value)
}

// AppendMember appends a member to the text of an object that is still open. name stands in it as
// it is, with its escapes.
func AppendMember(open []byte, name string, value []byte) []byte {
	if open[len(open)-1] != '{' {
		open = append(open, ',')
	}
	open = append(append(append(open, '"'), name...), `":`...)
	return append(open, value...)
}

// Delete returns object without any member called name, and whether there was one. Without one the result is object
// itself, otherwise a fresh text.
func Delete(object []byte, name string) ([]byte, bool, error) {
	return DeleteFunc(object, func(m Member) bool { return m.Is(name) })
}

// DeleteFunc returns object without the members that drop names, and whether there was one.
func DeleteFunc(object []byte, drop func(Member) bool) ([]byte, bool, error) {
	out, i, kept, removed := []byte(nil), 0, false, false
	err := Members(object, func(m Member) bool {
		if !drop(m) {
			kept = true
			return true
		}
		from, to := dropSpan(object, i, m, kept)
		out = append(out, object[i:from]...)
		i, removed = to, true
		return true
	})
	if err != nil {
		return nil, false, fmt.Errorf("delete members: %w", err)
	}
	if !removed {
		return object, false, nil
	}
	return append(out, object[i:]...), true, nil
}

// Elements calls yield for each element of the array in order, until yield returns false.
func Elements(array []byte, yield func(value []byte) bool) error {
	i := SkipSpace(array, 0)
	if i >= len(array) || array[i] != '[' {
		return errNoArray
	}
	i = SkipSpace(array, i+1)
	if i < len(array) && array[i] == ']' {
		return nil
	}
	for i < len(array) {
		end := SkipValue(array, i)
		if end <= i {
			break
		}
		if !yield(array[i:end]) {
			return nil
		}
		i = SkipSpace(array, end)
		if i < len(array) && array[i] == ']' {
			return nil
		}
		if i >= len(array) || array[i] != ',' {
			break
		}
		i = SkipSpace(array, i+1)
	}
	return errElements
}

// String decodes a JSON string. ok is false if value is not one.
func String(value []byte) (text string, ok bool) {
	if len(value) < 2 || value[0] != '"' || SkipString(value, 0) != len(value) {
		return "", false
	}
	inner := value[1 : len(value)-1]
	if plain(inner) {
		return string(inner), true
	}
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return "", false
	}
	return s, true
}

// Text returns the decoded string that is member name of object, or "" where there is none.
func Text(object []byte, name string) string {
	text, _ := GetString(object, name)
	return text
}

// Quote returns text as a JSON string, with nothing escaped that need not be.
func Quote(text string) []byte { return AppendQuote(nil, text) }

// AppendQuote appends what Quote returns.
func AppendQuote(b []byte, text string) []byte { return fast.AppendEscape(b, text, 0) }

// Encode is json.Marshal without escapes for HTML: source text is full of < and &, which take six bytes each otherwise.
func Encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// IsObject reports whether value begins as an object.
func IsObject(value []byte) bool {
	i := SkipSpace(value, 0)
	return i < len(value) && value[i] == '{'
}

// IsNull reports whether value is null, or empty.
func IsNull(value []byte) bool {
	v := bytes.TrimSpace(value)
	return len(v) == 0 || string(v) == "null"
}

// Line returns text in a form that a line-based wire can carry: text itself where it holds no line break, otherwise a
// copy without insignificant white space. Strings never hold a raw line break, so nothing significant changes.
func Line(text []byte) ([]byte, error) {
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return text, nil
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, text); err != nil {
		return nil, fmt.Errorf("write as one line: %w: %v", ErrSyntax, err)
	}
	return buf.Bytes(), nil
}

func unquote(key []byte) []byte {
	var s string
	if json.Unmarshal(append(append([]byte{'"'}, key...), '"'), &s) != nil {
		return key
	}
	return []byte(s)
}

// SkipSpace returns the index, from i on, of what is no white space.
func SkipSpace(text []byte, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r') {
		i++
	}
	return i
}

// SkipString returns the index after the string that begins at i, or len(text) where it does not end.
func SkipString(text []byte, i int) int {
	for i++; i < len(text); i++ {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			return len(text)
		}
		i += n
		escapes := 0
		for text[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
	return len(text)
}

// SkipValue returns the index after the value that begins at start; start itself where none begins
// there, or it does not end.
func SkipValue(text []byte, start int) int {
	if start >= len(text) {
		return start
	}
	switch text[start] {
	case '"':
		end := SkipString(text, start)
		if end-start < 2 || text[end-1] != '"' {
			return start
		}
		return end
	case '{', '[':
		depth := 0
		for i := start; i < len(text); i++ {
			switch text[i] {
			case '"':
				i = SkipString(text, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return start
	}
	for i := start; i < len(text); i++ {
		switch text[i] {
		case ',', ']', '}', ' ', '\t', '\r', '\n', ':', '"', '{', '[':
			return i
		}
	}
	return len(text)
}
