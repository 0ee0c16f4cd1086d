package declarative

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// reader gathers the faults of one file.
type reader struct {
	file   string
	faults textfile.Faults
}

// texts are all faults in the order of the file, each with its place.
func (r *reader) texts() []string {
	all := make([]string, len(r.faults))
	for i, f := range r.faults.Sort() {
		all[i] = f.Error()
	}
	return all
}

// fault reports what is wrong at a place of the file. key is the path of keys there; "" for the file itself.
func (r *reader) fault(at textfile.Position, key, format string, args ...any) {
	r.faults = append(r.faults, textfile.Fault{File: r.file, Position: at, Key: key, Message: fmt.Sprintf(format, args...)})
}

// tree reads the file, which is JSON without comments. It is nil after a fault.
func (r *reader) tree(data []byte) *textfile.Node {
	root, faults := textfile.ParseJSON(data)
	if len(faults) == 0 && rawjson.Valid(data) {
		return root
	}
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(data, new(json.RawMessage)), &syntax) {
		r.fault(textfile.PositionOf(data, int(syntax.Offset)-1), "", "this is no JSON: %s", syntax)
	} else {
		r.fault(textfile.At(1, 1), "", "this is no JSON, or nests too deep: simplify it")
	}
	return nil
}

// value is a value of the file, with its path of keys.
type value struct {
	*textfile.Node
	key string
}

// member is a member of an object of the file.
type member struct {
	name   string
	nameAt textfile.Position
	value
}

// members returns the members of v; none, and a fault, where it is no object. A name that stands there twice is a fault: programs
// do not agree about which of the two counts.
func (r *reader) members(v value) []member {
	if v.Kind != textfile.Mapping {
		r.fault(v.Position, v.key, "want an object")
	}
	var all []member
	seen := make(map[string]bool)
	for _, m := range v.Members {
		key := m.Key
		if v.key != "" {
			key = v.key + "." + m.Key
		}
		if seen[m.Key] {
			r.fault(m.Position, key, "the key is there twice: remove one")
		}
		seen[m.Key] = true
		all = append(all, member{m.Key, m.Position, value{m.Value, key}})
	}
	return all
}

// text returns a string; ok false, and a fault, where v is none.
func (r *reader) text(v value) (s string, ok bool) {
	if v.Kind != textfile.Text {
		r.fault(v.Position, v.key, "want a string")
		return "", false
	}
	return v.Text, true
}

// words returns a list of strings and their places.
func (r *reader) words(v value) (words []string, at []value) {
	if v.Kind != textfile.List {
		r.fault(v.Position, v.key, "want a list")
	}
	for i, item := range v.Items {
		e := value{item, fmt.Sprintf("%s[%d]", v.key, i)}
		if s, ok := r.text(e); ok {
			words, at = append(words, s), append(at, e)
		}
	}
	return words, at
}

// integer returns a whole number from least to most; 0, and a fault, where v is none.
func (r *reader) integer(v value, least, most int64, hint string) int64 {
	var n int64
	if v.Kind == textfile.Null || json.Unmarshal(v.Source, &n) != nil {
		r.fault(v.Position, v.key, "want a whole number")
		return 0
	}
	if n < least || n > most {
		r.fault(v.Position, v.key, "want a number from %d to %d: %s", least, most, hint)
		return 0
	}
	return n
}
