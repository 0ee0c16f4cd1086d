package declarative

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
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

// keywords are those that a schema of the type may use: object, string, number, integer, boolean,
// array, enum, required and description, nested as deep as one likes, and what narrows a single
// value. No references, combinations or conditions.
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

// checkSchema checks that n is within the subset of JSON Schema that declared tools can use, and
// returns its properties.
func (p *parsing) checkSchema(n *textfile.Node) map[string]variable {
	if n.Kind != textfile.Mapping {
		p.Fault(n.Position, "want a JSON Schema of an object", "")
		return nil
	}
	if kind, _ := rawjson.Get(n.Source, "type"); string(kind) != `"object"` {
		p.Fault(n.Position, `want "type": "object"`, "arguments are an object")
		return nil
	}
	vars := make(map[string]variable)
	p.subset(n, vars)
	return vars
}

// subset checks one schema and those in it. vars gets the properties of the root; it is nil for the others.
func (p *parsing) subset(n *textfile.Node, vars map[string]variable) {
	members, sound := p.Members(n)
	kind := ""
	if t := n.Member("type"); t != nil {
		if kind = t.Text; t.Kind != textfile.Text || !slices.Contains(types(), kind) {
			defer p.Enter("type")()
			p.Fault(t.Position, "want one of "+strings.Join(types(), ", "), "")
			return
		}
	}
	if kind == "" {
		if sound {
			p.Fault(n.Position, "has no type", "add one of "+strings.Join(types(), ", "))
		}
		return
	}
	names := make(map[string]bool)
	for _, m := range members {
		leave := p.Enter(m.Key)
		switch {
		case vars != nil && (m.Key == "$schema" || m.Key == "$comment"):
		case !slices.Contains(keywords(kind), m.Key):
			p.Fault(m.Position, "this keyword is not supported for the type "+kind+" here", "those that are: "+
				strings.Join(keywords(kind), ", "))
		case m.Key == "properties":
			properties, _ := p.Members(m.Value)
			for _, property := range properties {
				names[property.Key] = true
				leave := p.Enter(property.Key)
				p.subset(property.Value, nil)
				leave()
				if vars != nil {
					vars[property.Key] = variableOf(property.Value.Source)
				}
			}
		case m.Key == "items":
			p.subset(m.Value, nil)
		case m.Key == "additionalProperties" && m.Value.Kind != textfile.Bool:
			p.Fault(m.Value.Position, "want true or false", "")
		}
		leave()
	}
	if required := n.Member("required"); required != nil {
		defer p.Enter("required")()
		p.requiredNames(required, names, vars)
	}
}

func (p *parsing) requiredNames(n *textfile.Node, names map[string]bool, vars map[string]variable) {
	words, _ := shape.ListAt(shape.Text{}).Read(p.Reader, n)
	for _, name := range words {
		if name.OK && !names[name.Value] {
			fault(p, name, "names no property: add it to properties, or remove it here")
			continue
		}
		if variable, ok := vars[name.Value]; ok {
			variable.required = true
			vars[name.Value] = variable
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
func (p *parsing) compile(v place) {
	s, err := schema.Compile(p.schema)
	if err != nil {
		fault(p, v, "%s", err)
		return
	}
	for _, ignored := range append(s.Ignored(), s.Broken()...) {
		fault(p, v, "arguments could not be checked by it: %s: change that", ignored)
	}
}
