//go:build e2e

package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
)

// chance makes random schemas of the common kind, and arguments that fit more often than not.
type chance struct{ *rand.Rand }

func oneOf[T any](c chance, from ...T) T { return from[c.IntN(len(from))] }

func (c chance) schema(depth int) map[string]any {
	s := map[string]any{"description": "text", "x-other": 1}
	kind := oneOf(c, "string", "string", "integer", "number", "boolean", "enum", "const", "object", "array", "optional", "any")
	if depth == 0 && (kind == "object" || kind == "array") {
		kind = "string"
	}
	switch kind {
	case "string":
		s["type"] = "string"
		if c.IntN(3) == 0 {
			s["minLength"], s["maxLength"] = c.IntN(3), 3+c.IntN(5)
		}
	case "integer", "number":
		s["type"] = kind
		if c.IntN(2) == 0 {
			s["minimum"], s["maximum"] = c.IntN(5)-2, 4+c.IntN(5)
		}
	case "boolean":
		s["type"] = "boolean"
	case "enum":
		s["enum"] = []any{"a", "bb", 3, nil}
	case "const":
		s["const"] = "a"
	case "array":
		s["type"], s["items"] = "array", c.schema(depth-1)
		if c.IntN(3) == 0 {
			s["minItems"], s["maxItems"] = c.IntN(2), 2+c.IntN(2)
		}
	case "optional":
		s["anyOf"] = []any{map[string]any{"type": "null"}, c.schema(0)}
	case "object":
		return c.object(depth - 1)
	}
	return s
}

func (c chance) object(depth int) map[string]any {
	properties, required := map[string]any{}, []string{}
	for i := range c.IntN(5) {
		name := fmt.Sprint("p", i)
		if properties[name] = c.schema(depth); c.IntN(2) == 0 {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "required": required}
	switch c.IntN(4) {
	case 0:
		s["additionalProperties"] = false
	case 1:
		s["additionalProperties"] = c.schema(0)
	}
	return s
}

// value is a value that s may allow.
func (c chance) value(s map[string]any, depth int) any {
	if c.IntN(40) == 0 || depth == 0 {
		return oneOf[any](c, "a", 1, 2.5, true, nil, []any{}, map[string]any{})
	}
	if list, ok := s["enum"].([]any); ok {
		return oneOf(c, list...)
	}
	if v, ok := s["const"]; ok {
		return v
	}
	if list, ok := s["anyOf"].([]any); ok {
		return c.value(oneOf(c, list...).(map[string]any), depth-1)
	}
	switch s["type"] {
	case "string":
		return oneOf(c, "a", "bb", "ccc", "é😀x", "plain text", "\n\t\"", "abc")
	case "integer":
		return c.IntN(8) - 1
	case "number":
		return oneOf[any](c, 1, 2.25, 3.5)
	case "boolean":
		return true
	case "array":
		list := []any{}
		for range c.IntN(4) {
			list = append(list, c.value(s["items"].(map[string]any), depth-1))
		}
		return list
	case "object":
		object := map[string]any{}
		for name, p := range s["properties"].(map[string]any) {
			if c.IntN(6) > 0 {
				object[name] = c.value(p.(map[string]any), depth-1)
			}
		}
		if c.IntN(10) == 0 {
			object["more"] = "a"
		}
		return object
	}
	return "anything"
}

// TestCheckerKnowsTheCommonCase: for schemas of the common kind, the checker spares the library nearly all arguments that are
// valid, and never says more than the library.
func TestCheckerKnowsTheCommonCase(t *testing.T) {
	t.Parallel()
	c := chance{rand.New(rand.NewPCG(7, 7))}
	valid, spared := 0, 0
	for range 3000 {
		schema := c.object(3)
		raw, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Compile(raw)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		for range 10 {
			args, err := json.Marshal(c.value(schema, 6))
			if err != nil {
				t.Fatal(err)
			}
			accepted, fault := s.accepts(args), s.decide(args)
			if accepted && fault != nil {
				t.Fatalf("schema %s, arguments %s: the checker accepts them, the library says %v", raw, args, fault)
			}
			if s.common == nil {
				t.Fatalf("no checker for %s", raw)
			}
			if fault == nil {
				valid++
			}
			if accepted {
				spared++
			}
		}
	}
	t.Logf("%d of %d valid arguments need no library", spared, valid)
	if valid < 5000 || spared*100 < valid*95 {
		t.Errorf("%d of %d valid arguments need no library", spared, valid)
	}
}
