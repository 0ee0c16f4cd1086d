package admit

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/mcp-toolhub/mcp-toolhub/internal/hidden"
	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
)

// hideInternal takes the arguments that Agent Tool calls internal, those with
// "visibility":"internal", out of the input schema that models see. Hooks and people may set them,
// and need not. They are found beneath properties and items. A tool that has them anywhere else is
// refused: nobody could tell which arguments of a call they are.
func (c *candidate) hideInternal(value []byte) {
	if !bytes.Contains(value, []byte(`"visibility"`)) { // nearly always
		return
	}
	hide, keep := hiding{drops: true}, hiding{}
	shown, runtime := hide.schema(value, ""), keep.schema(value, "")
	for _, o := range hide.others {
		for _, name := range hide.names {
			if bytes.Contains(o.Value, name) {
				hide.refuse("its keyword %s names %s", o.Key, hidden.Cut(string(name), maxShown))
			}
		}
	}
	if hide.fault == "" && len(hide.found) > 0 {
		if _, err := schema.Compile(shown); err != nil {
			hide.refuse("without it the schema does not compile")
		}
	}
	if hide.fault != "" {
		c.refuse(codeInvalidSchema,
			`its input schema cannot be shown without what has "visibility":"internal": %s. Keep such arguments beneath `+
				`properties and items, and let nothing else name them`, hide.fault)
	} else if len(hide.found) > 0 {
		c.internal, c.runtime = hide.found, runtime
		c.set("inputSchema", string(shown))
		c.repaired("inputSchema", "its arguments %q are internal, and models do not see them", c.internal)
	}
}

// hiding walks through a schema as far as internal arguments can stand in it.
type hiding struct {
	drops  bool             // internal arguments; otherwise nothing needs them any more
	found  []string         // JSON pointers into the arguments; "*" stands for every element of an array
	names  [][]byte         // of those, as written, with quotes
	others []rawjson.Member // of the schemas on the way: keywords that could name them
	fault  string           // why the tool cannot be shown
}

func (h *hiding) refuse(format string, args ...any) {
	if h.fault == "" {
		h.fault = fmt.Sprintf(format, args...)
	}
}

// schema returns the schema value of the argument at a pointer as it is without internal arguments,
// or where nothing needs them.
func (h *hiding) schema(value []byte, at string) []byte {
	if isInternal(value) {
		h.refuse("it is at %q, which is no property of an object", hidden.Cut(at, maxShown))
	}
	out, mine := value, []string(nil)
	put := func(value []byte, path ...string) {
		changed, err := rawjson.SetIn(out, value, path...)
		if err != nil {
			h.refuse("it cannot be read")
			return
		}
		out = changed
	}
	_ = rawjson.Members(value, func(m rawjson.Member) bool {
		switch name := m.Name(); {
		case name == "properties" && rawjson.IsObject(m.Value):
			_ = rawjson.Members(m.Value, func(p rawjson.Member) bool {
				path := at + "/" + rawjson.PointerToken(p.Name())
				if isInternal(p.Value) {
					mine, h.found = append(mine, p.Name()), append(h.found, path)
					h.names = append(h.names, slices.Concat([]byte(`"`), p.Key, []byte(`"`)))
				} else if inner := h.schema(p.Value, path); !bytes.Equal(inner, p.Value) {
					put(inner, "properties", p.Name())
				}
				return true
			})
		case name == "items" && rawjson.IsObject(m.Value):
			if inner := h.schema(m.Value, at+"/*"); !bytes.Equal(inner, m.Value) {
				put(inner, "items")
			}
		case slices.Contains([]string{"type", "title", "description", "required", "$schema", "$id", "$comment"}, name):
		default:
			h.others = append(h.others, m)
			if holdsInternal(name, m.Value) {
				h.refuse("it stands beneath the keyword %s", m.Key)
			}
		}
		return true
	})
	if len(mine) == 0 {
		return out
	}
	isMine := func(name string) bool { return slices.Contains(mine, name) }
	if h.drops {
		left, _, _ := rawjson.DeleteFunc(rawjson.GetObject(out, "properties"),
			func(p rawjson.Member) bool { return isMine(p.Name()) })
		put(left, "properties")
	}
	if required, ok := rawjson.Get(out, "required"); ok {
		left := [][]byte{}
		_ = rawjson.Elements(required, func(e []byte) bool {
			if name, _ := rawjson.String(e); !isMine(name) {
				left = append(left, e)
			}
			return true
		})
		put(slices.Concat([]byte("["), bytes.Join(left, []byte(",")), []byte("]")), "required")
	}
	return out
}

func isInternal(schema []byte) bool {
	visibility, _ := rawjson.GetString(schema, "visibility")
	return visibility == "internal"
}

// holdsInternal reports whether a schema in the value of a keyword, or in one of those in it, is
// internal. Values that are data hold none.
func holdsInternal(keyword string, value []byte) (found bool) {
	switch keyword {
	// from a name to a schema
	case "properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions":
		_ = rawjson.Members(value, func(m rawjson.Member) bool {
			found = holdsInternal("", m.Value)
			return !found
		})
		return found
	case "", "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "additionalProperties",
		"unevaluatedProperties",
		"propertyNames", "contentSchema", "allOf", "anyOf", "oneOf", "not", "if", "then", "else":
	default:
		return false
	}
	switch {
	case isInternal(value):
		return true
	case value[0] == '[':
		_ = rawjson.Elements(value, func(e []byte) bool {
			found = holdsInternal("", e)
			return !found
		})
	case value[0] == '{':
		_ = rawjson.Members(value, func(m rawjson.Member) bool {
			found = holdsInternal(m.Name(), m.Value)
			return !found
		})
	}
	return found
}
