package admit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-toolhub/mcp-toolhub/internal/rawjson"
	"github.com/mcp-toolhub/mcp-toolhub/internal/schema"
)

// anyObject is the schema of a tool whose own one cannot be used: the upstream checks its arguments anyway.
const anyObject = `{"type":"object"}`

// flatten replaces schemas that are too deep, and reports whether there were any. It comes first,
// since they may be so deep that the declaration would not be looked at at all.
func (a *admission) flatten(c *candidate) bool {
	most := a.cfg.Limits.SchemaDepth
	if rawjson.Depth(c.declaration) <= most {
		return false
	}
	why := func(depth int) string {
		return fmt.Sprintf("it nests %d levels deep, more than %d: flatten it, or use $ref", depth, most)
	}
	if value, ok := rawjson.Get(c.declaration, "inputSchema"); ok && rawjson.Depth(value) > most {
		depth := rawjson.Depth(value)
		c.set("inputSchema", anyObject)
		c.repaired("inputSchema", "%s; %s stands there now", why(depth), anyObject)
	}
	if value, ok := rawjson.Get(c.declaration, "outputSchema"); ok && rawjson.Depth(value) > most {
		c.remove("outputSchema", "%s", why(rawjson.Depth(value)))
	}
	return len(c.repairs) > 0
}

// checkInputSchema makes sure of an object with "type":"object" that compiles. The SDK panics on a tool without, and
// some clients drop the whole server.
func (c *candidate) checkInputSchema() {
	const part = "inputSchema"
	value, ok := rawjson.Get(c.declaration, part)
	switch {
	case !ok:
		c.set(part, anyObject)
		c.repaired(part, "it was missing; %s stands there now", anyObject)
		return
	case !rawjson.IsObject(value):
		c.set(part, anyObject)
		c.repaired(part, "it was %s instead of an object; %s stands there now", kindOf(value), anyObject)
		return
	}
	kind, typed := rawjson.Get(value, "type")
	name, named := rawjson.String(kind)
	switch {
	case !typed:
		c.set(part, string(withType(value)))
		c.repaired(part, `it had no "type"; "type":"object" was added`)
	case named && name == "object":
	case listsObject(kind):
		narrowed, err := rawjson.Set(value, "type", []byte(`"object"`))
		if err != nil {
			c.refuse(codeInvalidDeclaration, "its input schema cannot be read: correct it on the server")
			return
		}
		c.set(part, string(narrowed))
		c.repaired(part, `its "type" was a list with "object" in it; it is "object" now`)
	default:
		c.refuse(codeInvalidSchema,
			`the "type" of its input schema is not "object", so no arguments can be passed: correct it on the server`)
		return
	}
	value, _ = rawjson.Get(c.declaration, part)
	mended, err := c.mend(value)
	if err != nil {
		c.set(part, anyObject)
		c.repaired(part, "%v; %s stands there now", err, anyObject)
		return
	}
	if !bytes.Equal(mended, value) {
		c.set(part, string(mended))
	}
	c.hideInternal(mended)
}

// maxMends bounds the values that are taken out of one schema.
const maxMends = 20

// mend takes out of an input schema what keeps it from compiling: one bad word costs what it says of one parameter, and
// no other parameter. The error is that of a schema that cannot be mended so.
func (c *candidate) mend(value []byte) ([]byte, error) {
	if schema.IsPlain(value) {
		return value, nil
	}
	first := len(c.repairs)
	for range maxMends {
		_, err := schema.Compile(value)
		if err == nil {
			return value, nil
		}
		at := unusable(value)
		if fault := (*schema.Fault)(nil); errors.As(err, &fault) && fault.At != "" {
			at = strings.Split(strings.TrimPrefix(fault.At, "/"), "/")
		}
		if at == nil {
			break
		}
		value = without(value, at, "")
		c.repaired("inputSchema", "%v; it was removed", err)
	}
	c.repairs = c.repairs[:first]
	_, err := schema.Compile(value)
	return value, err
}

// unusable is the path to the first parameter that does not compile alone; nil where there is none.
func unusable(value []byte) (at []string) {
	_ = rawjson.Members(rawjson.GetObject(value, "properties"), func(m rawjson.Member) bool {
		alone, err := rawjson.Set(value, "properties", append(rawjson.AppendMember([]byte("{"), m.Name(), m.Value), '}'))
		if err == nil {
			_, err = schema.Compile(alone)
		}
		if err != nil {
			at = []string{"properties", rawjson.PointerToken(m.Name())}
		}
		return err == nil
	})
	return at
}

// without returns an object without the value at a path, or with {} there where a schema has to be. What is inside an
// array goes with the array. parent is the name of object.
func without(object []byte, path []string, parent string) []byte {
	name := rawjson.PointerName(path[0])
	inner, _ := rawjson.Get(object, name)
	switch {
	case len(path) > 1 && rawjson.IsObject(inner):
		object, _ = rawjson.Set(object, name, without(inner, path[1:], name)) // it is well-formed
	case parent == "properties", parent == "$defs", parent == "definitions":
		object, _ = rawjson.Set(object, name, []byte("{}"))
	default:
		object, _, _ = rawjson.Delete(object, name)
	}
	return object
}

// checkOutputSchema removes an output schema that does not compile: the TypeScript client compiles all of them when it
// lists tools, and loses the list over one.
func (c *candidate) checkOutputSchema() {
	const part = "outputSchema"
	value, ok := c.object(part)
	if !ok {
		return
	}
	s, err := schema.Compile(value)
	if err != nil {
		c.remove(part, "%v", err)
		return
	}
	if broken := s.Broken(); len(broken) > 0 {
		c.remove(part, "it held %s, which clients do not compile", broken[0])
		return
	}
	for _, keyword := range []string{"type", "$ref", "anyOf", "oneOf", "allOf"} {
		if _, has := rawjson.Get(value, keyword); has {
			return
		}
	}
	c.set(part, string(withType(value))) // required up to protocol 2025-11-25
	c.repaired(part, `it had no "type"; "type":"object" was added`)
}

// withType returns object, which has no member "type", with "type":"object" as its first member.
func withType(object []byte) []byte {
	start := bytes.IndexByte(object, '{') + 1
	out := append(slices.Clone(object[:start]), `"type":"object"`...)
	if rest := bytes.TrimLeft(object[start:], " \t\r\n"); len(rest) > 0 && rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, object[start:]...)
}

// listsObject reports whether kind is an array that holds "object".
func listsObject(kind []byte) bool {
	found := false
	err := rawjson.Elements(kind, func(value []byte) bool {
		name, ok := rawjson.String(value)
		found = ok && name == "object"
		return !found
	})
	return err == nil && found
}

// kindOf names the JSON type of value for a message.
func kindOf(value []byte) string {
	switch {
	case rawjson.IsNull(value):
		return "null"
	case value[0] == '{':
		return "an object"
	case value[0] == '[':
		return "an array"
	case value[0] == '"':
		return "a string"
	case value[0] == 't', value[0] == 'f':
		return "a boolean"
	}
	return "a number"
}
