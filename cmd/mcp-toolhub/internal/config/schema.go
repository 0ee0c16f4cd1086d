package config

import (
	"encoding/json"
	"maps"

	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// schema is a JSON Schema, or a part of one.
type schema map[string]any

// SchemaID is the $id of the schema.
const SchemaID = "https://github.com/mcp-toolhub/mcp-toolhub/blob/main/config.schema.json"

// Schema returns the JSON Schema (2020-12) of the configuration file, for editors. It knows keys, types and words; what
// takes the environment or two values to see, the hub reports itself.
func Schema() []byte {
	root := schema{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"$id":         SchemaID,
		"title":       "mcp-toolhub configuration",
		"description": "The configuration file of mcp-toolhub: YAML, JSON or JSON with comments.",
	}
	maps.Copy(root, fileShape(func(string) bool { return false }).schema())
	root["$defs"] = schema{"server": serverShape().schema()}
	data, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("config: the schema holds strings, numbers and lists only: " + err.Error())
	}
	return append(data, '\n')
}

// definedServer is a server's entry, which stands in the schema once.
type definedServer struct{ shape[server] }

// read lets the variables of a disabled server be unset.
func (s definedServer) read(r *reader, n *textfile.Node) (server, bool) {
	before := r.dormant
	defer func() { r.dormant = before }()
	if d := n.Member("disabled"); d != nil && d.Kind == textfile.Bool {
		r.dormant, _ = boolean{}.read(r, d)
	}
	return s.shape.read(r, n)
}

func (definedServer) schema() schema { return schema{"$ref": "#/$defs/server"} }
