package declarative

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// variable is a property of the input schema, as templates can name it.
type variable struct {
	kind     string // its type
	listed   bool   // its values are listed in the schema
	required bool
	fallback json.RawMessage // its default; nil where it has none
	raw      json.RawMessage
}

// types are those that a schema may use.
func types() []string { return []string{"object", "string", "number", "integer", "boolean", "array"} }

// keywords are those that a schema of the type may use: object, string, number, integer, boolean, array, enum, required and
// description, nested as deep as one likes, and what narrows a single value. No references, combinations or conditions.
func keywords(kind string) []string {
	all := []string{"type", "description", "title", "enum", "const", "default", "examples", "writeOnly", "x-sensitive"}
	switch kind {
	case "object":
		return append(all, "properties", "required", "additionalProperties", "minProperties", "maxProperties")
	case "string":
		return append(all, "minLength", "maxLength", "pattern", "format")
	case "number", "integer":
		return append(all, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
	case "array":
		return append(all, "items", "minItems", "maxItems", "uniqueItems")
	}
	return all
}

// checkSchema checks that v is within the subset of JSON Schema that declared tools can use, and returns its properties.
func (p *parsing) checkSchema(v value) map[string]variable {
	if v.Kind != textfile.Mapping {
		p.fault(v.Position, v.key, "want a JSON Schema of an object")
		return nil
	}
	if kind, _ := rawjson.Get(v.Source, "type"); string(kind) != `"object"` {
		p.fault(v.Position, v.key, `want "type": "object": arguments are an object`)
		return nil
	}
	vars := make(map[string]variable)
	p.subset(v, vars)
	return vars
}

// subset checks one schema and those in it. vars gets the properties of the root; it is nil for the others.
func (p *parsing) subset(v value, vars map[string]variable) {
	members := p.members(v)
	kind := ""
	for _, m := range members {
		if m.name == "type" {
			kind, _ = rawjson.String(m.Source)
			if !slices.Contains(types(), kind) {
				p.fault(m.Position, m.key, "want one of %s", strings.Join(types(), ", "))
				return
			}
		}
	}
	if kind == "" {
		if v.Kind == textfile.Mapping {
			p.fault(v.Position, v.key, "has no type: add one of %s", strings.Join(types(), ", "))
		}
		return
	}
	names := make(map[string]bool)
	for _, m := range members {
		switch {
		case vars != nil && (m.name == "$schema" || m.name == "$comment"):
		case !slices.Contains(keywords(kind), m.name):
			p.fault(m.nameAt, m.key, "this keyword is not supported for the type %s here: those that are: %s", kind, strings.Join(keywords(kind), ", "))
		case m.name == "properties":
			for _, property := range p.members(m.value) {
				names[property.name] = true
				p.subset(property.value, nil)
				if vars != nil {
					vars[property.name] = variableOf(property.Source)
				}
			}
		case m.name == "items":
			p.subset(m.value, nil)
		case m.name == "additionalProperties" && string(m.Source) != "true" && string(m.Source) != "false":
			p.fault(m.Position, m.key, "want true or false")
		}
	}
	for _, m := range members {
		if m.name == "required" {
			p.requiredNames(m.value, names, vars)
		}
	}
}

func (p *parsing) requiredNames(v value, names map[string]bool, vars map[string]variable) {
	words, at := p.words(v)
	for i, name := range words {
		if !names[name] {
			p.fault(at[i].Position, at[i].key, "names no property: add it to properties, or remove it here")
			continue
		}
		if variable, ok := vars[name]; ok {
			variable.required = true
			vars[name] = variable
		}
	}
}

func variableOf(raw json.RawMessage) variable {
	kind, _ := rawjson.GetString(raw, "type")
	_, enum := rawjson.Get(raw, "enum")
	_, constant := rawjson.Get(raw, "const")
	fallback, _ := rawjson.Get(raw, "default")
	return variable{kind: kind, listed: enum || constant, fallback: fallback, raw: raw}
}

// compile makes sure that arguments can be checked by the schema.
func (p *parsing) compile(v value) {
	s, err := schema.Compile(p.schema)
	if err != nil {
		p.fault(v.Position, v.key, "%s", err)
		return
	}
	for _, ignored := range append(s.Ignored(), s.Broken()...) {
		p.fault(v.Position, v.key, "arguments could not be checked by it: %s: change that", ignored)
	}
}
