package persist

import (
	"bytes"
	"cmp"
	"iter"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/tool"
)

// Erased stands in a line of the journal where a value was.
const Erased = `"[erased]"`

// IsErased reports whether a value of a line is Erased.
func IsErased(value []byte) bool { return string(value) == Erased }

// Erasable returns which values of a line of the journal are erased with the invocation that the
// line is of: all that say what callers, tools and people have said. What stays is that the call
// was made: by whom, of which tool, when, and how it ended. It returns nil for a line of no
// invocation, and for the record of an erasure.
//
// The function is asked for each member of the line, with under "", or where that is an object or
// an array, for each value in it, with the name of the member as under, and key "" for elements.
func Erasable(line []byte) (of tool.InvocationID, erasable func(under, key string, value []byte) bool) {
	of = tool.InvocationID(rawjson.Text(line, "invocation_id"))
	object := tool.Object(rawjson.Text(line, "object"))
	switch {
	case of == "" || object == tool.ObjectEvent &&
		rawjson.Text(line, "event_type") == string(tool.EventInvocationErased):
		return of, nil
	case object == ObjectCall || object == ObjectTask:
		return of, saying(erasableOfCall)
	}
	return of, saying(erasableOfObject)
}

// saying leaves out values that say nothing.
func saying(erasable func(under, key string, value []byte) bool) func(under, key string, value []byte) bool {
	return func(under, key string, value []byte) bool {
		return string(value) != "{}" && string(value) != "[]" && string(value) != `""` && string(value) != "null" &&
			erasable(under, key, value)
	}
}

// erasableOfCall is Erasable for call records.
func erasableOfCall(under, key string, value []byte) bool {
	switch under {
	case "":
		return slices.Contains([]string{"model_input", "model_input_ref", "observable_input"}, key)
	case "model_input", "observable_input", "agent":
		return true
	case "steps":
		return !stays(value)
	case "result":
		return slices.Contains([]string{"content", "structured_content", "content_ref", "summary"}, key)
	case "error":
		return key == "message" || key == "native_error_ref"
	}
	return false
}

// stays reports whether a step says nothing but that it has happened.
func stays(step []byte) bool {
	n := 0
	_ = rawjson.Elements(step, func([]byte) bool {
		n++
		return true
	})
	return n == 2 || bytes.HasPrefix(step, []byte(`["`+tool.StatusAwaitingApproval+`"`))
}

// erasableOfObject is Erasable for records of decisions about results, and for their events.
func erasableOfObject(under, key string, value []byte) bool {
	switch cmp.Or(under, key) {
	case "data", "reason":
		return under != "" || value[0] == '"'
	case "persisted_ref":
		return key == "sha256" || key == "name"
	}
	return false
}

// Erase returns a line with Erased in the place of the values that Erasable means.
func Erase(line []byte) []byte {
	_, erasable := Erasable(line)
	if erasable == nil {
		return line
	}
	return Replace(line, func(l Leaf) string {
		if IsErased(l.Value) || !erasable(string(l.Under), string(l.Key), l.Value) {
			return ""
		}
		return Erased
	})
}

// Leaf is a value of a line: one of its members, or a member or element of one that is an object or
// an array, unless that is empty. Key is the member's name as it is written; Under is the name of
// the member of the line where the leaf is within that.
type Leaf struct {
	Kind              LeafKind
	First             bool // of its member of the line
	Under, Key, Value []byte
}

// LeafKind says where a leaf is.
type LeafKind byte

// The kinds of leaves.
const (
	MemberLeaf  LeafKind = 'm' // member of the line
	ObjectLeaf  LeafKind = 'o' // of an object in it
	ElementLeaf LeafKind = 'a' // of an array in it
	TextLeaf    LeafKind = 't' // a line that is no JSON object
)

// Leaves are the leaves of a line, in their order.
func Leaves(line []byte) iter.Seq[Leaf] {
	return func(yield func(Leaf) bool) {
		more := true
		_ = rawjson.Members(line, func(m rawjson.Member) bool {
			first := true
			within := func(kind LeafKind, key, value []byte) bool {
				more = yield(Leaf{kind, first, m.Key, key, value})
				first = false
				return more
			}
			switch m.Value[0] {
			case '{':
				_ = rawjson.Members(m.Value, func(in rawjson.Member) bool { return within(ObjectLeaf, in.Key, in.Value) })
			case '[':
				_ = rawjson.Elements(m.Value, func(value []byte) bool { return within(ElementLeaf, nil, value) })
			}
			if first {
				more = yield(Leaf{MemberLeaf, true, nil, m.Key, m.Value})
			}
			return more
		})
	}
}

// Replace returns a line with other values in the place of its leaves for which with returns one.
func Replace(line []byte, with func(l Leaf) string) []byte {
	var out []byte
	done := 0 // bytes of line that are in out, or replaced
	for l := range Leaves(line) {
		if value := with(l); value != "" {
			at := cap(line) - cap(l.Value)
			out = append(append(out, line[done:at]...), value...)
			done = at + len(l.Value)
		}
	}
	return append(out, line[done:]...)
}
