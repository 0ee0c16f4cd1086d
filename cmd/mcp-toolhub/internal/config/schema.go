package config

import (
	"encoding/json"
	"maps"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// schema is a JSON Schema, or a part of one.
type schema map[string]any

// defs are the parts that the schema refers to by name.
type defs map[string]schema

// SchemaID is the $id of the schema.
const SchemaID = "https://github.com/mcp-toolhub/mcp-toolhub/blob/main/config.schema.json"

// Schema returns the JSON Schema (2020-12) of the configuration file, for editors. It knows keys, types and words; what
// takes the environment or two values to see, the hub reports itself.
func Schema() []byte {
	d := defs{}
	root := schema{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"$id":         SchemaID,
		"title":       "mcp-toolhub configuration",
		"description": "The configuration file of mcp-toolhub: YAML, JSON or JSON with comments.",
	}
	maps.Copy(root, fileShape(func(string) bool { return false }).schema(d))
	root["$defs"] = d
	data, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("config: the schema holds strings, numbers and lists only: " + err.Error())
	}
	return append(data, '\n')
}

// named is a shape that stands in the schema once, under a name.
type named[V any] struct {
	name  string
	shape shape[V]
}

func (s named[V]) read(r *reader, n *textfile.Node) (V, bool) { return s.shape.read(r, n) }

func (s named[V]) schema(d defs) schema {
	if _, there := d[s.name]; !there {
		d[s.name] = nil // the shape may hold itself
		d[s.name] = s.shape.schema(d)
	}
	return schema{"$ref": "#/$defs/" + s.name}
}
