package deferred

import (
	"encoding/json"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Bounds of a signature: it is one line.
const (
	maxParameters = 24
	maxEnum       = 6
	maxNested     = 3
	maxLiteral    = 40
	maxSignature  = 600 // bytes: parameters may have as many themselves
)

// typed writes the arguments of a tool in one line: (required: type, optional?: type = default).
func typed(schema json.RawMessage) string { return "(" + members(schema, 0) + ")" }

// members writes the properties of an object schema, required ones first, otherwise in the schema's order.
func members(schema json.RawMessage, depth int) string {
	required := requiredOf(schema)
	var must, may []string
	properties, _ := rawjson.Get(schema, "properties")
	_ = rawjson.Members(properties, func(m rawjson.Member) bool {
		name, kind := oneLine(m.Name(), maxLiteral), typeOf(m.Value, depth)
		if required[m.Name()] {
			must = append(must, name+": "+kind)
			return len(must)+len(may) <= maxParameters
		}
		if value, ok := rawjson.Get(m.Value, "default"); ok && len(value) <= maxLiteral && !rawjson.IsNull(value) {
			kind += " = " + oneLine(string(value), maxLiteral)
		}
		may = append(may, name+"?: "+kind)
		return len(must)+len(may) <= maxParameters
	})
	all := append(must, may...)
	if len(all) > maxParameters {
		all = append(all[:maxParameters], "…")
	}
	text := strings.Join(all, ", ")
	if len(text) > maxSignature {
		text = text[:max(strings.LastIndex(text[:maxSignature], ", "), 0)] + ", …"
	}
	return text
}

func requiredOf(schema json.RawMessage) map[string]bool {
	out := make(map[string]bool)
	list, _ := rawjson.Get(schema, "required")
	_ = rawjson.Elements(list, func(e []byte) bool {
		if name, ok := rawjson.String(e); ok {
			out[name] = true
		}
		return true
	})
	return out
}

// typeOf writes a schema's type as programmers do.
func typeOf(schema json.RawMessage, depth int) string {
	if !rawjson.IsObject(schema) || depth > maxNested {
		return "any"
	}
	if value, ok := rawjson.Get(schema, "const"); ok {
		return oneLine(string(value), maxLiteral)
	}
	if values, ok := rawjson.Get(schema, "enum"); ok {
		return union(values, func(v []byte) string { return oneLine(string(v), maxLiteral) })
	}
	for _, word := range [...]string{"anyOf", "oneOf"} {
		if options, ok := rawjson.Get(schema, word); ok {
			return union(options, func(v []byte) string { return typeOf(v, depth+1) })
		}
	}
	kind, _ := rawjson.Get(schema, "type")
	name, ok := rawjson.String(kind)
	if !ok {
		if len(kind) > 0 && kind[0] == '[' {
			return union(kind, func(v []byte) string { s, _ := rawjson.String(v); return oneLine(s, maxLiteral) })
		}
		return "any"
	}
	switch name {
	case "array":
		items, _ := rawjson.Get(schema, "items")
		of := typeOf(items, depth+1)
		if strings.Contains(of, " | ") {
			of = "(" + of + ")"
		}
		return of + "[]"
	case "object":
		if inner := members(schema, depth+1); inner != "" && depth < maxNested {
			return "{" + inner + "}"
		}
		return "object"
	}
	return oneLine(name, maxLiteral)
}

// union joins alternatives, each once.
func union(list []byte, show func([]byte) string) string {
	var all []string
	seen := make(map[string]bool)
	_ = rawjson.Elements(list, func(v []byte) bool {
		if len(all) == maxEnum {
			all = append(all, "…")
			return false
		}
		if s := show(v); s != "" && !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
		return true
	})
	if len(all) == 0 {
		return "any"
	}
	return strings.Join(all, " | ")
}
