package rawjson

import "strings"

// PointerToken is the name of a member as a token of a JSON pointer.
func PointerToken(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// PointerName is the name of the member that a token of a JSON pointer means.
func PointerName(token string) string {
	if !strings.Contains(token, "~") {
		return token
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}
