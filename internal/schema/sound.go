package schema

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// Bounds of a schema that IsSound looks at, with which no bound of Compile can be exceeded.
const (
	maxSoundBytes   = 64 << 10
	maxSoundSchemas = 100
	maxSoundDepth   = 64
	maxSoundWords   = 256 // in one list
)

// IsSound reports whether it can be told without compiling raw, which is valid JSON, that Compile accepts it and would call no part
// of it Broken. False says nothing. Most schemas are of this kind: keywords that everybody uses, without references and patterns.
func IsSound(raw json.RawMessage) bool {
	if len(raw) > maxSoundBytes || bytes.Contains(raw, []byte(`\u`)) {
		return false // keys with escapes could be any keyword
	}
	c := measure(raw)
	if c.depth > maxSoundDepth || c.schemas > maxSoundSchemas || c.tooBig || c.beyond {
		return false
	}
	dialects := 0
	if dialect, ok := rawjson.Get(raw, "$schema"); ok {
		switch string(dialect) {
		case `"http://json-schema.org/draft-07/schema#"`, `"https://json-schema.org/draft/2020-12/schema"`:
			dialects = 1
		default:
			return false
		}
	}
	if bytes.Count(raw, []byte(`"$`)) != dialects {
		return false // references, identifiers, vocabularies: also where they are data, because Compile counts them there
	}
	return isSound(raw, dialects == 1)
}

// isSound is IsSound for one subschema.
func isSound(raw []byte, dialect bool) bool {
	if string(raw) == "true" || string(raw) == "false" {
		return true
	}
	sound := true
	err := rawjson.Members(raw, func(m rawjson.Member) bool {
		switch key := string(m.Key); key {
		case "type":
			sound = isTypes(m.Value)
		case "title", "description", "format", "contentEncoding", "contentMediaType":
			sound = m.Value[0] == '"'
		case "default", "const":
		case "properties":
			sound = rawjson.Members(m.Value, func(p rawjson.Member) bool {
				sound = isSound(p.Value, false)
				return sound
			}) == nil && sound
		case "items", "additionalProperties", "propertyNames", "not":
			sound = isSound(m.Value, false)
		case "anyOf", "oneOf", "allOf":
			sound = eachElement(m.Value, func(one []byte) bool { return isSound(one, false) })
		case "enum":
			sound = areUnique(m.Value)
		case "required":
			sound = string(m.Value) == "[]" || areUnique(m.Value)
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
			sound = m.Value[0] == '-' || m.Value[0]-'0' <= 9
		case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
			sound = len(m.Value) < 10 && m.Value[0]-'0' <= 9 && len(bytes.Trim(m.Value, "0123456789")) == 0
		case "uniqueItems", "readOnly", "writeOnly":
			sound = m.Value[0] == 't' || m.Value[0] == 'f'
		case "$schema":
			sound = dialect
		default:
			sound = false
		}
		return sound
	})
	return err == nil && sound
}

// eachElement reports whether array is one, holds something, and test holds for each element.
func eachElement(array []byte, test func([]byte) bool) bool {
	passed := false
	err := rawjson.Elements(array, func(one []byte) bool {
		passed = test(one)
		return passed
	})
	return err == nil && passed
}

// isTypes reports whether value is a "type": one word of the language, or several different ones.
func isTypes(value []byte) bool {
	if value[0] == '[' {
		return areUnique(value) && eachElement(value, func(one []byte) bool { return one[0] == '"' && isTypes(one) })
	}
	switch string(value) {
	case `"string"`, `"number"`, `"integer"`, `"boolean"`, `"object"`, `"array"`, `"null"`:
		return true
	}
	return false
}

// areUnique reports whether array holds strings without escapes, at least one but not too many, and none of them twice.
func areUnique(array []byte) bool {
	var seen [][]byte
	return eachElement(array, func(one []byte) bool {
		for _, other := range seen {
			if bytes.Equal(one, other) {
				return false
			}
		}
		seen = append(seen, one)
		return len(seen) <= maxSoundWords && one[0] == '"' && bytes.IndexByte(one, '\\') < 0 && utf8.Valid(one)
	})
}
