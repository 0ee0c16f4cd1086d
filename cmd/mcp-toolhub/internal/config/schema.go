package config

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/shape"
	"github.com/mcp-toolhub/mcp-toolhub/internal/textfile"
)

// SchemaID is the $id of the schema.
const SchemaID = "https://github.com/mcp-toolhub/mcp-toolhub/blob/main/config.schema.json"

// Schema returns the JSON Schema (2020-12) of the configuration file, for editors. It knows keys, types and words; what
// takes the environment or two values to see, the hub reports itself.
func Schema() []byte {
	root := shape.Schema{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"$id":         SchemaID,
		"title":       "mcp-toolhub configuration",
		"description": "The configuration file of mcp-toolhub: YAML, JSON or JSON with comments.",
	}
	maps.Copy(root, fileShape(nil, false).Schema())
	root["$defs"] = shape.Schema{"server": serverShape(false).Schema()}
	data, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("config: the schema holds strings, numbers and lists only: " + err.Error())
	}
	return append(data, '\n')
}

// definedServer is a server's entry, which stands in the schema once.
type definedServer struct {
	shape.Shape[server]
	of *reader
}

// Read lets variables be unset and files be missing where the server is disabled, or can be left
// out, and notes which are.
func (s definedServer) Read(r *shape.Reader, n *textfile.Node) (server, bool) {
	var missing textfile.Faults
	d := n.Member("disabled")
	if s.of.leaveOut || d != nil && d.Kind == textfile.Bool && strings.EqualFold(d.Text, "true") {
		s.of.missing = &missing
		defer func() { s.of.missing = nil }()
	}
	known := len(s.of.known)
	v, sound := s.Shape.Read(r, n)
	v.missing, v.Secrets = missing, append([]string(nil), s.of.known[known:]...)
	return v, sound
}

// otherName is a key that another client has for a key of the file.
type otherName[V any] struct {
	shape.Shape[V]
	of string // at the top of the file
}

func (s otherName[V]) Schema() shape.Schema { return shape.Schema{"$ref": "#/properties/" + s.of} }

func (definedServer) Schema() shape.Schema { return shape.Schema{"$ref": "#/$defs/server"} }
