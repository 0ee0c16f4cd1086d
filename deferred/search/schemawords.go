package search

import (
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// schemaText holds the words of an input schema.
type schemaText struct {
	names, texts, enums string
}

// Bounds of what is read of a schema: strangers write them.
const (
	maxSchemaDepth = 6
	maxSchemaWords = 4 << 10 // bytes of each kind
)

// schemaWords reads a schema as far as it can be read: what is no schema has no words.
func schemaWords(schema []byte) schemaText {
	var w schemaWriter
	w.object(schema, 0)
	return schemaText{w.names.String(), w.texts.String(), w.enums.String()}
}

type schemaWriter struct{ names, texts, enums strings.Builder }

// object reads one schema object: properties, descriptions and enums at any of the places where schemas are nested.
func (w *schemaWriter) object(schema []byte, depth int) {
	if depth > maxSchemaDepth || !rawjson.IsObject(schema) {
		return
	}
	_ = rawjson.Members(schema, func(m rawjson.Member) bool {
		switch string(m.Key) {
		case "description", "title":
			if text, ok := rawjson.String(m.Value); ok && depth > 0 {
				put(&w.texts, text)
			}
		case "enum":
			_ = rawjson.Elements(m.Value, func(v []byte) bool {
				if text, ok := rawjson.String(v); ok {
					put(&w.enums, text)
				}
				return true
			})
		case "properties":
			if !rawjson.IsObject(m.Value) {
				return true
			}
			_ = rawjson.Members(m.Value, func(p rawjson.Member) bool {
				put(&w.names, string(p.Key))
				w.object(p.Value, depth+1)
				return true
			})
		case "items":
			w.object(m.Value, depth+1)
		case "anyOf", "oneOf", "allOf":
			_ = rawjson.Elements(m.Value, func(v []byte) bool {
				w.object(v, depth+1)
				return true
			})
		}
		return true
	})
}

func put(to *strings.Builder, text string) {
	if to.Len()+len(text) > maxSchemaWords {
		return
	}
	to.WriteString(text)
	to.WriteByte('\n')
}
