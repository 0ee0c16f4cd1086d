package declarative

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// reader gathers the faults of one file.
type reader struct {
	file   string
	data   []byte
	faults []fault
}

// fault is one thing that is wrong, and where.
type fault struct {
	offset int64
	text   string
}

// texts are all faults in the order of the file, each with its place.
func (r *reader) texts() []string {
	slices.SortStableFunc(r.faults, func(a, b fault) int { return cmp.Compare(a.offset, b.offset) })
	all := make([]string, len(r.faults))
	for i, f := range r.faults {
		all[i] = r.at(f.offset) + ": " + f.text
	}
	return all
}

// fault reports what is wrong at an offset of the file. key is the path of keys there; "" for the file itself.
func (r *reader) fault(offset int64, key, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if key != "" {
		text = key + ": " + text
	}
	r.faults = append(r.faults, fault{offset, text})
}

// at names a place for people.
func (r *reader) at(offset int64) string { return place(r.file, r.data, offset) }

func place(file string, data []byte, offset int64) string {
	before := data[:max(0, min(int(offset), len(data)))]
	line := bytes.Count(before, []byte("\n"))
	return fmt.Sprintf("%s:%d:%d", file, line+1, len(before)-bytes.LastIndexByte(before, '\n'))
}

// valid reports whether the file is JSON, and says where it is not.
func (r *reader) valid() bool {
	if rawjson.Valid(r.data) {
		return true
	}
	var any json.RawMessage
	var syntax *json.SyntaxError
	err := json.Unmarshal(r.data, &any)
	switch {
	case errors.As(err, &syntax):
		r.fault(max(0, syntax.Offset-1), "", "this is no JSON: %s", syntax)
	default:
		r.fault(0, "", "this is no JSON, or nests too deep: simplify it")
	}
	return false
}

// value is a value of the file.
type value struct {
	raw json.RawMessage
	at  int64 // offset of its beginning
	key string
}

// member is a member of an object of the file.
type member struct {
	name   string
	nameAt int64
	value
}

// members returns the members of v; none, and a fault, where it is no object. A name that stands there twice is a fault: programs
// do not agree about which of the two counts.
func (r *reader) members(v value) []member {
	if !rawjson.IsObject(v.raw) {
		r.fault(v.at, v.key, "want an object")
		return nil
	}
	var all []member
	seen := make(map[string]bool)
	dec := json.NewDecoder(bytes.NewReader(v.raw))
	_, _ = dec.Token()
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		end := dec.InputOffset()
		var raw json.RawMessage
		if err != nil || !ok || dec.Decode(&raw) != nil {
			break // cannot be: the file is valid
		}
		key := name
		if v.key != "" {
			key = v.key + "." + name
		}
		m := member{name, v.at + max(0, end-int64(len(rawjson.Quote(name)))), value{raw, v.at + dec.InputOffset() - int64(len(raw)), key}}
		if seen[name] {
			r.fault(m.nameAt, key, "the key is there twice: remove one")
		}
		seen[name] = true
		all = append(all, m)
	}
	return all
}

// elements returns the elements of v; none, and a fault, where it is no array.
func (r *reader) elements(v value) []value {
	if len(v.raw) == 0 || v.raw[0] != '[' {
		r.fault(v.at, v.key, "want a list")
		return nil
	}
	var all []value
	dec := json.NewDecoder(bytes.NewReader(v.raw))
	_, _ = dec.Token()
	for dec.More() {
		var raw json.RawMessage
		if dec.Decode(&raw) != nil {
			break // cannot be: the file is valid
		}
		all = append(all, value{raw, v.at + dec.InputOffset() - int64(len(raw)), fmt.Sprintf("%s[%d]", v.key, len(all))})
	}
	return all
}

// text returns a string; ok false, and a fault, where v is none.
func (r *reader) text(v value) (s string, ok bool) {
	if s, ok = rawjson.String(v.raw); !ok {
		r.fault(v.at, v.key, "want a string")
	}
	return s, ok
}

// words returns a list of strings.
func (r *reader) words(v value) (words []string, at []value) {
	for _, e := range r.elements(v) {
		if s, ok := r.text(e); ok {
			words, at = append(words, s), append(at, e)
		}
	}
	return words, at
}

// integer returns a whole number from least to most; 0, and a fault, where v is none.
func (r *reader) integer(v value, least, most int64, hint string) int64 {
	var n int64
	if json.Unmarshal(v.raw, &n) != nil || rawjson.IsNull(v.raw) {
		r.fault(v.at, v.key, "want a whole number")
		return 0
	}
	if n < least || n > most {
		r.fault(v.at, v.key, "want a number from %d to %d: %s", least, most, hint)
		return 0
	}
	return n
}
