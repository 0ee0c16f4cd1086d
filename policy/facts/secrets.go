package facts

import (
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// declaredSecrets appends JSON pointers to what a schema of results declares secret: "format":
// "password", or writeOnly.
func declaredSecrets(schema []byte, at string, depth int, found []string) []string {
	if !rawjson.IsObject(schema) || depth > 8 {
		return found
	}
	writeOnly, _ := rawjson.Get(schema, "writeOnly")
	if format, _ := rawjson.GetString(schema, "format"); format == "password" || string(writeOnly) == "true" {
		return append(found, at)
	}
	if properties, ok := rawjson.Get(schema, "properties"); ok && rawjson.IsObject(properties) {
		_ = rawjson.Members(properties, func(m rawjson.Member) bool {
			step := strings.NewReplacer("~", "~0", "/", "~1").Replace(m.Name())
			found = declaredSecrets(m.Value, at+"/"+step, depth+1, found)
			return true
		})
	}
	if items, ok := rawjson.Get(schema, "items"); ok {
		found = declaredSecrets(items, at+"/*", depth+1, found)
	}
	return found
}
