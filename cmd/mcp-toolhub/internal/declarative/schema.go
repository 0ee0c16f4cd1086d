package declarative

import (
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// variable is a property of the input schema, as templates can name it.
type variable struct {
	kind     string // its type; "" where it has none or several
	listed   bool   // its values are listed in the schema
	required bool
	fallback json.RawMessage // its default; nil where it has none
	raw      json.RawMessage
}

// checkSchema checks that n is a schema of an object, and returns its properties.
func (p *parsing) checkSchema(n *textfile.Node) map[string]variable {
	if n.Kind != textfile.Mapping {
		p.Fault(n.Position, "want a JSON Schema of an object", "")
		return nil
	}
	if kind, _ := rawjson.Get(n.Source, "type"); string(kind) != `"object"` {
		p.Fault(n.Position, `want "type": "object"`, "arguments are an object")
		return nil
	}
	vars, required := make(map[string]variable), []*textfile.Node(nil)
	members, _ := p.Members(n)
	for _, m := range members {
		leave := p.Enter(m.Key)
		switch m.Key {
		case "properties":
			properties, _ := p.Members(m.Value)
			for _, property := range properties {
				vars[property.Key] = variableOf(property.Value.Source)
			}
		case "required":
			required = m.Value.Items
		}
		leave()
	}
	for _, name := range required {
		if one, ok := vars[name.Text]; ok {
			one.required = true
			vars[name.Text] = one
		}
	}
	return vars
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
