package persist

import (
	"bytes"
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

// erasableOfObject is Erasable for objects of Agent Tool that stand as lines.
func erasableOfObject(under, key string, value []byte) bool {
	name := key
	if under != "" {
		name = under
	}
	switch name {
	case "model_input", "observable_input", "permission_input", "call_input", "model_input_ref", "permission_input_ref",
		"call_input_ref",
		"content", "structured_content", "content_ref", "summary", "message", "data", "reason", "agent", "matcher",
		"output":
		return under != "" || value[0] == '"'
	case "error":
		return key == "message" || key == "native_error_ref"
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
	var out []byte
	done := 0 // bytes of line that are in out, or erased
	put := func(under, key string, value []byte) {
		if !IsErased(value) && erasable(under, key, value) {
			at := cap(line) - cap(value)
			out = append(append(out, line[done:at]...), Erased...)
			done = at + len(value)
		}
	}
	_ = rawjson.Members(line, func(m rawjson.Member) bool {
		name, inner := string(m.Key), 0
		switch m.Value[0] {
		case '{':
			_ = rawjson.Members(m.Value, func(in rawjson.Member) bool {
				inner++
				put(name, string(in.Key), in.Value)
				return true
			})
		case '[':
			_ = rawjson.Elements(m.Value, func(value []byte) bool {
				inner++
				put(name, "", value)
				return true
			})
		}
		if inner == 0 {
			put("", name, m.Value)
		}
		return true
	})
	return append(out, line[done:]...)
}
