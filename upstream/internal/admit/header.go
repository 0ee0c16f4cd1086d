package admit

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/paramheader"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
)

// headerKeyword marks a property whose argument is mirrored into an HTTP header (protocol 2026-07-28).
const headerKeyword = paramheader.Keyword

// checkHeaders refuses a tool whose header annotations are invalid: the SDK panics when it is
// added, and clients drop it.
func (c *candidate) checkHeaders() {
	input, ok := rawjson.Get(c.declaration, "inputSchema")
	if !ok || !bytes.Contains(input, []byte(headerKeyword)) && !bytes.Contains(input, []byte(`\u`)) {
		return
	}
	if fault := (&headers{seen: make(map[string]string)}).fault(input, ""); fault != "" {
		c.refuse(codeInvalidHeader, "%s: correct it on the server", fault)
	}
}

// headers collects the header names of one input schema.
type headers struct {
	seen map[string]string // lower-case name -> path of its property
}

// fault checks the properties of object, at any depth that is reached by properties alone.
func (h *headers) fault(object []byte, prefix string) (fault string) {
	properties, ok := rawjson.Get(object, "properties")
	if !ok {
		return ""
	}
	_ = rawjson.Members(properties, func(m rawjson.Member) bool { // an error is another check's business
		if !rawjson.IsObject(m.Value) {
			return true
		}
		path := prefix + m.Name()
		if value, ok := rawjson.Get(m.Value, headerKeyword); ok {
			fault = h.one(m.Value, value, path)
		}
		if fault == "" {
			fault = h.fault(m.Value, path+".")
		}
		return fault == ""
	})
	return fault
}

// one checks the annotation value of the property at path.
func (h *headers) one(property, value []byte, path string) string {
	path = hidden.Cut(path, maxShown)
	switch rawjson.Text(property, "type") {
	case "string", "integer", "boolean":
	default:
		return fmt.Sprintf("its parameter %q has %s but is no string, integer or boolean", path, headerKeyword)
	}
	name, ok := rawjson.String(value)
	if !ok || name == "" {
		return fmt.Sprintf("the %s of its parameter %q is no text", headerKeyword, path)
	}
	if !paramheader.IsToken(name) {
		return fmt.Sprintf("the %s of its parameter %q cannot be an HTTP header name", headerKeyword, path)
	}
	lower := strings.ToLower(name)
	if other, taken := h.seen[lower]; taken {
		return fmt.Sprintf("its parameters %q and %q have the same %s %q", other, path, headerKeyword,
			hidden.Cut(name, maxShown))
	}
	h.seen[lower] = path
	return ""
}
