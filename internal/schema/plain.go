package schema

import "encoding/json"

// IsPlain reports whether raw is a schema of only the commonest keywords, well used: Compile takes
// it, for sure. That is true of nearly all schemas of tools, and far quicker than Compile.
func IsPlain(raw json.RawMessage) bool {
	doc, err := decodeSchema(raw)
	return err == nil && isPlain(doc)
}

func isPlain(doc any) bool {
	object, ok := doc.(map[string]any)
	if !ok {
		return false
	}
	for name, value := range object {
		if !plainKeyword(name, value) {
			return false
		}
	}
	return true
}

func plainKeyword(name string, value any) bool {
	switch value := value.(type) {
	case string:
		return name == "description" || name == "title" || name == "default" || name == "type" && isType(value)
	case bool:
		return name == "default" || name == "additionalProperties"
	case []any:
		switch name {
		case "enum":
			return len(value) > 0
		case "required":
			return areNames(value)
		case "anyOf":
			for _, one := range value {
				if !isPlain(one) {
					return false
				}
			}
			return len(value) > 0
		}
		return name == "default"
	case map[string]any:
		switch name {
		case "properties":
			for _, property := range value {
				if !isPlain(property) {
					return false
				}
			}
			return true
		case "items", "additionalProperties":
			return isPlain(value)
		}
	}
	return name == "default"
}

func isType(name string) bool {
	switch name {
	case "object", "array", "string", "number", "integer", "boolean", "null":
		return true
	}
	return false
}

// areNames reports whether all values are strings, and no two the same.
func areNames(values []any) bool {
	seen := make(map[string]bool, len(values))
	for _, value := range values {
		name, ok := value.(string)
		if !ok || seen[name] {
			return false
		}
		seen[name] = true
	}
	return true
}
