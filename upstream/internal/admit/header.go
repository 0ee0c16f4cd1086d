package admit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// checkHeaders refuses a tool whose header annotations are invalid: the SDK panics when it is
// added, and clients drop it.
func (c *candidate) checkHeaders() {
	input, ok := rawjson.Get(c.declaration, "inputSchema")
	if !ok || !bytes.Contains(input, []byte(paramheader.Keyword)) && !bytes.Contains(input, []byte(`\u`)) {
		return
	}
	seen := make(map[string]string) // lower-case name -> path of its property
	paramheader.Each(input, nil, func(path []string, property, value json.RawMessage) {
		if fault := headerFault(seen, strings.Join(path, "."), property, value); fault != "" {
			c.refuse(codeInvalidHeader, "%s: correct it on the server", fault)
		}
	})
}

// headerFault says what is wrong with the annotation value of the property at path; "" for nothing.
func headerFault(seen map[string]string, path string, property, value []byte) string {
	path = hidden.Cut(path, maxShown)
	switch rawjson.Text(property, "type") {
	case "string", "integer", "boolean":
	default:
		return fmt.Sprintf("its parameter %q has %s but is no string, integer or boolean", path, paramheader.Keyword)
	}
	name, ok := rawjson.String(value)
	if !ok || name == "" {
		return fmt.Sprintf("the %s of its parameter %q is no text", paramheader.Keyword, path)
	}
	if !paramheader.IsToken(name) {
		return fmt.Sprintf("the %s of its parameter %q cannot be an HTTP header name", paramheader.Keyword, path)
	}
	lower := strings.ToLower(name)
	if other, taken := seen[lower]; taken {
		return fmt.Sprintf("its parameters %q and %q have the same %s %q", other, path, paramheader.Keyword,
			hidden.Cut(name, maxShown))
	}
	seen[lower] = path
	return ""
}
