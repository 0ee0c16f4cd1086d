package schema

import (
	"bytes"
	"encoding/json"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// IsPlain reports whether raw is a schema of only the commonest keywords, well used: Compile takes
// it, for sure. That is true of nearly all schemas of tools, and far quicker than Compile.
func IsPlain(raw json.RawMessage) bool {
	_, err := checkBounds(raw)
	return err == nil && rawjson.Valid(raw) && isPlain(raw, true)
}

func isPlain(schema []byte, root bool) bool {
	return eachMember(schema, func(m rawjson.Member) bool { return plainKeyword(m, root) })
}

func plainKeyword(m rawjson.Member, root bool) bool {
	switch value := m.Value; string(m.Key) {
	case "description", "title", "format":
		return value[0] == '"'
	case "type":
		return isType(string(value))
	case "default", "const":
		return isPlainData(value)
	case "enum":
		return isPlainData(value) && isFilled(value)
	case "minimum", "maximum":
		return isNumber(value)
	case "minLength", "maxLength", "minItems", "maxItems":
		return isNumber(value) && len(bytes.Trim(value, "0123456789")) == 0
	case "required":
		return areNames(value)
	case "properties":
		return eachMember(value, func(p rawjson.Member) bool { return isPlain(p.Value, false) })
	case "items":
		return isPlain(value, false)
	case "additionalProperties":
		return string(value) == "true" || string(value) == "false" || isPlain(value, false)
	case "anyOf":
		return isFilled(value) && eachElement(value, func(one []byte) bool { return isPlain(one, false) })
	case "$schema":
		return root && (string(value) == `"http://json-schema.org/draft-07/schema#"` ||
			string(value) == `"https://json-schema.org/draft/2020-12/schema"`)
	}
	return false
}

// isPlainData reports whether value holds nothing that could be taken for a keyword.
func isPlainData(value []byte) bool { return bytes.IndexByte(value, '{') < 0 || string(value) == "{}" }

func isNumber(value []byte) bool { return value[0] == '-' || '0' <= value[0] && value[0] <= '9' }

func isType(name string) bool {
	switch name {
	case `"object"`, `"array"`, `"string"`, `"number"`, `"integer"`, `"boolean"`, `"null"`:
		return true
	}
	return false
}

// areNames reports whether value is an array of strings, written without escapes, and no two the same.
func areNames(value []byte) bool {
	seen := make(map[string]bool)
	return bytes.IndexByte(value, '\\') < 0 && eachElement(value, func(name []byte) bool {
		again := seen[string(name)]
		seen[string(name)] = true
		return name[0] == '"' && !again
	})
}

// isFilled reports whether value is an array with an element.
func isFilled(value []byte) bool { return value[0] == '[' && len(bytes.Trim(value, "[] \t\r\n")) > 0 }

// eachMember reports whether value is an object all of whose members are well.
func eachMember(value []byte, well func(rawjson.Member) bool) bool {
	all := true
	err := rawjson.Members(value, func(m rawjson.Member) bool { all = well(m); return all })
	return all && err == nil
}

// eachElement reports whether value is an array all of whose elements are well.
func eachElement(value []byte, well func([]byte) bool) bool {
	all := true
	err := rawjson.Elements(value, func(one []byte) bool { all = well(one); return all })
	return all && err == nil
}
